package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func fromRun(t *testing.T, s *shelf, f Filter) *Workload {
	t.Helper()
	w, err := FromRun(context.Background(), s, &s.run, f)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestFilterPicks(t *testing.T) {
	s := newShelf(
		recorded(0, `{"model":"a"}`, "application/json", `{}`),
		recorded(time.Second, `{"model":"b"}`, "application/json", `{}`),
		recorded(2*time.Second, `{"model":"a"}`, "application/json", `{}`))
	for _, tt := range []struct {
		f    Filter
		want []int
	}{
		{Filter{}, []int{0, 1, 2}},
		{Filter{Models: []string{"a"}}, []int{0, 2}},
		{Filter{Models: []string{"a", "b"}, Since: traceDay.Add(time.Second)}, []int{1, 2}},
		{Filter{Paths: []string{"/v1/chat/*"}, Until: traceDay.Add(time.Second)}, []int{0}},
		{Filter{Paths: []string{"/v1/chat/completions"}, IDs: []exchange.ID{s.rows[1].ID}}, []int{1}},
	} {
		w := fromRun(t, s, tt.f)
		var got []int
		for _, it := range w.Items {
			for i, r := range s.rows {
				if string(r.ID) == it.ID {
					got = append(got, i)
				}
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.f.String(), diff)
		}
		if w.Items[0].At != 0 {
			t.Errorf("%s: the first item is at %v", tt.f.String(), w.Items[0].At)
		}
	}
	_, err := FromRun(context.Background(), s, &s.run, Filter{Paths: []string{"/v1/*"}})
	if !errors.Is(err, exchange.ErrMiss) || !strings.Contains(err.Error(), "none is of path /v1/*") {
		t.Errorf("nothing picked: %v", err)
	}
}

func TestItemsOfARun(t *testing.T) {
	body := `{"model":"m","prompt":"` + strings.Repeat("x", 4<<10) + `"}`
	first := recorded(0, body, eventStream, say("a"), chatEnd)
	first.Request.Headers = append(first.Request.Headers,
		exchange.Header{Name: "Authorization", Value: "Bearer x"}, exchange.Header{Name: "Content-Length", Value: "1"},
		exchange.Header{Name: "traceparent", Value: "00"}, exchange.Header{Name: "anthropic-beta", Value: "b"})
	s := newShelf(first, recorded(1500*time.Microsecond+700, body, eventStream, say("a"), chatEnd))
	w := fromRun(t, s, Filter{})
	it := w.Items[1]
	if it.At != 1500*time.Microsecond || it.Origin.Occurrence != 1 || it.Origin.Exchange != s.rows[1].ID || it.Origin.Key != s.rows[1].Key || it.Key != s.rows[1].Key {
		t.Errorf("second take: %+v, origin %+v", it, it.Origin)
	}
	if *it.PromptTokens != 1100 || *it.OutputTokens != 4 {
		t.Errorf("tokens %d, %d", *it.PromptTokens, *it.OutputTokens)
	}
	want := []exchange.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Team", Value: "blue"}, {Name: "anthropic-beta", Value: "b"}}
	if diff := cmp.Diff(want, w.Items[0].Headers); diff != "" {
		t.Errorf("headers to send: %s", diff)
	}
	if it.Body != nil || payload(t, &it) != body {
		t.Error("a large body is held in memory, or comes back as another")
	}
	if w.Name != "morning" || w.Source != "run "+string(s.run.ID) || !w.Timed() {
		t.Errorf("%s of %s", w.Name, w.Source)
	}
	clear(s.xs)
	if _, err := it.Payload(); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("a body that is gone: %v", err)
	}
}

