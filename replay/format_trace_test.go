package replay

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// words are the words of the prompt of an item.
func words(t *testing.T, it *Item) []string {
	t.Helper()
	var body struct {
		Model     string
		MaxTokens int64 `json:"max_tokens"`
		MinTokens int64 `json:"min_tokens"`
		Stream    bool
		Messages  []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(payload(t, it)), &body); err != nil {
		t.Fatal(err)
	}
	if !body.Stream || body.MaxTokens != *it.OutputTokens || len(body.Messages) != 1 {
		t.Errorf("request %+v", body)
	}
	return strings.Fields(body.Messages[0].Content)
}

// shared is how many words two prompts begin with alike.
func shared(a, b []string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func TestMooncakePromptsShareTheirBlocks(t *testing.T) {
	text := `{"timestamp":27482,"input_length":1100,"output_length":52,"hash_ids":[46,47,2353]}
{"timestamp":30535,"input_length":1300,"output_length":26,"hash_ids":[46,47,2366]}
{"timestamp":27482,"input_length":600,"output_length":9,"hash_ids":[46,99]}
{"timestamp":31000,"input_length":513,"output_length":9,"hash_ids":[7]}
{"timestamp":31000,"input_length":40,"output_length":9,"hash_ids":[]}
`
	w := load(t, text, FileOptions{Trace: TraceOptions{Unit: "ms", Model: "m"}})
	var ats []time.Duration
	var prompts [][]string
	for i := range w.Items {
		it := &w.Items[i]
		ats = append(ats, it.At)
		p := words(t, it)
		if int64(len(p)) != *it.PromptTokens {
			t.Errorf("%s: %d words for %d tokens", it.ID, len(p), *it.PromptTokens)
		}
		prompts = append(prompts, p)
	}
	if diff := cmp.Diff([]time.Duration{0, 0, 3053 * time.Millisecond, 3518 * time.Millisecond, 3518 * time.Millisecond}, ats); diff != "" {
		t.Error(diff)
	}
	if w.Items[1].ID != "line-3" || len(w.Notes) != 2 || !strings.HasPrefix(w.Notes[1], "1 item was out of order") {
		t.Errorf("a line out of order: %s, notes %q", w.Items[1].ID, w.Notes)
	}
	first, early, second := prompts[0], prompts[1], prompts[2]
	for _, tt := range []struct {
		a, b []string
		want int
	}{{first, second, 1024}, {first, early, 512}, {second, early, 512}, {first, prompts[3], 0}, {prompts[3], prompts[4], 0}} {
		if n := shared(tt.a, tt.b); n < tt.want || n > tt.want+3 { // words can be the same by chance
			t.Errorf("prompts share %d words, want %d", n, tt.want)
		}
	}
	if again := load(t, text, FileOptions{Trace: TraceOptions{Unit: "ms", Model: "m"}}); again.Hash() != w.Hash() {
		t.Error("a trace makes other requests the second time")
	}
	if other := load(t, text, FileOptions{Trace: TraceOptions{Unit: "ms", Model: "m", Seed: 1}}); other.Hash() == w.Hash() || shared(words(t, &other.Items[0]), first) > 3 {
		t.Error("another seed makes the same prompts")
	}
	slow := load(t, text, FileOptions{Trace: TraceOptions{Unit: "s"}})
	if slow.Items[2].At != 3053*time.Second {
		t.Errorf("in seconds: %v", slow.Items[2].At)
	}
	if !strings.Contains(strings.Join(slow.Notes, ";"), "requests name no model") {
		t.Errorf("notes %q", slow.Notes)
	}
}

func TestTraceOptions(t *testing.T) {
	for _, tt := range []struct {
		o    TraceOptions
		want string
	}{
		{TraceOptions{}, "timestamps in ms and in s; say which"},
		{TraceOptions{Unit: "h"}, `unit "h"; want ms or s`},
		{TraceOptions{Unit: "ms", BlockSize: -1}, "a block of -1 tokens"},
		{TraceOptions{Unit: "ms", Target: "x"}, `target "x"`},
	} {
		_, err := OpenFile(write(t, "t", mooncakeOne), FileOptions{Trace: tt.o}).Load(context.Background())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.o, err, tt.want)
		}
	}
	w := load(t, `{"timestamp":1,"input_length":32,"output_length":7,"hash_ids":[1,2]}`, FileOptions{Trace: TraceOptions{Unit: "ms", BlockSize: 16, ForceLength: true, Target: "/v1/completions"}})
	if b := payload(t, &w.Items[0]); !strings.Contains(b, `"min_tokens":7,"ignore_eos":true`) || w.Items[0].Target != "/v1/completions" {
		t.Errorf("%s to %s", b, w.Items[0].Target)
	}
}

