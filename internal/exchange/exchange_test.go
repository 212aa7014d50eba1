package exchange

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestNewIDSortsByTimeAndIsValid(t *testing.T) {
	base := time.UnixMilli(1_700_000_000_000)
	last := ID("")
	for i := range 200 {
		id := NewID(base.Add(time.Duration(i) * time.Millisecond))
		if !ValidID(string(id)) {
			t.Fatalf("NewID gave %q, which ValidID refuses", id)
		}
		if id <= last {
			t.Fatalf("id %q of a later millisecond does not sort after %q", id, last)
		}
		last = id
	}
}

func TestEncodeULIDKnownValue(t *testing.T) {
	// The largest value of the specification and its neighbor with only the top bit set.
	all := [16]byte{}
	for i := range all {
		all[i] = 0xff
	}
	if got := encodeULID(all); got != "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" {
		t.Errorf("all ones: got %q", got)
	}
	if got := encodeULID([16]byte{0x80}); got != "40000000000000000000000000" {
		t.Errorf("top bit: got %q", got)
	}
}

func TestValidIDRefuses(t *testing.T) {
	for _, s := range []string{"", "short", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZZZZZZZZZZZZZZZZI", "7zzzzzzzzzzzzzzzzzzzzzzzzz"} {
		if ValidID(s) {
			t.Errorf("ValidID(%q) = true", s)
		}
	}
}

func TestMarkAbsentIsNull(t *testing.T) {
	for _, m := range []Mark{{}, MarkAt(0), MarkAt(12345)} {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back Mark
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if back != m {
			t.Errorf("mark %+v became %s became %+v", m, b, back)
		}
	}
	if b, _ := json.Marshal(Mark{}); string(b) != "null" {
		t.Errorf("a mark that never happened is %s, want null", b)
	}
}

func TestFigureAbsentIsNull(t *testing.T) {
	b, err := json.Marshal(Absent("ms", "no token event"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"value":null,"unit":"ms","reason":"no token event"}`; string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	zero := Figure{Value: 0, Unit: "tokens", Basis: BasisReported}
	b, _ = json.Marshal(zero)
	var back Figure
	if err := json.Unmarshal(b, &back); err != nil || back != zero || !back.Present() {
		t.Errorf("a reported zero must stay present: %s -> %+v, %v", b, back, err)
	}
}

// TestLogReaderSeesPrefix holds the identity of the log: whatever the reader sees is a prefix of what was written.
func TestLogReaderSeesPrefix(t *testing.T) {
	var l Log[byte]
	want := make([]byte, 300_000)
	for i := range want {
		want[i] = byte(i * 7)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for {
			got := l.All()
			if !bytes.Equal(got, want[:len(got)]) {
				t.Error("reader saw bytes that were not written there")
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	r := rand.New(rand.NewPCG(1, 2))
	for rest := want; len(rest) > 0; {
		n := min(1+r.IntN(5000), len(rest))
		l.Append(rest[:n]...)
		rest = rest[n:]
	}
	close(done)
	wg.Wait()
	if got := l.All(); !bytes.Equal(got, want) {
		t.Fatalf("log holds %d bytes, want %d equal ones", len(got), len(want))
	}
	if got := bytes.Join(l.Chunks(1000), nil); !bytes.Equal(got, want[:1000]) {
		t.Error("Chunks(1000) is not the first 1000 bytes")
	}
}

func TestLogOfReadsGrows(t *testing.T) {
	var l Log[Read]
	for i := range 5000 {
		l.Append(Read{At: int64(i), Size: i})
	}
	for i, r := range l.All() {
		if r.At != int64(i) {
			t.Fatalf("element %d is %+v", i, r)
		}
	}
	if l.Len() != 5000 {
		t.Fatalf("length %d", l.Len())
	}
}

func TestBodySum(t *testing.T) {
	b := Body{Size: 6, Kept: 6, Chunks: [][]byte{[]byte("abc"), []byte("def")}}
	if got, want := b.Sum(), NewBody([]byte("abcdef")).Sum(); got != want || got == "" {
		t.Errorf("digest depends on the chunks: %q and %q", got, want)
	}
	cut := Body{Size: 10, Kept: 6, Chunks: b.Chunks}
	if got := cut.Sum(); got != "" {
		t.Errorf("a cut body without a digest claims %q", got)
	}
}

func TestHeaderValue(t *testing.T) {
	hs := []Header{{"X-A", "1"}, {"content-type", "text/plain"}, {"Content-Type", "second"}}
	if v, ok := HeaderValue(hs, "Content-Type"); !ok || v != "text/plain" {
		t.Errorf("got %q %v", v, ok)
	}
	if _, ok := HeaderValue(hs, "X-B"); ok {
		t.Error("found a header that is not there")
	}
}

func TestSummaryJSONKeepsFiguresApart(t *testing.T) {
	in := Summary{Version: SummaryVersion, ID: NewID(time.UnixMilli(1)), Flags: []string{"single_event"}, Metrics: Figures{
		"ttft_ms":       {Value: 12.5, Basis: BasisMeasured},
		"decode_tps":    {Reason: "single_event"},
		"cached_tokens": {Value: 0, Basis: BasisReported},
	}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ttft_ms":12.5`, `"decode_tps":null`, `"decode_tps":"single_event"`, `"cached_tokens":0`, `"cached_tokens":"reported"`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	var back Summary
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(back)
	if !bytes.Equal(b, again) {
		t.Errorf("a row does not survive its JSON:\n%s\n%s", b, again)
	}
	if err := json.Unmarshal([]byte(`{"schema":99}`), &back); err == nil {
		t.Error("a row of a newer version was read")
	}
}

func TestDetailJSONIsOneObject(t *testing.T) {
	d := Detail{Summary: Summary{Version: 1, Model: "m", Metrics: Figures{"ttft_ms": {Value: 1, Basis: BasisMeasured}}}}
	d.OutputText = "hi"
	d.Timeline = Timeline{SendStart: MarkAt(5), Reads: []Read{{At: 7, Size: 3, Write: 2}}}.View()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"model", "metrics", "basis", "absent", "output_text", "tool_calls", "timeline"} {
		if _, ok := m[k]; !ok {
			t.Errorf("key %s is missing in %s", k, b)
		}
	}
	var back Detail
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(back)
	if !bytes.Equal(b, again) {
		t.Errorf("a detail does not survive its JSON:\n%s\n%s", b, again)
	}
}

// TestRowNamesEveryKey holds that a script finds every key of the contract in the smallest row and detail: what is not
// known is empty or null, never missing.
func TestRowNamesEveryKey(t *testing.T) {
	row := []string{"id", "run", "seq", "key", "digest", "path", "model", "engine", "status", "outcome", "stream", "finish_reason",
		"usage_estimated", "parse_errors", "flags", "interventions", "metrics", "basis", "absent"}
	check := func(v any, keys []string) {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if _, ok := m[k]; !ok {
				t.Errorf("%T lacks the key %s: %s", v, k, b)
			}
		}
	}
	check(Summary{}, row)
	check(Detail{}, append(row, "output_text", "reasoning_text", "tool_calls", "timeline"))
}