func TestHashCoversWhatIsSent(t *testing.T) {
	base := func() *Workload {
		w := &Workload{}
		for i := range 3 {
			it := Item{ID: fmt.Sprint(i), Conversation: fmt.Sprint("c", i/2), Turn: i % 2, At: time.Duration(i) * time.Millisecond, Method: "POST", Target: "/x",
				Headers: []exchange.Header{{Name: "A", Value: "b"}}, Body: []byte(fmt.Sprintf(`{"n":%d}`, i))}
			it.identify(it.Body)
			w.Items = append(w.Items, it)
		}
		return w
	}
	want := base().Hash()
	if !strings.HasPrefix(want, HashScheme) || len(want) != len(HashScheme)+32 {
		t.Errorf("hash %s", want)
	}
	same := map[string]func(w *Workload){
		"ids": func(w *Workload) { w.Items[0].ID = "other" },
		"names of conversations": func(w *Workload) {
			w.Items[0].Conversation, w.Items[1].Conversation, w.Items[2].Conversation = "x", "x", ""
		},
		"case of header names": func(w *Workload) { w.Items[0].Headers[0].Name = "a"; w.Items[0].identify(w.Items[0].Body) },
		"name":                 func(w *Workload) { w.Name, w.Source = "x", "y" },
	}
	other := map[string]func(w *Workload){
		"order":         func(w *Workload) { w.Items[0], w.Items[1] = w.Items[1], w.Items[0] },
		"time":          func(w *Workload) { w.Items[2].At++ },
		"no time":       func(w *Workload) { w.Items[2].At = AtUnknown },
		"conversations": func(w *Workload) { w.Items[2].Conversation = "c0" },
		"turn":          func(w *Workload) { w.Items[2].Turn = 5 },
		"body":          func(w *Workload) { w.Items[2].identify([]byte(`{"n":9}`)) },
		"header":        func(w *Workload) { w.Items[2].Headers[0].Value = "c"; w.Items[2].identify(w.Items[2].Body) },
		"fewer":         func(w *Workload) { w.Items = w.Items[:2] },
	}
	for name, change := range same {
		w := base()
		if change(w); w.Hash() != want {
			t.Errorf("%s changed the hash", name)
		}
	}
	for name, change := range other {
		w := base()
		if change(w); w.Hash() == want {
			t.Errorf("%s did not change the hash", name)
		}
	}
}

// talk is a request with the given messages, written role:text.
func talk(list string, messages ...string) string {
	var parts []string
	for _, m := range messages {
		role, text, _ := strings.Cut(m, ":")
		parts = append(parts, fmt.Sprintf(`{"role":%q,"content":%q}`, role, text))
	}
	return `{"model":"m","` + list + `":[` + strings.Join(parts, ",") + `]}`
}

