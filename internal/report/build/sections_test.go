package build

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
)

// rowOf is the row of a table whose first cell shows so, as words.
func rowOf(t *testing.T, s report.Section, first string) []string {
	t.Helper()
	for _, row := range s.Table.Rows {
		if row[0].Show(s.Table.Columns[0]) != first {
			continue
		}
		var out []string
		for i, c := range row {
			out = append(out, c.Show(s.Table.Columns[i]))
		}
		return out
	}
	t.Fatalf("%s has no row %q: %v", s.Title, first, s.Table.Rows)
	return nil
}

func pointer[T any](v T) *T { return &v }

// scheduled is a run of an open loop at a rate.
func scheduled(t *testing.T, name string, rate float64, invalid string) *Run {
	r := newRig(t, name, "rate "+name, nil, workload(1, "")[:2])
	spread := exchange.Spread{N: 2, P50: pointer(10 * rate), P99: pointer(20 * rate), Max: pointer(30 * rate)}
	r.run.Run.Replay = &exchange.Replay{Workload: "w1:a", Plan: "p1:b", Driver: "rate", Source: "src", Seed: 7, Invalid: invalid, Settings: exchange.ReplaySettings{Concurrency: 4, Rate: rate, Arrivals: "poisson", Repeats: 2, Warmup: 1, Nonce: true},
		Schedule: &exchange.Schedule{Planned: 3, Sent: 2, PlannedRate: &rate, AchievedRate: &rate, LagMS: spread, SentMS: spread, IntendedMS: spread, SentTTFT: spread, IntendedTTFT: spread}}
	return r.run
}

// TestSchedule holds that a run that missed its schedule says so, and that latency is drawn against the rate.
func TestSchedule(t *testing.T) {
	e := &Evidence{Runs: []*Run{scheduled(t, "BBBB", 8, "schedule_not_met: late"), scheduled(t, "AAAA", 2, "")}}
	s, ok := e.scheduleSection()
	if !ok || len(s.Charts) != 1 {
		t.Fatalf("%+v", s)
	}
	if got := rowOf(t, s, "rate BBBB"); got[1] != "3" || got[2] != "2" || got[6] != "160.0" || got[12] != "no: schedule_not_met: late" {
		t.Errorf("%q", got)
	}
	if got := rowOf(t, s, "rate AAAA"); got[12] != "yes" {
		t.Errorf("%q", got)
	}
	again := e.reproduceSection()
	want := "benchproxy replay src --target http://127.0.0.1:8080 --rate 8 --arrivals poisson --concurrency 4 --repeats 2 --warmup 1 --nonce --retries 0 --seed 7"
	if got := rowOf(t, again, "rate BBBB, made by"); got[1] != want {
		t.Errorf("%q, want %q", got[1], want)
	}
	if got := rowOf(t, again, "rate BBBB, driver"); got[1] != "rate, concurrency 4, repeats 2, seed 7, 8 req/s poisson, nonce in every prompt" {
		t.Errorf("%q", got)
	}
}

// TestWaves holds the three rates of waves, and that a wave with a failed member has none.
func TestWaves(t *testing.T) {
	var answers []answer
	for i := range 4 {
		answers = append(answers, answer{seq: i + 1, model: "m", prompt: 10, tokens: 20, ttft: 50, gap: 10, limit: 20, wave: "w1"})
	}
	answers = append(answers, answer{seq: 5, model: "m", prompt: 10, tokens: 20, ttft: 50, gap: 10, limit: 20, wave: "w2"}, answer{seq: 6, model: "m", prompt: 10, tokens: 5, ttft: 50, gap: 10, limit: 20, wave: "w2", cut: true})
	r := newRig(t, "AAAA", "waves", nil, nil)
	for _, w := range answers {
		x := w.written("AAAA")
		x.Timeline.Wall = origin // all at once
		r.add(x)
	}
	e := &Evidence{Runs: []*Run{r.run}}
	s, ok := e.wavesSection()
	if !ok || len(s.Table.Rows) != 2 {
		t.Fatalf("%+v", s.Table.Rows)
	}
	two, four := s.Table.Rows[0], s.Table.Rows[1]
	if v, _ := four[7].Value(); v != 400 {
		t.Errorf("aggregate of four: %v", four)
	}
	for _, c := range two[7:] {
		if _, ok := c.Value(); ok || c.Show(report.Column{}) != "—" {
			t.Errorf("a failed member leaves a rate: %+v", c)
		}
	}
}

