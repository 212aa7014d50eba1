package gates

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// vectorList is a list of log-probabilities in the vectors.
type vectorList []struct {
	ID      int64
	Logprob float64
}

func (l vectorList) probs() (out []exchange.TokenProb) {
	for _, p := range l {
		out = append(out, exchange.TokenProb{ID: p.ID, Logprob: p.Logprob})
	}
	return out
}

// tieVectors are near_tie_basic and near_tie_at_views.
type tieVectors struct {
	Input struct {
		Rule    string
		Vectors []struct {
			Name      string
			Golden    int64      `json:"golden_id"`
			Candidate int64      `json:"candidate_id"`
			List      vectorList `json:"golden_top_logprobs"`
			Views     []struct {
				View string
				List vectorList `json:"top_logprobs"`
			}
		}
	}
	Expected struct {
		Vectors []struct {
			Name   string
			Near   bool `json:"near_tie"`
			Rule   string
			Gap    *float64
			Gaps   []float64
			Noise  float64
			MinGap *float64 `json:"min_gap"`
			Bar    float64
		}
	}
}

// selectionVectors are divergence_selection.
type selectionVectors struct {
	Input struct {
		TextDivergence []struct {
			Name          string
			Golden        []string `json:"golden_pieces"`
			Candidate     []string `json:"candidate_pieces"`
			GoldenStop    string   `json:"golden_stop"`
			CandidateStop string   `json:"candidate_stop"`
		} `json:"text_divergence"`
		Prompts []struct {
			Name       string
			Recordings []struct {
				ID          string
				Divergences []vectorDivergence
			}
		}
		Report struct {
			Results []struct {
				Full bool `json:"full_match"`
				Near bool `json:"near_tie"`
				Gap  *float64
			} `json:"prompt_results"`
		}
	}
	Expected struct {
		TextDivergence []struct {
			Name  string
			Index *int `json:"divergence_index"`
		} `json:"text_divergence"`
		Prompts []struct {
			Name      string
			Recording string `json:"judged_recording"`
			Index     int    `json:"judged_index"`
			Pass      bool
		}
		Report tieReport
	}
}

type vectorDivergence struct {
	Index  int
	Gap    float64
	InTop5 bool `json:"in_top5"`
	Rank   *int
	PFirst float64 `json:"p_first"`
}

// goldenVector reads the case of one id into v. Unknown keys and missing cases are fatal: they are rules nobody holds.
func goldenVector(t *testing.T, id string, v any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden-semantics.json")
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Format int
		Cases  []struct {
			ID, Title, Area, Seed, Confidence, Notes string
			Tolerance                                map[string]float64
			Input, Expected                          json.RawMessage
		}
	}
	strictly := func(raw []byte, v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	strictly(raw, &index)
	for _, c := range index.Cases {
		if c.ID == id {
			both, err := json.Marshal(map[string]json.RawMessage{"Input": c.Input, "Expected": c.Expected})
			if err != nil {
				t.Fatal(err)
			}
			strictly(both, v)
			return
		}
	}
	t.Fatalf("no case %s among %d", id, len(index.Cases))
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }

func nearPtr(a, b *float64) bool { return (a == nil) == (b == nil) && (a == nil || near(*a, *b)) }

func TestNearTieBasicVectors(t *testing.T) {
	var v tieVectors
	goldenVector(t, "near_tie_basic", &v)
	if len(v.Input.Vectors) == 0 || len(v.Input.Vectors) != len(v.Expected.Vectors) {
		t.Fatalf("%d vectors and %d results", len(v.Input.Vectors), len(v.Expected.Vectors))
	}
	for i, in := range v.Input.Vectors {
		want := v.Expected.Vectors[i]
		got := nearTie(in.List.probs(), nil, spelled{id: in.Golden}, spelled{id: in.Candidate})
		if in.Name != want.Name || got.near != want.Near || string(got.rule) != want.Rule || !nearPtr(got.gap, want.Gap) {
			t.Errorf("%s: near %v by %s, gap %v; want %+v", in.Name, got.near, got.rule, got.gap, want)
		}
	}
}

