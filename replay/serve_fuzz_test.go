package replay

import (
	"bytes"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// FuzzPieces holds that the pieces of a served answer are its body, whatever the reads were: joined they are all of it but
// what the proxy kept from the client, in order and at instants that do not run back.
func FuzzPieces(f *testing.F) {
	f.Add([]byte("data: a\n\ndata: b\n\n"), []byte{3, 0, 9}, uint8(4), uint8(6), 1.0)
	f.Add([]byte("x"), []byte{}, uint8(0), uint8(0), 0.0)
	f.Add([]byte("abcdef"), []byte{2, 2, 2}, uint8(1), uint8(4), 3.5)
	f.Fuzz(func(t *testing.T, body, sizes []byte, from, length uint8, speed float64) {
		if (&ServeOptions{Speed: speed}).Validate() != nil {
			return
		}
		x := answering(question, chunkedHead)
		x.Response.Body = exchange.NewBody(body)
		left, at := len(body), int64(5_000_000)
		for _, s := range sizes {
			n := min(int(s), left)
			left -= n
			at += int64(s) * 1000
			x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: at, Size: n})
		}
		x.Timeline.BodyEnd = exchange.MarkAt(at + 1)
		cut := stretch{min(int(from), len(body)), min(int(from)+int(length), len(body))}
		x.Interventions = []exchange.Intervention{{Kind: "response_removed", Where: exchange.SideClient, Offset: int64(cut.from), Length: int64(cut.to - cut.from)}}
		for sent, want := range map[bool][]byte{true: body, false: append(bytes.Clone(body[:cut.from]), body[cut.to:]...)} {
			s, err := answerScript(x, "", answerForm{sent: sent, speed: speed, request: sim.Request{Method: "POST", Proto: "HTTP/1.1"}})
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			last := time.Duration(0)
			for _, step := range s.Steps {
				got = append(got, step.Data...)
				if step.At < last || len(step.Data) == 0 {
					t.Fatalf("step of %d bytes at %v after %v", len(step.Data), step.At, last)
				}
				last = step.At
			}
			if !bytes.Equal(got, want) || s.EndAt < last {
				t.Fatalf("got %q, want %q; ends at %v after %v", got, want, s.EndAt, last)
			}
		}
	})
}

// FuzzDiffer holds that two bodies differ somewhere exactly when they are not the same JSON, and that what is told of it
// names a place once.
func FuzzDiffer(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"x"}],"c":null}`), []byte(`{"c":null,"a":[1,{"b":"y"}]}`))
	f.Add([]byte(`[]`), []byte(`{}`))
	f.Add([]byte(`{"a":{}}`), []byte(`{"a":{"b":1}}`))
	f.Add([]byte(`{"a.b":1}`), []byte(`{"a":{"b":1}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		ca, errA := canon.JSON(a)
		cb, errB := canon.JSON(b)
		if errA != nil || errB != nil {
			return
		}
		d := differ{}
		d.requests(&exchange.Request{Body: exchange.NewBody(a)}, &exchange.Request{Body: exchange.NewBody(b)})
		if same := bytes.Equal(ca, cb); same != (d.n == 0) {
			t.Fatalf("%s and %s differ at %d places", a, b, d.n)
		}
		paths := map[string]bool{}
		for _, place := range d.told {
			if paths[place.Path] || place.Recorded == nil && place.Asked == nil {
				t.Fatalf("%+v", d.told)
			}
			paths[place.Path] = true
		}
	})
}

// FuzzParseRelax holds that a rule which is taken does not change a body that has no such place, and never fails.
func FuzzParseRelax(f *testing.F) {
	for _, text := range []string{"$.a", "$.a[0].b", "$.a[*]", "$[*][*]", `$.a\.b`, "$.m[*].c[*].id"} {
		f.Add(text, []byte(`{"a":[{"b":1}],"m":[{"c":[{"id":1}]}]}`))
	}
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		r, err := ParseRelax(text)
		if err != nil {
			return
		}
		req := &exchange.Request{Method: "POST", Target: "/", Body: exchange.NewBody(body)}
		once, ok := relaxedKey(req, []RelaxRule{r})
		if !ok {
			return
		}
		twice, ok := relaxedKey(req, []RelaxRule{r, r})
		if !ok || once.Key != twice.Key {
			t.Fatalf("%q applied twice to %s is another rule", text, body)
		}
	})
}

// BenchmarkIndex is the cost of an index of a large run, a record.
func BenchmarkIndex(b *testing.B) {
	src := newShelf()
	row := exchange.Summary{State: exchange.StateStored, End: exchange.EndEOF, Status: 200, Digest: "sha256:x", Method: "POST", Path: "/v1/chat/completions", Model: "m", RequestBytes: 4000}
	for i := range b.N {
		row.ID, row.Key = exchange.NewID(time.UnixMilli(int64(i))), keyOfNumber(i)
		src.rows = append(src.rows, row)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := NewStandIn(b.Context(), src, &src.run, Filter{}, ServeOptions{}); err != nil {
		b.Fatal(err)
	}
}

func keyOfNumber(i int) string { return canon.Scheme + string(hexOf(uint64(i)*0x9e3779b97f4a7c15)) }

func hexOf(n uint64) []byte {
	out := make([]byte, 16)
	for i := range out {
		out[i] = "0123456789abcdef"[n>>(4*i)&15]
	}
	return out
}
