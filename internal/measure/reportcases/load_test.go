package reportcases

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestLoadKnowsEveryCase(t *testing.T) {
	cases, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 23 {
		t.Errorf("%d cases", len(cases))
	}
	left := map[string]bool{}
	for _, c := range cases {
		if len(c.Variants) == 0 || c.ID == "" || c.Source == "" {
			t.Errorf("case %q has no variant or no source", c.ID)
		}
		left[c.ID] = true
		for _, v := range c.Variants {
			settles := len(v.Expect.Figures) > 0 || v.Expect.Outcome != ""
			if c.Elsewhere == "" && !settles && len(v.Expect.Live) == 0 {
				t.Errorf("%s/%s expects nothing", c.ID, v.Name)
			}
		}
	}
	for id := range elsewhere {
		if !left[id] {
			t.Errorf("%s belongs elsewhere, but there is no such case", id)
		}
	}
}

func TestFramesExpand(t *testing.T) {
	got := frameJSON{TMS: 10, EveryMS: 2.5, N: 3, Data: "<{i}>"}.expand()
	for i, want := range []Frame{{10 * time.Millisecond, []byte("<0>")}, {12500 * time.Microsecond, []byte("<1>")}, {15 * time.Millisecond, []byte("<2>")}} {
		if got[i].At != want.At || !bytes.Equal(got[i].Data, want.Data) {
			t.Errorf("frame %d is %v %q", i, got[i].At, got[i].Data)
		}
	}
	if one := (frameJSON{TMS: 1, Data: "x"}).expand(); len(one) != 1 || string(one[0].Data) != "x" {
		t.Errorf("a single frame became %v", one)
	}
}

func TestUnknownKeysAreErrors(t *testing.T) {
	const input = `"input":{"response":{"status":200,"headers":{},"framing":"chunked"},"frames":[],"end":{"t_ms":1,"how":"clean"}}`
	for name, c := range map[string]struct{ file, want string }{
		"no case":               {`{"cases":[]}`, "holds none"},
		"not JSON":              {`{`, "parse cases"},
		"key of a case":         {`{"cases":[{"id":"A","colour":1}]}`, "colour"},
		"key of an input":       {`{"cases":[{"id":"A","input":{"frame":[]},"expect":{}}]}`, "frame"},
		"key of a frame":        {`{"cases":[{"id":"A","input":{"frames":[{"t":1}]},"expect":{}}]}`, "unknown field"},
		"key of an expectation": {`{"cases":[{"id":"A",` + input + `,"expect":{"speed":1}}]}`, `"speed": unknown key`},
		"word of an outcome":    {`{"cases":[{"id":"A",` + input + `,"expect":{"status":"fine"}}]}`, `unknown outcome "fine"`},
		"word of a source":      {`{"cases":[{"id":"A",` + input + `,"expect":{"token_count_source":"tokenizer"}}]}`, "unknown source"},
		"invariant":             {`{"cases":[{"id":"A",` + input + `,"expect":{"invariant":"a < b"}}]}`, "unknown invariant"},
		"type of a value":       {`{"cases":[{"id":"A",` + input + `,"expect":{"ttft_ms":"soon"}}]}`, "ttft_ms"},
		"type of an outcome":    {`{"cases":[{"id":"A",` + input + `,"expect":{"status":1}}]}`, "status"},
		"type of a source":      {`{"cases":[{"id":"A",` + input + `,"expect":{"token_count_source":1}}]}`, "token_count_source"},
		"type of an invariant":  {`{"cases":[{"id":"A",` + input + `,"expect":{"invariant":1}}]}`, "invariant"},
		"expectation":           {`{"cases":[{"id":"A",` + input + `,"expect":3}]}`, "parse expectation"},
		"variant without one":   {`{"cases":[{"id":"A","input":{"variants":[{"name":"x"}]},"expect":{"variants":{"y":{}}}}]}`, `variant "x" has no expectation`},
		"one too many":          {`{"cases":[{"id":"A","input":{"variants":[{"name":"x"}]},"expect":{"variants":{"x":{},"y":{}}}}]}`, "1 variants have 2 expectations"},
		"beside variants":       {`{"cases":[{"id":"A","input":{"variants":[{"name":"x"}]},"expect":{"status":"complete"}}]}`, "unknown field"},
		"within a variant":      {`{"cases":[{"id":"A","input":{"variants":[{"name":"x"}]},"expect":{"variants":{"x":{"speed":1}}}}]}`, `variant "x"`},
	} {
		if _, err := parse([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestExchangeIsOneReadAFrame(t *testing.T) {
	v := Variant{
		Response: &Response{Status: 200, Headers: map[string]string{"Content-Type": "text/event-stream"}},
		Frames:   []Frame{{5 * time.Millisecond, []byte("ab")}, {7 * time.Millisecond, []byte("c")}},
		End:      End{At: 9 * time.Millisecond, How: "clean"},
	}
	x := v.Exchange()
	if string(x.Response.Body.Bytes()) != "abc" || !x.Response.Body.Whole() || len(x.Timeline.Reads) != 2 {
		t.Fatalf("body %q, %d reads", x.Response.Body.Bytes(), len(x.Timeline.Reads))
	}
	t0, _ := x.Timeline.SendStart.NS()
	end, _ := x.Timeline.BodyEnd.NS()
	if at := x.Timeline.Reads[1].At - t0; at != 7_000_000 || end-t0 != 9_000_000 || x.End != exchange.EndEOF {
		t.Errorf("second read at %d, end at %d, %s", at, end-t0, x.End)
	}
	for how, want := range map[string]exchange.End{"reset": exchange.EndReset, "fin_without_last_chunk": exchange.EndShort, "keep_open": exchange.EndEOF} {
		v.End.How = how
		if x := v.Exchange(); x.End != want || (x.Cause == nil) != (want == exchange.EndEOF) {
			t.Errorf("%s: sealed as %s with the cause %v", how, x.End, x.Cause)
		}
	}
	v.Response = nil
	if x := v.Exchange(); x.End != exchange.EndConnectFailed || x.Timeline.SendStart.Happened() {
		t.Errorf("nothing listens: %s", x.End)
	}
	v.RequestBytes = 1 << 20
	if got := v.Exchange().Request.Body.Size; got != 1<<20 {
		t.Errorf("request of %d bytes", got)
	}
}

func TestRecutKeepsBytesAndStamps(t *testing.T) {
	x := &exchange.Exchange{Timeline: exchange.Timeline{Reads: []exchange.Read{{At: 1, Size: 3}, {At: 2, Size: 4}}}}
	got := Recut(x, 5).Timeline.Reads
	want := []exchange.Read{{At: 1, Size: 3}, {At: 2, Size: 2}, {At: 2, Size: 2}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %v", got)
	}
	if n := len(Recut(x, 3).Timeline.Reads); n != 2 {
		t.Errorf("a cut at a boundary made %d reads", n)
	}
}