func TestConversationsAreFound(t *testing.T) {
	for _, list := range []string{"messages", "contents", "input"} {
		t.Run(list, func(t *testing.T) {
			bodies := []string{
				talk(list, "user:a"),
				talk(list, "user:a"), // the same question of another client
				talk(list, "user:a", "assistant:b", "user:c"),
				talk(list, "user:other"),
				talk(list, "user:a", "model:B", "user:c"), // continues the second
				talk(list, "user:a", "assistant:b", "user:c", "assistant:d", "tool:e", "user:f"),
				talk(list, "user:a", "user:c"),                 // no answer between: a conversation of its own
				talk(list, "user:a", "assistant:b", "user:c2"), // a branch: both that begin so went on already
				`{"model":"m","` + list + `":"text"}`,
				`not json`,
			}
			found := newTalks()
			var got []string
			for i, b := range bodies {
				it := Item{Conversation: fmt.Sprint(i)}
				found.join(&it, []byte(b))
				got = append(got, fmt.Sprintf("%s/%d", it.Conversation, it.Turn))
			}
			want := []string{"0/0", "1/0", "0/1", "3/0", "1/1", "0/2", "6/0", "7/0", "8/0", "9/0"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMovedMarksOfACacheKeepAConversation(t *testing.T) {
	found := newTalks()
	first, second := Item{Conversation: "1"}, Item{Conversation: "2"}
	found.join(&first, []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`))
	found.join(&second, []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`))
	if second.Conversation != "1" || second.Turn != 1 {
		t.Errorf("the second turn is %d of %s", second.Turn, second.Conversation)
	}
}

func TestHandWrittenFilesAreRead(t *testing.T) {
	w := load(t, `{"method":"POST","path":"/v1/x","t_ms":1500.25,"session":"s","headers":{"B":"2","A":"1","Authorization":"Bearer k"},"body":{"a": 1}}
{"id":"early","method":"POST","path":"/v1/x","t_ms":500,"session":"s","turn":1,"body":"plain text","expect":{"prompt_tokens":3,"completion_tokens":5}}
`, FileOptions{})
	if len(w.Items) != 2 || w.Items[0].ID != "early" || w.Items[1].ID != "line-1" || w.Items[1].At != 1000250*time.Microsecond {
		t.Fatalf("%+v", w.Items)
	}
	if payload(t, &w.Items[1]) != `{"a": 1}` || payload(t, &w.Items[0]) != "plain text" || *w.Items[0].OutputTokens != 5 {
		t.Errorf("%+v", w.Items)
	}
	if diff := cmp.Diff([]exchange.Header{{Name: "B", Value: "2"}, {Name: "A", Value: "1"}}, w.Items[1].Headers); diff != "" {
		t.Error(diff)
	}
	if len(w.Notes) != 1 || w.Source != "file file" || w.Items[0].Conversation != "s" {
		t.Errorf("notes %q of %s", w.Notes, w.Source)
	}
}

// TestArchivesOfOtherToolsAreRead holds that what such an archive does not know is not made up.
func TestArchivesOfOtherToolsAreRead(t *testing.T) {
	text := `{"log":{"version":"1.2","creator":{"name":"browser","version":"1"},"pages":[{"id":"p"}],"entries":[
{"startedDateTime":"2026-01-02T03:04:05.5+01:00","time":60,"request":{"method":"POST","url":"https://u:p@h/v1/chat/completions?key=abc&a=1","httpVersion":"h2","headers":[{"name":":authority","value":"h"},{"name":"authorization","value":"Bearer k"},{"name":"content-type","value":"application/json"}],"postData":{"mimeType":"application/json","text":"{\"messages\":[]}"}},
"response":{"status":200,"statusText":"","httpVersion":"h2","headers":[{"name":"content-encoding","value":"br"},{"name":"content-type","value":"application/json"}],"content":{"size":11,"mimeType":"application/json","text":"eyJhIjoxfQ==","encoding":"base64"}},"timings":{"blocked":1,"dns":-1,"connect":2,"ssl":-1,"send":3,"wait":40,"receive":14},"_resourceType":"fetch"},
{"startedDateTime":"2026-01-02T03:04:07Z","request":{"method":"GET","url":"data:image/png;base64,x","headers":[]},"response":{"status":200,"content":{"size":1}},"timings":{}},
{"startedDateTime":"2026-01-02T02:04:06Z","request":{"method":"GET","url":"http://h","headers":[]},"response":{"status":200,"content":{"size":99,"mimeType":"text/html"}},"timings":{"send":0,"wait":1,"receive":1}},
{"startedDateTime":"2026-01-02T02:04:08Z","request":{"method":"GET","url":"http://h/gone","headers":[]},"response":{"status":0,"content":{}},"timings":{}}]}}`
	f := OpenFile(write(t, "browser.har", text), FileOptions{})
	sum, err := f.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	wantNotes := []string{"1 answer was saved without the body", "1 entry is not of HTTP and left out"}
	if diff := cmp.Diff(wantNotes, sum.Notes); diff != "" || sum.Items != 3 || sum.Run != nil {
		t.Errorf("%+v %s", sum, diff)
	}
	xs := sound(t, f)
	x := xs[0]
	sent, _ := x.Timeline.SendStart.NS()
	end, _ := x.Timeline.BodyEnd.NS()
	if x.State != exchange.StateTruncated || x.Timeline.Reads != nil || sent != 3e6 || end != 60e6 || string(x.Response.Body.Bytes()) != `{"a":1}` {
		t.Errorf("%+v", x)
	}
	if _, coded := exchange.HeaderValue(x.Response.Headers, "Content-Encoding"); coded {
		t.Error("a body that is not coded any more says that it is")
	}
	if xs[2].Cause == nil || xs[2].Response.Status != 0 {
		t.Errorf("no answer: %+v", xs[2])
	}
	w := load(t, text, FileOptions{})
	it := w.Items[0]
	if it.Target != "/v1/chat/completions?key=***&a=1" || len(it.Headers) != 1 || it.ID != "entry-1" || w.Items[1].At != 500*time.Millisecond || w.Items[1].Target != "/" {
		t.Errorf("%+v", w.Items)
	}
}

// sound are the exchanges of a file, none of which contradicts itself.
func sound(t *testing.T, f *File) (xs []*exchange.Exchange) {
	t.Helper()
	for rec, err := range f.Records(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if problems := exchange.Problems(rec.Exchange); len(problems) > 0 {
			t.Error(problems)
		}
		xs = append(xs, rec.Exchange)
	}
	return xs
}

func TestRequestsWithoutAnswersAreNotSent(t *testing.T) {
	f := OpenFile(write(t, "f", mooncakeOne+`{"timestamp":510,"input_length":5,"output_length":7,"hash_ids":[]}`), FileOptions{Trace: TraceOptions{Unit: "ms"}})
	s := newShelf()
	for _, x := range sound(t, f) {
		s.put(x)
	}
	if len(s.rows) != 2 || s.rows[0].Outcome != exchange.OutcomeUpstreamError || s.rows[0].Cause.Code != "not_sent" || s.rows[0].Metrics["ttft_ms"].Present() {
		t.Errorf("%+v", s.rows)
	}
	loaded, err := f.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if again := fromRun(t, s, Filter{}); again.Hash() != loaded.Hash() {
		t.Error("a trace that went through a store is another workload")
	}
	next, stop := iter.Pull2(f.Records(context.Background()))
	if _, err, ok := next(); !ok || err != nil {
		t.Errorf("the first record: %v", err)
	}
	stop() // a reader may leave
}