func TestTablesOfTraces(t *testing.T) {
	burst := "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"5,1,2.5,ChatGPT,472,18,490,Conversation log\n45,1,1,ChatGPT,1087,0,1087,Conversation log\n" +
		"50.5,2,1,GPT-4,10,5,15,API log\n60,1,1,ChatGPT,900,230,1130,Conversation log\n"
	w := load(t, burst, FileOptions{})
	type row struct {
		At             time.Duration
		Conversation   string
		Turn           int
		Prompt, Output int64
	}
	var got []row
	for _, it := range w.Items {
		got = append(got, row{it.At, it.Conversation, it.Turn, *it.PromptTokens, *it.OutputTokens})
	}
	want := []row{{0, "1", 0, 472, 18}, {45500 * time.Millisecond, "2", 0, 10, 5}, {55 * time.Second, "1", 1, 900, 230}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(strings.Join(w.Notes, ";"), "1 line tells of a request without an answer and was left out") {
		t.Errorf("notes %q", w.Notes)
	}
	if !w.Timed() {
		t.Error("a trace without instants")
	}

	for _, azure := range []string{
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,110,27\n",
		"\xef\xbb\xbfTIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-10 00:00:00.009930+00:00,4808,10\r\n2024-05-10 00:00:00.061930+00:00,110,27\r\n",
	} {
		w := load(t, azure, FileOptions{})
		if len(w.Items) != 2 || w.Items[0].At != 0 || w.Items[1].At != 52*time.Millisecond || len(words(t, &w.Items[0])) != 4808 {
			t.Errorf("%q: %+v", azure, w.Items)
		}
	}
}

func TestBatchFiles(t *testing.T) {
	w := load(t, `{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m",  "x": 1.0}}
{"custom_id": "b", "method": "POST", "url": "/v1/embeddings", "body": {"input": "t"}}`, FileOptions{})
	if len(w.Items) != 2 || w.Timed() || w.Items[0].ID != "a" || w.Items[1].Target != "/v1/embeddings" || payload(t, &w.Items[0]) != `{"model": "m",  "x": 1.0}` {
		t.Errorf("%+v", w.Items)
	}
}

func TestMooncakeExportHasNoText(t *testing.T) {
	long := strings.Repeat("shared words of a system prompt ", 100) // 3,200 bytes: one block and a half
	ask := func(after time.Duration, last string) string {
		return `{"model":"m","messages":[{"role":"system","content":"` + long + `"},{"role":"user","content":"` + last + `"}]}`
	}
	silent := recorded(3*time.Second, ask(0, "silent"), eventStream, say("x")) // its engine told no counts
	s := newShelf(
		recorded(0, ask(0, "one"), eventStream, say("x"), chatEnd),
		recorded(1500*time.Millisecond, ask(0, "two"), eventStream, say("x"), chatEnd),
		recorded(2*time.Second, `{"messages":[{"role":"user","content":"other"}]}`, eventStream, say("x"), chatEnd), silent)
	file, r := exported(t, s, ExportOptions{Format: FormatMooncake})
	want := `{"timestamp":0,"input_length":1100,"output_length":4,"hash_ids":[0,1,2]}
{"timestamp":1500,"input_length":1100,"output_length":4,"hash_ids":[0,3,4]}
{"timestamp":2000,"input_length":1100,"output_length":4,"hash_ids":[5,6,7]}
`
	if file != want {
		t.Errorf("the trace is\n%swant\n%s", file, want)
	}
	if r.Items != 3 || r.Skipped != 1 || r.Workload != "" {
		t.Errorf("%+v", r)
	}
	load(t, file, FileOptions{Trace: TraceOptions{Unit: "ms"}})
}

// TestLengthsAndRequestsGoOut holds that the other formats that are read are written too, and that what is written is read.
func TestLengthsAndRequestsGoOut(t *testing.T) {
	ask := `{"model":"m",  "n":1.0,"messages":[{"role":"user","content":"<b>, \"q\""}]}`
	s := newShelf(
		recorded(0, ask, eventStream, say("x"), chatEnd),
		recorded(1500*time.Millisecond, `{"model":"other"}`, eventStream, say("x"), chatEnd),
		recorded(3*time.Second, `[1]`, eventStream, say("x"))) // its engine told no counts, and it is no object
	for _, c := range []struct {
		format Format
		note   string
		again  []time.Duration
	}{
		{FormatBatch, "no instants", []time.Duration{AtUnknown, AtUnknown}},
		{FormatBurstGPT, "seconds since", []time.Duration{0, 1500 * time.Millisecond}},
		{FormatAzure, "UTC", []time.Duration{0, 1500 * time.Millisecond}},
	} {
		file, r := exported(t, s, ExportOptions{Format: c.format})
		if r.Items != 2 || r.Skipped != 1 || !strings.Contains(strings.Join(r.Notes, "; "), c.note) || !strings.Contains(strings.Join(r.Notes, "; "), "1 ") {
			t.Errorf("%s: %+v", c.format, r)
		}
		w := load(t, file, FileOptions{})
		var at []time.Duration
		for i := range w.Items {
			at = append(at, w.Items[i].At)
		}
		if !slices.Equal(at, c.again) {
			t.Errorf("%s: instants %v from\n%s", c.format, at, file)
		}
		if c.format == FormatBatch {
			if got := payload(t, &w.Items[0]); got != `{"model":"m","n":1.0,"messages":[{"role":"user","content":"<b>, \"q\""}]}` {
				t.Errorf("the body comes back as %s", got)
			}
		} else if got := len(words(t, &w.Items[0])); got != 1100 || strings.Contains(file, "<b>") {
			t.Errorf("%s: %d words from\n%s", c.format, got, file)
		}
	}
}

// A trace without instants would be one of requests that came at once.
func TestTracesWantInstants(t *testing.T) {
	n := exchange.Figure{Value: 3, Basis: exchange.BasisReported}
	rec := &outgoing{Record: Record{Item: &Item{At: AtUnknown}, Row: exchange.Summary{Metrics: exchange.Figures{"prompt_tokens": n, "completion_tokens": n}}}}
	if _, _, ok := rec.lengthsOf(); ok {
		t.Error("a request without an instant is in a trace")
	}
	rec.Item.At = 0
	if p, o, ok := rec.lengthsOf(); !ok || p != 3 || o != 3 {
		t.Error(p, o, ok)
	}
}
