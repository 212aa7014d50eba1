package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay"
)

// sample is one measuring of a cell: what the requests, or conversations, that ran together came to.
type sample struct {
	planned, ok   int                // conversations, and those of which at least the first turn was answered in full
	turns, of     int                // of the conversation that came least far
	values        map[string]float64 // by the name in internal/measure: means over the conversations that are ok
	short         map[string]bool    // of values: they are rates of short answers, of which none counts beside a full one
	absent        map[string]exchange.Reason
	wave          exchange.WaveRate
	wall          time.Duration
	source        measure.DecodeSource
	usage         exchange.Basis
	finish        string
	text          string // of the first conversation that is ok
	answers       []string
	flags         []string
	lack          *lack  // for which none is ok; nil for other reasons
	why           string // why not all are ok, or why conversations stopped
	tools         *bool  // nil where no gate looks at calls
	gates         []exchange.CaseVerdict
	exchanges     []exchange.ID
	warmups       []exchange.ID
	completions   []int // tokens of the last answers, as far as they are known
	draftsCounted bool
}

// figures of a record that are means over conversations.
var meanFigures = []string{
	measure.TTFTMS, measure.PrefillTPS, measure.DecodeTPS, measure.WallTPS, measure.EngineDecodeTPS, measure.EnginePrefillTPS,
	measure.PromptTokens, measure.CompletionTokens, measure.DraftAcceptance,
}

// decodeFigures are those of which a short answer is no sample.
var decodeFigures = []string{measure.DecodeTPS, measure.WallTPS, measure.EngineDecodeTPS}

// sampleOf reads what a wave came to. streamed says whether its answers were asked for token by token.
func sampleOf(w *replay.SuiteWave, streamed bool) *sample {
	s := &sample{planned: len(w.Cases), wall: w.Wall}
	s.source = measure.SourceStreamWindow
	if !streamed {
		s.source = measure.SourceRequestWall
	}
	var means means
	var members []measure.WaveMember
	var stops []string
	for i, c := range w.Cases {
		last, done := s.conversation(c)
		if i == 0 || done < s.turns {
			s.turns = done
		}
		s.of = c.Member.Turns
		if c.Stopped != nil || done < c.Member.Turns {
			stops = append(stops, s.stopped(c, done))
		}
		if last == nil {
			members = append(members, measure.FailedMember())
			continue
		}
		s.ok++
		members = append(members, memberOf(c, last, done))
		s.answer(last)
		means.add(last)
	}
	if s.ok == 0 {
		s.lack = lackOf(w.Cases)
	}
	s.values, s.short, s.absent = means.take()
	s.wave = measure.Wave(w.Name, members)
	slices.Sort(stops)
	s.why = strings.Join(slices.Compact(stops), "; ")
	s.judge(w.Cases)
	return s
}

// memberOf is the part of a conversation in the rates of its wave: its last turn that was answered in full. One that came
// again did not run with the others, and one behind which a request failed is none of which the others are a match.
func memberOf(c *replay.SuiteCase, last *measure.Analysis, done int) measure.WaveMember {
	x := c.Exchanges[done-1]
	if x.Item != nil && x.Item.Attempt > 0 || len(c.Exchanges) > done {
		return measure.FailedMember()
	}
	return measure.WaveMemberOf(x, last)
}

// means sums up the figures of conversations that ran together.
type means struct {
	full, short map[string][]float64
	why         map[string]exchange.Reason
}

func (m *means) add(a *measure.Analysis) {
	if m.full == nil {
		*m = means{map[string][]float64{}, map[string][]float64{}, map[string]exchange.Reason{}}
	}
	for _, name := range meanFigures {
		f := a.Figures[name]
		switch {
		case !f.Present() && m.why[name] == "":
			m.why[name] = f.Reason
		case !f.Present():
		case a.Flagged(measure.FlagShortAnswer) && slices.Contains(decodeFigures, name):
			m.short[name] = append(m.short[name], f.Value)
		default:
			m.full[name] = append(m.full[name], f.Value)
		}
	}
}

// take are the means, those of them that rest on short answers because there are no others, and why the rest is absent.
func (m *means) take() (values map[string]float64, short map[string]bool, absent map[string]exchange.Reason) {
	values, short, absent = map[string]float64{}, map[string]bool{}, map[string]exchange.Reason{}
	for _, name := range meanFigures {
		v := m.full[name]
		if len(v) == 0 && len(m.short[name]) > 0 {
			v, short[name] = m.short[name], true
		}
		if len(v) == 0 {
			absent[name] = m.why[name]
			continue
		}
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		values[name] = sum / float64(len(v))
	}
	return values, short, absent
}

