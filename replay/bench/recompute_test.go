package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// raw is one answer, taken from the bytes and stamps of its exchange by the arithmetic of this file alone.
type raw struct {
	wave           string
	whole          bool    // it ended as the API says
	start, end     float64 // s of the wall clock
	tokens         []float64
	prompt, cached float64
	completion     float64
	budget         float64
}

// chunk is what the recomputation reads of an event or a whole answer.
type chunk struct {
	Choices []struct {
		Delta   said `json:"delta"`
		Message said `json:"message"`
		Finish  any  `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
		Details    struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

type said struct {
	Content, Reasoning string
	Thought            string `json:"reasoning_content"`
	Calls              []any  `json:"tool_calls"`
}

func (s said) empty() bool { return s.Content+s.Reasoning+s.Thought == "" && len(s.Calls) == 0 }

func readRaw(t *testing.T, x *exchange.Exchange) raw {
	t.Helper()
	origin := float64(x.Timeline.Wall.UnixNano()) / 1e9
	at := func(m exchange.Mark) float64 { ns, _ := m.NS(); return origin + float64(ns)/1e9 }
	var asked struct {
		Stream    bool    `json:"stream"`
		MaxTokens float64 `json:"max_tokens"`
	}
	if err := json.Unmarshal(x.Request.Body.Bytes(), &asked); err != nil {
		t.Fatal(err)
	}
	out := raw{wave: x.Wave, start: at(x.Timeline.SendStart), end: at(x.Timeline.BodyEnd), budget: asked.MaxTokens}
	body := x.Response.Body.Bytes()
	read := func(event []byte, when float64) {
		var c chunk
		if err := json.Unmarshal(event, &c); err != nil {
			t.Fatalf("event %q: %v", event, err)
		}
		if c.Usage != nil {
			out.prompt, out.completion, out.cached = c.Usage.Prompt, c.Usage.Completion, c.Usage.Details.Cached
		}
		for _, ch := range c.Choices {
			out.whole = out.whole || ch.Finish != nil
			if !ch.Delta.empty() {
				out.tokens = append(out.tokens, when)
			}
		}
	}
	if !asked.Stream {
		if x.Response.Status == 200 {
			read(body, 0)
		}
		return out
	}
	for offset := 0; ; {
		n := bytes.Index(body[offset:], []byte("\n\n"))
		if n < 0 {
			break
		}
		data, isData := bytes.CutPrefix(body[offset:offset+n], []byte("data: "))
		offset += n + 2
		if isData && string(data) != "[DONE]" && !bytes.HasPrefix(data, []byte(`{"error"`)) {
			read(data, origin+stampAt(x, offset))
		}
	}
	if x.End != exchange.EndEOF || bytes.Contains(body, []byte(`data: {"error"`)) {
		out.whole = false
	}
	return out
}

// stampAt is when the byte before an offset of the body arrived, in seconds since the origin.
func stampAt(x *exchange.Exchange, offset int) float64 {
	sum := 0
	for _, r := range x.Timeline.Reads {
		if sum += r.Size; sum >= offset {
			return float64(r.At) / 1e9
		}
	}
	return math.NaN()
}

// rates of one answer; NaN where there is none.
func (r *raw) ttft() float64 {
	if len(r.tokens) == 0 {
		return math.NaN()
	}
	return (r.tokens[0] - r.start) * 1000
}

func (r *raw) prefill() float64 {
	if r.cached > r.prompt/20 {
		return math.NaN()
	}
	return r.prompt / (r.ttft() / 1000)
}

func (r *raw) decode() float64 {
	n := len(r.tokens)
	if n == 0 {
		return math.NaN()
	}
	return (r.completion - 1) / (r.tokens[n-1] - r.tokens[0])
}

func (r *raw) wallRate() float64 { return r.completion / (r.end - r.start) }

func (r *raw) short() bool { return r.completion < r.budget/2 }

// middle is the median of the numbers that are some.
func middle(all []float64) float64 {
	var v []float64
	for _, x := range all {
		if !math.IsNaN(x) {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func average(all []raw, of func(*raw) float64) float64 {
	sum, n := 0.0, 0
	for i := range all {
		if v := of(&all[i]); all[i].whole && !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n) // NaN of none
}

// together are the rates of answers that ran together: aggregate, steady and batch.
func together(all []raw) (aggregate, steady, batch, wall float64) {
	from, to, lateFirst, earlyLast := math.Inf(1), math.Inf(-1), math.Inf(-1), math.Inf(1)
	start, end, behind, tokens, lost, untimed := math.Inf(1), math.Inf(-1), 0.0, 0.0, false, false
	for i := range all {
		r := &all[i]
		start, end = min(start, r.start), max(end, r.end)
		tokens += r.completion
		if lost, untimed = lost || !r.whole, untimed || len(r.tokens) == 0; !r.whole || len(r.tokens) == 0 {
			continue
		}
		first, last := r.tokens[0], r.tokens[len(r.tokens)-1]
		from, to, lateFirst, earlyLast = min(from, first), max(to, last), max(lateFirst, first), min(earlyLast, last)
		behind += max(r.completion-1, 0)
	}
	wall = (end - start) * 1000
	if lost {
		return math.NaN(), math.NaN(), math.NaN(), wall
	}
	batch = tokens / (end - start)
	if untimed {
		return math.NaN(), math.NaN(), batch, wall
	}
	inside := 0.0
	for i := range all {
		for _, at := range all[i].tokens {
			if at > lateFirst && at <= earlyLast {
				inside += all[i].completion / float64(len(all[i].tokens))
			}
		}
	}
	steady = inside / (earlyLast - lateFirst)
	if earlyLast <= lateFirst { // they never decoded at the same time
		steady = math.NaN()
	}
	return behind / (to - from), steady, batch, wall
}

// expected are the numbers of a cell by the exchanges that its record names.
func expected(t *testing.T, rec *matrix.Record, seen map[exchange.ID]*exchange.Exchange) map[string]float64 {
	t.Helper()
	var names []string
	waves := map[string][]raw{}
	for _, id := range rec.Exchanges {
		r := readRaw(t, seen[id])
		if waves[r.wave] == nil {
			names = append(names, r.wave)
		}
		waves[r.wave] = append(waves[r.wave], r)
	}
	columns := map[string][]float64{}
	add := func(name string, v float64) { columns[name] = append(columns[name], v) }
	for _, name := range names {
		set := waves[name]
		half := strings.HasPrefix(rec.Scenario, "loom_decode") || strings.Contains(rec.Scenario, "steady_")
		short := slices.ContainsFunc(set, func(r raw) bool { return r.whole && r.short() })
		if half && short && slices.ContainsFunc(names, func(other string) bool { return strings.Contains(other, "/again") && again(other, name) }) {
			continue // it was asked for once more, and that one counts
		}
		full := set
		if !half { // its short answers stand aside where another has a rate
			full = slices.DeleteFunc(slices.Clone(set), func(r raw) bool { return r.short() })
		}
		decode := (*raw).decode
		if !rec.Stream {
			decode = (*raw).wallRate
		}
		switch {
		case half && short:
			add("decode_tps", math.NaN())
		default:
			add("decode_tps", average(full, decode))
		}
		add("short decode_tps", average(set, decode))
		add("ttft_ms", average(set, (*raw).ttft))
		add("prefill_tps", average(set, (*raw).prefill))
		add("prompt_tokens", average(set, func(r *raw) float64 { return r.prompt }))
		add("completion_tokens", average(set, func(r *raw) float64 { return r.completion }))
		aggregate, steady, batch, wall := together(set)
		if half && short {
			aggregate, steady, batch = math.NaN(), math.NaN(), math.NaN()
		}
		add("aggregate_decode_tps", aggregate)
		add("steady_tps", steady)
		add("batch_tps", batch)
		add("total_wall_ms", wall)
	}
	out := map[string]float64{}
	for name, column := range columns {
		out[name] = middle(column)
	}
	if math.IsNaN(out["decode_tps"]) && !strings.Contains(rec.Scenario, "loom") {
		out["decode_tps"] = out["short decode_tps"]
	}
	delete(out, "short decode_tps")
	if rec.Concurrency == 1 {
		out["aggregate_decode_tps"] = out["decode_tps"]
		delete(out, "steady_tps")
		delete(out, "batch_tps")
	}
	return out
}

// again reports whether a wave is the second try of another.
func again(second, first string) bool { return strings.Replace(second, "/again", "", 1) == first }

// TestNumbersByAnotherHand holds that what records say is what the bytes and stamps of their exchanges come to, computed
// without the packages that define it.
func TestNumbersByAnotherHand(t *testing.T) {
	usual := sim.Options{TTFT: 90 * time.Millisecond, PrefillTPS: 3000, DecodeTPS: 80, Answer: 200, Timings: true, Usage: sim.UsageAlways, Jitter: 0.4}
	with := func(change func(*sim.Options)) sim.Options { o := usual; change(&o); return o }
	p := &place{options: map[string]sim.Options{
		"usual":   usual,
		"pairs":   with(func(o *sim.Options) { o.PerEvent = 2 }),
		"thinks":  with(func(o *sim.Options) { o.Reasoning = 20 }),
		"cached":  with(func(o *sim.Options) { o.Cached = 12 }),
		"short":   with(func(o *sim.Options) { o.Answer = 20 }),
		"held":    with(func(o *sim.Options) { o.Merge = 1000 }),
		"queues":  with(func(o *sim.Options) { o.Answer = 160 }),
		"loses":   usual,
		"cut":     with(func(o *sim.Options) { o.Fault = sim.Fault{Kind: sim.FaultNoLastChunk, After: 10} }),
		"stutter": with(func(o *sim.Options) { o.Jitter = 1 }),
	}, config: map[string]sim.Config{"queues": {Slots: 2}, "loses": {Handler: losing}, "stutter": {Handler: sometimesShort}}}
	engines := []string{"usual", "pairs", "thinks", "cached", "short", "held", "queues", "loses", "cut", "stutter"}
	plan := planOf(engines, []string{"text_short", "function_call", "loom_decode", "loom_steady_4"}, 4, 1, 3)
	for i := range plan.Groups {
		for j := range plan.Groups[i].Cells {
			c := &plan.Groups[i].Cells[j]
			c.Stream = c.Scenario != "function_call" || i%2 == 0
			if c.Scenario == "loom_decode" || c.Scenario == "loom_steady_4" {
				c.MaxTokens = 300
			}
		}
	}
	p.play(t, plan, nil, func(t *testing.T, out *played) {
		if out.err != nil {
			t.Fatal(out.err)
		}
		out.compareAll(t)
		out.oddRepeats(t)
	})
}

// compareAll holds every number of every record against that of this file.
func (p *played) compareAll(t *testing.T) {
	t.Helper()
	seen := map[exchange.ID]*exchange.Exchange{}
	for _, x := range p.place.seen {
		seen[x.ID] = x
	}
	compared := map[string]int{}
	for _, rec := range p.records {
		if rec.Status != matrix.StatusOK {
			continue
		}
		for field, want := range expected(t, &rec, seen) {
			compared[checkNumber(t, field, &rec, want)]++
		}
	}
	t.Logf("%d records, compared %v", len(p.records), compared)
	for field, least := range map[string]int{"decode_tps": 60, "prefill_tps": 50, "ttft_ms": 50, "aggregate_decode_tps": 50, "batch_tps": 30, "steady_tps": 20,
		"absent decode_tps": 5, "absent prefill_tps": 5, "absent ttft_ms": 5, "absent aggregate_decode_tps": 5, "absent batch_tps": 1, "absent steady_tps": 5} {
		if compared[field] < least {
			t.Errorf("%s was compared %d times", field, compared[field])
		}
	}
}

// oddRepeats holds which repeats make up the medians of cells with short and lost answers.
func (p *played) oddRepeats(t *testing.T) {
	t.Helper()
	again, aside := p.records["stutter__cpu__m__loom_decode"], p.records["stutter__cpu__m__text_short"]
	if len(again.Exchanges) != 6 || again.Spreads["decode_tps"].N != 4 || slices.Contains(again.Flags, measure.FlagShortAnswer) {
		t.Errorf("asked again: %d exchanges, %+v, flags %v", len(again.Exchanges), again.Spreads["decode_tps"], again.Flags)
	}
	if aside.Spreads["decode_tps"].N != 2 || !slices.Contains(aside.Flags, FlagShortLeftOut) || slices.Contains(aside.Flags, measure.FlagShortAnswer) {
		t.Errorf("left out: %+v, flags %v", aside.Spreads["decode_tps"], aside.Flags)
	}
	if all := p.records["short__cpu__m__text_short"]; all.DecodeTPS == nil || !slices.Contains(all.Flags, measure.FlagShortAnswer) {
		t.Errorf("all short: decode %v, flags %v", all.DecodeTPS, all.Flags)
	}
	if lost := p.records["loses__cpu__m__text_short__c3"]; lost.RequestsOK != 2 || lost.Spreads["steady_tps"].N != 3 || lost.Spreads["decode_tps"].N != 4 {
		t.Errorf("one of three was lost: %d ok, %+v", lost.RequestsOK, lost.Spreads)
	}
}

// checkNumber holds a number of a record against the one of this file, and its median over repeats without the rounding. It
// says what was compared.
func checkNumber(t *testing.T, field string, rec *matrix.Record, want float64) (compared string) {
	t.Helper()
	name := rec.Cell
	rounded, exact := numberOf(t, rec, field), rec.Exact(field)
	held := strings.HasPrefix(name, "held") && rec.Stream
	if held && slices.Contains([]string{"ttft_ms", "prefill_tps", "decode_tps", "aggregate_decode_tps", "steady_tps"}, field) {
		want = math.NaN() // the stamps of an answer that was held back say nothing of its tokens
	}
	switch {
	case math.IsNaN(want):
		if rounded != nil || exact != nil || rec.Absent[field] == "" && field != "aggregate_decode_tps" {
			t.Errorf("%s: %s = %v (%v), want none; absent %q", name, field, show(rounded), show(exact), rec.Absent[field])
		}
		return "absent " + field
	case rounded == nil || exact == nil:
		t.Errorf("%s: %s is absent (%s), want %.6f", name, field, rec.Absent[field], want)
	case math.Abs(*exact-want) > 1e-6*want:
		t.Errorf("%s: %s = %.9f without rounding, want %.9f", name, field, *exact, want)
	case math.Abs(*rounded-want) > 0.0500001 && !strings.HasSuffix(field, "_tokens"):
		t.Errorf("%s: %s = %v, want %.6f to one decimal", name, field, *rounded, want)
	}
	return field
}

func show(v *float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%.6f", *v)
}

func numberOf(t *testing.T, rec *matrix.Record, field string) *float64 {
	t.Helper()
	b, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	v, known := all[field]
	if !known {
		t.Fatalf("a record has no field %s", field)
	}
	if n, ok := v.(float64); ok {
		return &n
	}
	return nil
}

// losing refuses one of three requests of the second repeat.
func losing(r sim.Request) *sim.Script {
	if bytes.Contains(r.Body, []byte("-c3-r1-i2]")) {
		return sim.ErrorScript(r, 500, "server_error", "out of memory")
	}
	return nil
}

// sometimesShort ends the first try of the first two repeats after a few tokens; with several requests at a time only one of
// the first repeat's.
func sometimesShort(r sim.Request) *sim.Script {
	has := func(text string) bool { return bytes.Contains(r.Body, []byte(text)) }
	noted := regexp.MustCompile(`"\[[0-9a-f]{16}\]`).Match(r.Body) // a second try, or a warm-up
	if noted || !has(`"stream":true`) || !has("-c1-r0-i0]") && !has("-c1-r1-i0]") && !has("-c3-r0-i1]") {
		return nil
	}
	s := &sim.Script{Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}}
	const tokens = 9
	for i := range tokens {
		s.Steps = append(s.Steps, sim.Step{At: time.Duration(60+17*i) * time.Millisecond, Token: true, Tokens: 1,
			Data: fmt.Appendf(nil, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word%d\"},\"finish_reason\":null}]}\n\n", i)})
	}
	end := s.Steps[tokens-1].At + time.Millisecond
	s.Steps = append(s.Steps,
		sim.Step{At: end, Data: []byte("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")},
		sim.Step{At: end, Data: fmt.Appendf(nil, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", tokens)})
	return s
}
