package launched

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exchange is what the tests read of a stored exchange.
type exchange struct {
	ID      string              `json:"id"`
	Outcome string              `json:"outcome"`
	Stream  bool                `json:"stream"`
	Metrics map[string]*float64 `json:"metrics"`
}

// rows are the exchanges of a run, in order.
func (r *rig) rows(t *testing.T, run string) (out []exchange) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(r.run(t, 0, "store", "ls", run, "--json"))); d.More(); {
		var x exchange
		if err := d.Decode(&x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// complete holds that a run has so many exchanges, each of them complete.
func (r *rig) complete(t *testing.T, run string, want int) []exchange {
	t.Helper()
	rows := r.rows(t, run)
	if len(rows) != want {
		t.Fatalf("run %s has %d exchanges, want %d", run, len(rows), want)
	}
	for _, x := range rows {
		if x.Outcome != "complete" {
			t.Errorf("run %s: exchange %s is %s", run, x.ID, x.Outcome)
		}
	}
	return rows
}

var answers = regexp.MustCompile(`(?m)^answer [0-9a-f]{64}$`)

// record starts the engine, has the client talk to it, and gives the digests of what the client received.
func (r *rig) record(t *testing.T, run string) []string {
	t.Helper()
	args := append([]string{"record", "--engine", r.engine, "--run", run, "--quiet"}, r.launch(r.model)...)
	got := answers.FindAllString(r.run(t, 0, append(args, "--", os.Args[0])...), -1)
	if len(got) != len(bodies) {
		t.Fatalf("the client printed %d answers, want %d", len(got), len(bodies))
	}
	return got
}

func TestRecordedEngine(t *testing.T) {
	r := newRig(t)
	got := r.record(t, "recorded")
	rows := r.complete(t, "recorded", len(bodies))
	if i := slices.IndexFunc(rows, func(x exchange) bool { return x.Stream }); i < 0 || rows[i].Metrics["ttft_ms"] == nil {
		t.Errorf("no stream with a ttft_ms among %d exchanges", len(rows))
	}
	shown := r.run(t, 0, "store", "show", "recorded")
	for _, want := range []string{"launch=", filepath.Base(r.binary)} {
		if !strings.Contains(shown, want) {
			t.Errorf("the run does not show %q:\n%s", want, shown)
		}
	}

	// What was answered is judged again without the engine.
	var judged struct {
		Verdicts []struct {
			Gate   string `json:"gate"`
			Status string `json:"status"`
		} `json:"verdicts"`
	}
	file := filepath.Join(r.dir, "judged.json")
	r.run(t, 0, "replay", "--revalidate", "recorded", "--gates", `finish_reason={"allow":["stop","length"]}`, "--gates", "json_schema,usage_present", "--output", file)
	raw, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(raw, &judged) != nil || !bytes.Contains(raw, []byte("json_schema")) {
		t.Errorf("verdicts: %v in %.2000s", err, raw)
	}

	// A stand-in gives the client the same bytes.
	s := r.serve(t, "http", "replay", "--serve", "recorded", "--listen", "127.0.0.1:0", "--speed", "0", "--strict")
	var again bytes.Buffer
	if err := ask(t.Context(), s.url+"/v1", r.model, &again); err != nil {
		t.Error(err)
	}
	s.end(t)
	if served := answers.FindAllString(again.String(), -1); !slices.Equal(served, got) {
		t.Errorf("the stand-in gave %v, the engine %v", served, got)
	}
}

func TestLaunchedEngine(t *testing.T) {
	r := newRig(t)
	r.record(t, "reference")
	s := r.serve(t, "->", append([]string{"engines", "launch", r.engine, "--quiet"}, r.launch(r.gateModel)...)...)
	var is struct {
		Engine    string  `json:"engine"`
		Version   string  `json:"version"`
		Basis     string  `json:"basis"`
		Weights   *string `json:"weights_digest"`
		Reachable bool    `json:"reachable"`
	}
	args := []string{"engines", "identify", s.url, "--json"}
	if r.tiny {
		args = append(args, "--model", r.model)
	}
	r.document(t, 0, &is, args...)
	if is.Engine != r.engine || is.Basis != "probe" || !is.Reachable || r.tiny && (is.Version == "" || is.Weights == nil) {
		t.Errorf("it is identified as %+v", is)
	}

	r.run(t, 0, "replay", "reference", "--target", s.url, "--run", "replayed", "--quiet")
	r.complete(t, "replayed", len(bodies))
	if out := r.run(t, 0, "compare", "reference", "replayed"); r.tiny && !strings.Contains(out, "3 of 3 identical") {
		t.Errorf("the same requests at temperature 0 were answered otherwise:\n%s", out)
	}
	r.gates(t, s.url)
	s.end(t)
	r.run(t, 0, "store", "check")
}

// suite is the result of a suite, as --json prints it.
type suite struct {
	Complete bool           `json:"complete"`
	Statuses map[string]int `json:"statuses"`
	Verdicts []verdict      `json:"verdicts"`
}

type verdict struct {
	Family, Scenario, Gate, Status, Reason string
}

// of are the statuses of a gate's verdicts, each once.
func (s *suite) of(gate string) (out []string) {
	for _, v := range s.Verdicts {
		if v.Gate == gate && !slices.Contains(out, v.Status) {
			out = append(out, v.Status)
		}
	}
	return out
}

// gates judges the engine, makes goldens of its answers, and judges it against those: it is like itself.
func (r *rig) gates(t *testing.T, url string) {
	t.Helper()
	alone := r.judge(t, url, "gates")
	// Of a run what can be a golden is taken; it is an error when nothing is.
	r.run(t, 0, "golden", "add", "gates", "--accept-unknown-weights")
	against := r.judge(t, url, "gates-again")
	if !r.tiny {
		return
	}
	for _, c := range []struct {
		s    *suite
		gate string
		want string
	}{
		{alone, "consistency", "ok"}, {alone, "sampling", "ok"}, {alone, "finish_reason", "ok"}, {alone, "near_tie", "incomparable skipped"}, {alone, "speculative_lossless", "skipped"},
		{alone, "agent_turns", "unsupported"}, {alone, "over_limit", "fail"}, {alone, "needle", "skipped"},
		{against, "near_tie", "ok skipped"}, {against, "vision", "ok"}, {against, "consistency", "ok"},
	} {
		got := c.s.of(c.gate)
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("gate %s is %v, want %s", c.gate, got, c.want)
		}
	}
}

// judge runs the suite. A live engine may pass or not; the tiny one, which cuts a prompt over its limit as any model of
// its engine does, fails that gate.
func (r *rig) judge(t *testing.T, url, run string) *suite {
	t.Helper()
	args := []string{"gate", "--suite", "dev", "--target", url, "--model", r.gateModel, "--run", run, "--json", "--quiet", "--accept-unknown-weights"}
	if r.gateContext != "" {
		args = append(args, "--context", r.gateContext)
	}
	codes := []int{0, 3, 9}
	if r.tiny {
		codes = []int{3}
	}
	var s suite
	if err := json.Unmarshal([]byte(r.runTo(t, codes, args...)), &s); err != nil {
		t.Fatal(err)
	}
	if !s.Complete || len(s.Verdicts) == 0 {
		t.Errorf("the suite is complete: %v, with %d verdicts", s.Complete, len(s.Verdicts))
	}
	for _, v := range s.Verdicts {
		if v.Status == "fail" {
			t.Logf("%s: %s %s: %s", run, v.Scenario, v.Gate, v.Reason)
		}
	}
	t.Logf("%s: %v", run, s.Statuses)
	return &s
}

// matrixConfig writes the config of a small matrix of the engine, and gives its file.
func (r *rig) matrixConfig(t *testing.T) string {
	t.Helper()
	engine := map[string]any{"transport": "server", "program": r.binary}
	model := map[string]any{"size_class": "small"}
	if info, err := os.Stat(r.model); err == nil && info.Mode().IsRegular() {
		model["gguf"] = r.model
	} else {
		model["engines"] = map[string]string{r.engine: r.model}
	}
	backend := r.backend
	switch backend {
	case "":
		backend = "gpu"
	case "cpu":
		backend = "ggml_cpu"
	}
	raw, err := json.Marshal(map[string]any{
		"engines": map[string]any{r.engine: engine}, "models": map[string]any{"m": model},
		"defaults": map[string]any{
			"engines": []string{r.engine}, "backends": []string{backend}, "models": []string{"m"}, "scenarios": []string{"text_short", "json_mode"},
			"concurrency": []int{1, 2}, "max_tokens": 24,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(r.dir, "bench.json")
	if err := os.WriteFile(config, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(t, 0, "config", "check", config)
	return config
}

func TestMatrix(t *testing.T) {
	r := newRig(t)
	config, results := r.matrixConfig(t), filepath.Join(r.dir, "results")
	var done struct {
		Cells   struct{ OK, Failed, Planned int }
		Records []struct {
			Cell      string   `json:"cell"`
			Status    string   `json:"status"`
			Detail    string   `json:"detail"`
			Source    string   `json:"decode_source"`
			Decode    *float64 `json:"decode_tps"`
			TTFT      *float64 `json:"ttft_ms"`
			Exchanges []string `json:"exchanges"`
			Command   []string `json:"command"`
			Slots     *int     `json:"slots"`
		} `json:"records"`
	}
	r.document(t, 0, &done, "bench", config, "--results", results, "--run", "matrix", "--force", "--json")
	if done.Cells.OK != 4 || done.Cells.Planned != 4 || len(done.Records) != 4 {
		t.Fatalf("cells: %+v", done.Cells)
	}
	for _, rec := range done.Records {
		if rec.Status != "ok" || rec.TTFT == nil || len(rec.Exchanges) == 0 || len(rec.Command) == 0 || rec.Slots == nil || *rec.Slots < 2 {
			t.Errorf("cell %s: %+v", rec.Cell, rec)
		}
		if rec.Decode != nil && rec.Source != "stream_window" {
			t.Errorf("cell %s: decode_source %q", rec.Cell, rec.Source)
		}
		if _, err := os.Stat(filepath.Join(results, rec.Cell+".json")); err != nil {
			t.Error(err)
		}
		for _, id := range rec.Exchanges {
			if shown := r.run(t, 0, "store", "show", id); !strings.Contains(shown, rec.Cell) {
				t.Errorf("exchange %s does not name cell %s", id, rec.Cell)
			}
		}
	}
	if out := r.run(t, 0, "bench", config, "--results", results, "--force", "--skip-existing"); !strings.Contains(out, "kept=4") {
		t.Errorf("nothing was kept:\n%s", out)
	}
	r.run(t, 0, "store", "check")
}