func TestNearTieAtVectors(t *testing.T) {
	var v tieVectors
	goldenVector(t, "near_tie_at_views", &v)
	if len(v.Input.Vectors) == 0 || len(v.Input.Vectors) != len(v.Expected.Vectors) {
		t.Fatalf("%d vectors and %d results", len(v.Input.Vectors), len(v.Expected.Vectors))
	}
	for i, in := range v.Input.Vectors {
		want := v.Expected.Vectors[i]
		var views [][]exchange.TokenProb
		for _, view := range in.Views {
			views = append(views, view.List.probs())
		}
		golden, candidate := spelled{id: in.Golden}, spelled{id: in.Candidate}
		if nearTie(in.List.probs(), nil, golden, candidate).near {
			t.Errorf("%s: the first rule takes it already", in.Name)
		}
		got := nearTieAt(in.List.probs(), nil, golden, candidate, views)
		if got.near != want.Near || string(got.rule) != want.Rule || !near(got.noise, want.Noise) || !near(got.bar, want.Bar) || !nearPtr(got.minGap, want.MinGap) {
			t.Errorf("%s: %+v, want %+v", in.Name, got, want)
		}
		if len(got.gaps) != len(want.Gaps) {
			t.Errorf("%s: gaps %v, want %v", in.Name, got.gaps, want.Gaps)
			continue
		}
		for k := range got.gaps {
			if !near(got.gaps[k], want.Gaps[k]) {
				t.Errorf("%s: gaps %v, want %v", in.Name, got.gaps, want.Gaps)
			}
		}
	}
}

// piecesScript is a script of tokens without ids.
func piecesScript(pieces []string, stop string) *script {
	s := &script{whole: true, ended: stop == "eos", endID: -1}
	for _, p := range pieces {
		s.parts = append(s.parts, part{-1, p})
	}
	return s
}

func TestTextDivergenceVectors(t *testing.T) {
	var v selectionVectors
	goldenVector(t, "divergence_selection", &v)
	in, want := v.Input.TextDivergence, v.Expected.TextDivergence
	if len(in) == 0 || len(in) != len(want) {
		t.Fatalf("%d vectors and %d results", len(in), len(want))
	}
	for i := range in {
		d := diverge(piecesScript(in[i].Golden, in[i].GoldenStop), piecesScript(in[i].Candidate, in[i].CandidateStop))
		if d.none != (want[i].Index == nil) || !d.none && d.index != *want[i].Index {
			t.Errorf("%s: %+v", in[i].Name, d)
		}
	}
}

// recordingOf is a golden whose lists are those of a vector, and a script that leaves it where the vector says.
func recordingOf(id string, ds []vectorDivergence) (*exchange.Golden, *script) {
	g := &exchange.Golden{ID: exchange.ID(id), Finish: "length", Spelled: true}
	last := 0
	for _, d := range ds {
		last = max(last, d.Index)
	}
	other := piecesScript(nil, "limit")
	for range last + 1 {
		g.Tokens = append(g.Tokens, exchange.GoldenToken{ID: -1, Text: "a"})
		other.parts = append(other.parts, part{-1, "a"})
	}
	for _, d := range ds {
		first := math.Log(d.PFirst)
		list := []exchange.TokenProb{{ID: -1, Text: "a", Logprob: first}}
		for rank := 2; d.Rank != nil && rank < *d.Rank; rank++ {
			list = append(list, exchange.TokenProb{ID: -1, Text: "x", Logprob: first - d.Gap/2})
		}
		if d.InTop5 {
			list = append(list, exchange.TokenProb{ID: -1, Text: "b", Logprob: first - d.Gap})
		}
		g.Tokens[d.Index].Top = list
		other.parts[d.Index].text = "b"
	}
	return g, other
}

func TestRecordingSelectionVectors(t *testing.T) {
	var v selectionVectors
	goldenVector(t, "divergence_selection", &v)
	if len(v.Input.Prompts) == 0 || len(v.Input.Prompts) != len(v.Expected.Prompts) {
		t.Fatalf("%d vectors and %d results", len(v.Input.Prompts), len(v.Expected.Prompts))
	}
	for i, in := range v.Input.Prompts {
		var best followed
		for k, r := range in.Recordings {
			g, other := recordingOf(r.ID, r.Divergences)
			f := followed{golden: g, script: scriptOfGolden(g), answer: other}
			f.divergence = diverge(f.script, other)
			f.compared = commonPrefix(f.script.text(), other.text())
			if k == 0 || f.further(&best) {
				best = f
			}
		}
		j := &tieJudge{w: &wants{}, o: &tieOptions{}, f: best}
		pass := j.near()
		want := v.Expected.Prompts[i]
		if string(best.golden.ID) != want.Recording || best.index != want.Index || pass != want.Pass {
			t.Errorf("%s: %s at %d passes %v (%s), want %+v", in.Name, best.golden.ID, best.index, pass, j.d.Rule, want)
		}
	}
}

func TestReportVectors(t *testing.T) {
	var v selectionVectors
	goldenVector(t, "divergence_selection", &v)
	if len(v.Input.Report.Results) == 0 {
		t.Fatal("no results")
	}
	var r tieReport
	for _, p := range v.Input.Report.Results {
		r.add(p.Full, tie{near: p.Full || p.Near, gap: p.Gap})
	}
	if d := cmp.Diff(v.Expected.Report, r); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
