package replay

import (
	"maps"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// WaveJudged is what requests that ran together come to by the rules of today.
type WaveJudged struct {
	exchange.WaveRate
	Passed   int    `json:"passed"`   // members whose status is ok
	Eligible bool   `json:"eligible"` // all members passed: its rates may be compared
	Why      string `json:"why,omitempty"`
}

// openWaves bounds the waves whose members are gathered at a time. Waves follow each other, so that few are open; the
// members of one that comes back later cannot be put together any more.
const openWaves = 64

// waveTally gathers the members of waves in the order of acceptance.
type waveTally struct {
	planned map[string]int // streams of each wave, as the run states them; nil when it does not
	open    map[string]*openWave
	order   []string // of the open ones, the one that was touched last at the end
	closed  map[string]int
	done    []WaveJudged
}

type openWave struct {
	members []measure.WaveMember
	passed  int
	why     string // why it is not eligible, of the first member that says so
}

func newWaveTally(run *exchange.Run) *waveTally {
	t := &waveTally{open: map[string]*openWave{}, closed: map[string]int{}}
	if run.Replay != nil && len(run.Replay.Waves) > 0 {
		t.planned = map[string]int{}
		for _, w := range run.Replay.Waves {
			t.planned[w.Wave] = w.Streams
		}
	}
	return t
}

// add takes one exchange. One that cannot be read tells its wave through its row alone, if at all.
func (t *waveTally) add(j *Judged) {
	if j.Wave == "" || j.stored != nil && j.stored.Item != nil && j.stored.Item.Warmup {
		return
	}
	if i, again := t.closed[j.Wave]; again {
		t.done[i].void("its members do not stand together in the record")
		t.done[i].Streams++
		return
	}
	w := t.open[j.Wave]
	if w == nil {
		w = &openWave{}
		t.open[j.Wave] = w
	}
	t.touch(j.Wave)
	if j.member != nil {
		w.members = append(w.members, *j.member)
	}
	if j.Status == exchange.VerdictOK {
		w.passed++
	} else if w.why == "" {
		w.why = "member " + string(j.ID) + ": " + j.Reason
	}
	if len(t.order) > openWaves {
		t.close(t.order[0])
	}
}

// touch puts a wave at the end of the order.
func (t *waveTally) touch(name string) {
	if n := len(t.order); n > 0 && t.order[n-1] == name {
		return
	}
	if i := slices.Index(t.order, name); i >= 0 {
		t.order = slices.Delete(t.order, i, i+1)
	}
	t.order = append(t.order, name)
}

func (t *waveTally) close(name string) {
	w := t.open[name]
	delete(t.open, name)
	t.order = slices.DeleteFunc(t.order, func(n string) bool { return n == name })
	out := WaveJudged{WaveRate: measure.Wave(name, w.members), Passed: w.passed, Eligible: true}
	if n, told := t.planned[name]; told && n != len(w.members) {
		out.void("the run tells of a wave of other size")
	} else if w.why != "" {
		out.void(w.why)
	}
	t.closed[name] = len(t.done)
	t.done = append(t.done, out)
}

// void takes the rates away: one failing member is enough.
func (w *WaveJudged) void(why string) {
	if !w.Eligible {
		return
	}
	w.Eligible, w.Why = false, why
	for _, name := range slices.Sorted(maps.Keys(w.Figures)) {
		if f := w.Figures[name]; f.Present() {
			w.Figures[name] = exchange.Absent(f.Unit, measure.ReasonMemberFailed)
		}
	}
}

// end closes what is open, and notes the waves that the run tells of and nothing is there of.
func (t *waveTally) end() []WaveJudged {
	for len(t.order) > 0 {
		t.close(t.order[0])
	}
	for _, name := range slices.Sorted(maps.Keys(t.planned)) {
		if _, there := t.closed[name]; !there {
			out := WaveJudged{WaveRate: measure.Wave(name, nil), Eligible: true}
			out.void("no member is on record")
			t.done = append(t.done, out)
		}
	}
	return t.done
}
