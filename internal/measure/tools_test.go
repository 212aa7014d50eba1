package measure

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// streamsJSON are timed lines of streams and what TensorSharp's definitions make of them.
type streamsJSON struct {
	Input struct {
		RequestSentMS float64        `json:"request_sent_ms"`
		Streams       []toolStream   `json:"streams"`
		SplitReads    *splitReadJSON `json:"split_reads"`
	} `json:"input"`
	Expected struct {
		Streams    []map[string]json.RawMessage `json:"streams"`
		SplitReads map[string]json.RawMessage   `json:"split_reads"`
	} `json:"expected"`
	Tolerance map[string]float64 `json:"tolerance"`
}

type toolStream struct {
	Name   string `json:"name"`
	Events []struct {
		TMS  float64 `json:"t_ms"`
		Line string  `json:"line"`
	} `json:"events"`
}

type splitReadJSON struct {
	Reads []struct {
		TMS float64 `json:"t_ms"`
		Hex string  `json:"hex"`
	} `json:"reads"`
}

// toolCases are the vectors of other tools' definitions.
type toolCases struct {
	StreamMetrics  streamsJSON  `json:"stream_metrics"`
	StreamEdges    streamsJSON  `json:"stream_edges"`
	DecodeFormulas formulasJSON `json:"decode_formulas"`
}

func loadToolCases(t *testing.T) toolCases {
	t.Helper()
	raw, err := os.ReadFile("testdata/tool-semantics.json")
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var out toolCases
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// timed is one write of bytes.
type timed struct {
	ms   float64
	data []byte
}

// toolExchange is an answer whose every write is one read; the body ends with the last.
func toolExchange(writes []timed) *exchange.Exchange {
	s := newScript()
	s.x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}
	for _, w := range writes {
		s.read(w.ms)
		s.x.Timeline.Reads[len(s.x.Timeline.Reads)-1].Size = len(w.data)
		s.x.Response.Body.Chunks = append(s.x.Response.Body.Chunks, w.data)
		s.x.Response.Body.Size += int64(len(w.data))
	}
	s.x.Response.Body.Kept = s.x.Response.Body.Size
	return s.x
}

// writes puts the blank line of a server after each data line, and a plain line end after the others.
func (s toolStream) writes() []timed {
	var out []timed
	for _, e := range s.Events {
		end := "\n"
		if strings.HasPrefix(e.Line, "data:") {
			end = "\n\n"
		}
		out = append(out, timed{e.TMS, []byte(e.Line + end)})
	}
	return out
}

func TestToolStreams(t *testing.T) {
	cases := loadToolCases(t)
	n := 0
	for _, c := range []streamsJSON{cases.StreamMetrics, cases.StreamEdges} {
		if c.Input.RequestSentMS != 0 || len(c.Input.Streams) != len(c.Expected.Streams) {
			t.Fatalf("%d streams, %d expectations", len(c.Input.Streams), len(c.Expected.Streams))
		}
		for i, s := range c.Input.Streams {
			n++
			t.Run(s.Name, func(t *testing.T) {
				x := toolExchange(s.writes())
				tr := wire.Parse(x)
				row := TensorSharp(x, tr)
				for key, raw := range c.Expected.Streams[i] {
					checkTool(t, key, raw, toolResult{row, tr, s.Name, c.Tolerance})
				}
			})
		}
	}
	if n != 7 {
		t.Errorf("%d streams", n)
	}
}

// toolResult is what one stream came to.
type toolResult struct {
	row       Row
	t         *wire.Transcript
	name      string
	tolerance map[string]float64
}

// checkTool compares one expected value. Every key must be known.
func checkTool(t *testing.T, key string, raw json.RawMessage, got toolResult) {
	t.Helper()
	switch key {
	case "name":
		wantJSON(t, key, raw, got.name)
	case "status":
		wantJSON(t, key, raw, map[bool]string{true: "ok", false: "fail"}[got.row.OK])
	case "error_kind":
		wantJSON(t, key, raw, got.row.Failure)
	case "usage_present":
		wantJSON(t, key, raw, got.row.UsageSeen)
	case "decode_timing_source":
		source := map[DecodeSource]*string{"": nil, SourceStreamWindow: ref("stream_window"), SourceEngine: ref("server")}[got.row.DecodeSource]
		wantJSON(t, key, raw, source)
	case "finish_reason":
		wantJSON(t, key, raw, got.t.FinishReason)
	case "content":
		wantJSON(t, key, raw, got.t.Choice0().Text)
	case "reasoning":
		wantJSON(t, key, raw, got.t.Choice0().Reasoning)
	case "tool_calls":
		wantJSON(t, key, raw, append([]wire.ToolCall{}, got.t.Choice0().ToolCalls...))
	case "done_seen":
		wantJSON(t, key, raw, slices.ContainsFunc(got.t.Events, func(e wire.Event) bool { return e.Done }))
	case "rates_reported":
		fs := got.row.Figures
		wantJSON(t, key, raw, fs[DecodeTPS].Present() || fs[PrefillTPS].Present() || fs[SetDecodeStream].Present())
	case TTFTMS, AnswerTTFTMS, LastTokenMS, TotalWallMS, PromptTokens, CompletionTokens, SetTokenDeltas, PrefillTPS, DecodeTPS, SetDecodeStream:
		wantToolFigure(t, key, raw, got)
	default:
		t.Errorf("unknown key %q", key)
	}
}

func wantJSON[T any](t *testing.T, key string, raw json.RawMessage, got T) {
	t.Helper()
	var want T
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", key, diff)
	}
}

func wantToolFigure(t *testing.T, key string, raw json.RawMessage, got toolResult) {
	t.Helper()
	var want *float64
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	f, ok := got.row.Figures[key]
	switch tolerance := got.tolerance[strings.TrimSuffix(key, "_stream_window")]; {
	case !ok:
		t.Errorf("%s is not there at all", key)
	case want == nil && f.Present():
		t.Errorf("%s is %v, want null", key, f.Value)
	case want != nil && (!f.Present() || math.Abs(f.Value-*want) > max(tolerance, 1e-9)):
		t.Errorf("%s is %+v, want %v", key, f, *want)
	}
}

// TestToolSplitReads cuts characters and lines between reads.
func TestToolSplitReads(t *testing.T) {
	c := loadToolCases(t).StreamEdges
	var writes []timed
	for _, r := range c.Input.SplitReads.Reads {
		b, err := hex.DecodeString(r.Hex)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, timed{r.TMS, b})
	}
	x := toolExchange(writes)
	tr := wire.Parse(x)
	row := TensorSharp(x, tr)
	sum := sha256.Sum256(x.Response.Body.Bytes())
	got := toolResult{row: row, t: tr}
	for key, raw := range c.Expected.SplitReads {
		switch key {
		case "first_token_ms":
			wantToolFigure(t, TTFTMS, raw, got)
		case "forwarded_bytes_sha256":
			wantJSON(t, key, raw, hex.EncodeToString(sum[:]))
		default:
			checkTool(t, key, raw, got)
		}
	}
	if len(c.Expected.SplitReads) != 6 {
		t.Errorf("%d expectations", len(c.Expected.SplitReads))
	}
}