// withoutRates leaves out all rates that rest on how long the answers are.
func (s *sample) withoutRates() {
	for _, name := range decodeFigures {
		delete(s.values, name)
		s.absent[name] = measure.FlagShortAnswer
	}
	for _, name := range []string{measure.AggregateDecodeTPS, measure.SteadyTPS, measure.BatchTPS} {
		s.wave.Figures[name] = exchange.Absent("", measure.FlagShortAnswer)
	}
}

// conversation reads a conversation: the analysis of the last turn that was answered in full, nil when none was, and how
// many were.
func (s *sample) conversation(c *replay.SuiteCase) (last *measure.Analysis, done int) {
	for _, x := range c.Exchanges {
		s.exchanges = append(s.exchanges, x.ID)
		a := measure.Analyze(x)
		for _, f := range a.Flags {
			if !slices.Contains(s.flags, f) {
				s.flags = append(s.flags, f)
			}
		}
		if x.Item != nil && x.Item.Attempt > 0 && !slices.Contains(s.flags, FlagRetried) {
			s.flags = append(s.flags, FlagRetried)
		}
		if a.Outcome != exchange.OutcomeComplete {
			if s.why == "" && last == nil {
				s.why = failure(a)
			}
			return last, done
		}
		if t := a.Transcript.Timings; t != nil && (t.DraftN != nil || t.DraftAccepted != nil) {
			s.draftsCounted = true
		}
		last, done = a, done+1
	}
	return last, done
}

// failure is why an answer is not whole.
func failure(a *measure.Analysis) string {
	if a.Cause == nil {
		return string(a.Outcome)
	}
	return fmt.Sprintf("%s: %s", a.Outcome, a.Cause.Text)
}

// stopped is why a conversation did not come to its end, in the words of result files.
func (s *sample) stopped(c *replay.SuiteCase, done int) string {
	why := "the answer is not whole"
	if n := len(c.Exchanges); n > done {
		why = failure(measure.Analyze(c.Exchanges[n-1]))
	} else if c.Stopped != nil {
		why = c.Stopped.Error()
	}
	if c.Member.Turns == 1 {
		return why
	}
	after := fmt.Sprintf("turn %d/%d: ", done, c.Member.Turns)
	if _, rest, said := strings.Cut(why, after); said { // the error says it too
		why = rest
	}
	return "conversation stopped after " + after + why
}

// answer takes what the last answer of a conversation says.
func (s *sample) answer(a *measure.Analysis) {
	choice := a.Transcript.Choice0()
	text := choice.Text
	if text == "" {
		text = choice.Reasoning
	}
	if s.ok == 1 {
		s.text = text
		if choice.FinishReason != nil {
			s.finish = *choice.FinishReason
		}
	}
	sum := sha256.Sum256([]byte(choice.Text))
	if d := "sha256:" + hex.EncodeToString(sum[:]); !slices.Contains(s.answers, d) {
		s.answers = append(s.answers, d)
	}
	if f := a.Figures[measure.CompletionTokens]; f.Present() {
		s.completions = append(s.completions, int(f.Value))
		if s.usage != exchange.BasisEstimated {
			s.usage = f.Basis
		}
	}
}

// toolFamily are the gates that look at calls of tools and at what they were for.
const toolFamily = "tool"

// judge sums up what the gates said: of each gate the worst verdict.
func (s *sample) judge(cases []*replay.SuiteCase) {
	for _, c := range cases {
		for _, v := range c.Verdicts {
			if g, found := gates.Lookup(v.Gate); found && g.Family == toolFamily {
				fine := v.Status == exchange.VerdictOK && c.Stopped == nil && (s.tools == nil || *s.tools)
				s.tools = &fine
			}
			s.gates = worse(s.gates, []exchange.CaseVerdict{{Gate: v.Gate, Version: v.Version, Status: v.Status, Lenient: v.Lenient}})
		}
	}
}

// severity orders the words of verdicts by what is told first.
func severity(v exchange.VerdictStatus) int {
	return slices.Index([]exchange.VerdictStatus{exchange.VerdictSkipped, exchange.VerdictOK, exchange.VerdictUnsupported, exchange.VerdictNotRun,
		exchange.VerdictIncomparable, exchange.VerdictPartial, exchange.VerdictFail}, v)
}