// TestDraftsAndInstrument holds what is told of drafting, of the selftest and of a device that is not the one asked for.
func TestDraftsAndInstrument(t *testing.T) {
	r := newRig(t, "AAAA", "drafting", nil, workload(1, ""))
	r.run.Run.Drafting = &exchange.Drafting{Method: "eagle", BaselineTPS: pointer(50.0)}
	r.run.Run.Instrument = &exchange.Instrument{ID: "01SELFTEST", Time: origin, Host: exchange.Host{OS: "linux", Arch: "amd64", Cores: 8, CPU: pointer("a CPU"), Virtual: pointer(false)},
		Noise: []exchange.NoiseFloor{{Load: exchange.LoadIdle, Streams: 1, US: pointer(12.0)}, {Load: exchange.LoadIdle, Streams: 64, US: pointer(40.0)}}}
	e := &Evidence{Engine: nameOf, Runs: []*Run{r.run}}
	s, ok := e.draftsSection()
	if got := rowOf(t, s, "drafting"); !ok || got[1] != "eagle" || got[3] != "50.0" || got[6] != "2.00×" {
		t.Errorf("%q", got)
	}
	s, _ = e.instrumentSection()
	if got := rowOf(t, s, "drafting"); got[6] != "12.0" || got[7] != "—" || got[8] != "01SELFTEST" {
		t.Errorf("%q", got)
	}
	if got := rowOf(t, e.machinePart(), "drafting"); got[1] != "a CPU" || got[2] != "8" || got[7] != "no" {
		t.Errorf("%q", got)
	}
	run := r.run.Run
	run.Deployments = []exchange.Deployment{{Upstream: "engine", ReadAt: time.Time{}, Identity: exchange.Identity{Engine: "llamacpp"}, RequestedDevice: pointer("cuda"), ObservedDevice: pointer("cpu"), CPUFallback: true,
		Drafting: pointer(true), DraftMethod: pointer("mtp"), WeightsDigest: pointer("sha256:0123456789abcdef0123")}, {Upstream: "other"}}
	fell := NewRun(run, "engine", nil)
	if fell.Label != "drafting@engine (CPU fallback)" {
		t.Errorf("label %q", fell.Label)
	}
	p := (&Evidence{Engine: nameOf, Runs: []*Run{fell}}).enginesPart()
	got := rowOf(t, p, fell.Label)
	if len(p.Table.Rows) != 1 || got[6] != "cuda" || !strings.Contains(got[7], "CPU fallback") || got[10] != "on mtp" || got[11] != "sha256:0123456789ab…" || len(p.Notes) != 1 {
		t.Errorf("%q, notes %q", got, p.Notes)
	}
	limits := (&Evidence{Runs: []*Run{r.run}}).limitsSection()
	if !slices.ContainsFunc(limits.Lead, func(s string) bool { return strings.HasPrefix(s, "2 answers of drafting carry no token count") }) {
		t.Errorf("%q", limits.Lead)
	}
}

// TestLongRunIsBounded holds that a run longer than the lists says how much they leave out, and loses no sample.
func TestLongRunIsBounded(t *testing.T) {
	r := newRig(t, "AAAA", "long", nil, nil)
	const more = 5
	x := answer{seq: 1, model: "m", prompt: 10, tokens: 3, ttft: 50, gap: 10, limit: 3}.written("AAAA")
	for i := range mostListed + more {
		copied := *x
		copied.ID, copied.Seq = idOf("AAAA", i+1), uint64(i+1)
		a := measure.Analyze(&copied)
		row := measure.Summarize(&copied, a)
		r.run.Add(&copied, a, &row)
	}
	e := &Evidence{Runs: []*Run{r.run}}
	s, _ := e.evidenceSection()
	if p := s.Parts[0]; len(p.Table.Rows) != mostListed || p.Table.Omitted != more {
		t.Errorf("%d rows, %d left out", len(p.Table.Rows), p.Table.Omitted)
	}
	if n := r.run.all.sum().Metric(measure.TTFTMS).Summary.N; n != mostListed+more {
		t.Errorf("%d samples", n)
	}
}

// TestHowARunWasMade holds that the command line on record is told as a shell takes it, and that without one the settings are
// spelled as flags of the loop they belong to.
func TestHowARunWasMade(t *testing.T) {
	speed := 2.0
	for want, run := range map[string]exchange.Run{
		`benchproxy record --run 'my run' --header 'X-A: it'\''s' -- ./agent.py`: {MadeBy: []string{"record", "--run", "my run", "--header", "X-A: it's", "--", "./agent.py"}},
		"benchproxy record --run 'a b' --upstream http://x":                      {Name: "a b", Upstreams: map[string]string{"u": "http://x"}},
		"benchproxy validate (its cases stand with the run)":                     {Mode: "validate", Replay: &exchange.Replay{Cases: make([]exchange.PlannedCase, 1)}},
		"benchproxy replay src --waves 4 --retries 3 --seed 1":                   {Replay: &exchange.Replay{Source: "src", Driver: "waves", Seed: 1, Settings: exchange.ReplaySettings{Concurrency: 4, Repeats: 1, Retries: 3}}},
		"benchproxy replay src --timing recorded --speed 2 --max-gap 500ms --keep-seed --live-history --max-requests 9 --duration 2500ms --retries 0 --seed 0": {Replay: &exchange.Replay{Source: "src", Driver: "recorded",
			Settings: exchange.ReplaySettings{Speed: &speed, MaxGapMS: 500, KeepSeed: true, LiveHistory: true, MaxRequests: 9, DurationMS: 2500}}},
	} {
		if got := NewRun(run, "", nil).command(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestCellsAreReproduced holds that what result files say of build, weights and command stands in the report.
func TestCellsAreReproduced(t *testing.T) {
	file := `{"engine":"e","backend":"gpu","model":"m","scenario":"s","status":"ok","decode_tps":10,"identity":{"engine":"e","version":"b7"},"weights":"sha256:1","harness":"1.0","plan":"m1:9","run":"01RUN",` +
		`"command":["server","--ctx","a b"]}`
	c, err := ParseCell([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	c.Source = "results"
	e := &Evidence{Grid: NewGrid([]Cell{c}, "", nil, nameOf), Engine: nameOf}
	if got := rowOf(t, e.Grid.configurationsPart(), "results"); got[2] != "b7" || got[3] != "sha256:1" || got[11] != "1.0" {
		t.Errorf("%q", got)
	}
	s := e.reproduceSection()
	for what, want := range map[string]string{"plan of results": "m1:9", "exchanges and command of results": "benchproxy store show 01RUN"} {
		if got := rowOf(t, s, what); got[1] != want {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got := s.Table.Rows[0][1].Show(report.Column{}); got != "server --ctx 'a b'" {
		t.Errorf("%q", got)
	}
}
