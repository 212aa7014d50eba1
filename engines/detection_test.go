package engines

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// detectionCases is testdata/detection.json.
type detectionCases struct {
	Input struct {
		Missing int `json:"default_for_missing_paths"`
		Vectors []struct {
			Name      string `json:"name"`
			Responses map[string]struct {
				Status  int               `json:"status"`
				Text    string            `json:"text"`
				JSON    json.RawMessage   `json:"json"`
				Headers map[string]string `json:"headers"`
			} `json:"responses"`
		} `json:"vectors"`
		Budget []struct {
			Name      string `json:"name"`
			Behaviour any    `json:"behaviour"`
		} `json:"probe_budget"`
		Label struct {
			Backend   string `json:"backend"`
			Responses string `json:"responses"`
		} `json:"explicit_label"`
	} `json:"input"`
	Expected struct {
		Order   []string `json:"order"`
		Vectors []struct {
			Name   string `json:"name"`
			Engine string `json:"engine"`
		} `json:"vectors"`
		Version11 *string `json:"vector_11_engine_version"`
		Budget    []struct {
			Name     string `json:"name"`
			Requests int    `json:"requests"`
			Engine   string `json:"engine"`
			Seconds  int    `json:"seconds_about"`
			Note     string `json:"note"`
		} `json:"probe_budget"`
		Label string `json:"explicit_label"`
	} `json:"expected"`
}

func readDetection(t *testing.T) detectionCases {
	var c detectionCases
	readCases(t, "detection.json", &c)
	if len(c.Input.Vectors) == 0 || len(c.Input.Vectors) != len(c.Expected.Vectors) || len(c.Input.Budget) != len(c.Expected.Budget) {
		t.Fatal("the cases are not complete")
	}
	return c
}

func (c detectionCases) server(i int) *server {
	s := &server{answers: map[string]played{}}
	for path, r := range c.Input.Vectors[i].Responses {
		a := played{status: r.Status, body: r.Text, header: http.Header{}}
		if r.JSON != nil {
			a.body = string(r.JSON)
		}
		for k, v := range r.Headers {
			a.header.Set(k, v)
		}
		s.answers[path] = a
	}
	return s
}

func TestDetectionCases(t *testing.T) {
	c := readDetection(t)
	for i, v := range c.Input.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			want := c.Expected.Vectors[i]
			if want.Name != v.Name {
				t.Fatalf("case %d is called %q and %q", i, v.Name, want.Name)
			}
			s := c.server(i)
			if d := identify(t, s, Options{}); d.Engine != want.Engine {
				t.Errorf("engine %q (%s), want %q", d.Engine, d.Evidence, want.Engine)
			} else if v.Name == "first declaration wins over /props" && (d.Version != "" || d.Slots != nil || d.Window != nil || c.Expected.Version11 != nil) {
				t.Errorf("version %q, slots %v and window %v were read of a document that names another server", d.Version, show(d.Slots), show(d.Window))
			}
		})
	}
}

func TestProbeOrder(t *testing.T) {
	c := readDetection(t)
	s := &server{}
	d := identify(t, s, Options{})
	if diff := cmp.Diff(c.Expected.Order, s.asked); diff != "" {
		t.Errorf("paths asked (-want +got):\n%s", diff)
	}
	if d.Engine != Unknown || d.Basis != BasisProbe || d.Probes != len(c.Expected.Order) {
		t.Errorf("got %+v", d)
	}
}

func TestProbeBudgetCases(t *testing.T) {
	c := readDetection(t)
	for i, v := range c.Input.Budget {
		t.Run(v.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := c.Expected.Budget[i]
				s := &server{answers: map[string]played{}}
				switch b := v.Behaviour.(type) {
				case string:
					s.refuse = b == "refuse"
					if b == "hang" {
						s.other = &played{hang: true}
					}
				case map[string]any:
					for path := range b {
						s.answers[path] = played{hang: true}
					}
				}
				began := clock.Now()
				d := identify(t, s, Options{})
				took := clock.Since(began)
				if d.Engine != want.Engine || len(s.asked) != want.Requests {
					t.Errorf("engine %q after %d requests %q, want %q after %d", d.Engine, len(s.asked), s.asked, want.Engine, want.Requests)
				}
				if want.Seconds > 0 && took != time.Duration(want.Seconds)*time.Second {
					t.Errorf("it took %s, want %d s", took, want.Seconds)
				}
			})
		})
	}
}

func TestAServerThatNeverAnswersIsUnreachable(t *testing.T) {
	for name, s := range map[string]*server{"refuses": {refuse: true}, "hangs": {other: &played{hang: true}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := builtin(t).Identify(t.Context(), s, base, Options{})
				var told *exchange.Error
				if !errors.Is(err, exchange.ErrUnreachable) || !errors.As(err, &told) || told.Side != exchange.SideEngine {
					t.Errorf("got %v, want an unreachable engine", err)
				}
			})
		})
	}
}

// TestSlowEverywhere holds the total: a server that answers each second probe in time can not use more than that.
func TestSlowEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: map[string]played{}, other: &played{hang: true}}
		for _, path := range []string{"/version", "/health", "/props"} {
			s.answers[path] = played{status: 404}
		}
		began := clock.Now()
		identify(t, s, Options{Total: 8 * time.Second})
		if took := clock.Since(began); took > 8*time.Second {
			t.Errorf("it took %s of at most 8 s", took)
		}
	})
}

func TestExplicitLabelIsTrusted(t *testing.T) {
	c := readDetection(t)
	s := &server{answers: map[string]played{"/props": captured(t, "llama-server-props"), "/v1/models": captured(t, "llama-server-v1-models")}}
	d := identify(t, s, Options{Label: c.Input.Label.Backend})
	if d.Engine != c.Expected.Label || d.Basis != BasisLabel {
		t.Errorf("engine %q by %q, want %q by label", d.Engine, d.Basis, c.Expected.Label)
	}
	if d.Version != "" || d.Slots != nil {
		t.Errorf("version %q and slots %v were read of a document that names another server", d.Version, show(d.Slots))
	}
	if slices.Contains(s.asked, "/version") {
		t.Errorf("a labelled server was still identified: %q", s.asked)
	}
}

func TestLabelWithVersionAndAlias(t *testing.T) {
	for label, want := range map[string]exchange.Identity{
		"llama.cpp@b9927": {Engine: "llamacpp", Version: "b9927", Basis: BasisLabel},
		"OurEngine@7":     {Engine: "ourengine", Version: "7", Basis: BasisLabel},
		"loom":            {Engine: "loom", Basis: BasisLabel},
	} {
		if d := identify(t, &server{}, Options{Label: label}); d.Identity != want {
			t.Errorf("label %q is %+v, want %+v", label, d.Identity, want)
		}
	}
}

func TestPlacementCases(t *testing.T) {
	type pair struct {
		Requested string  `json:"requested"`
		Observed  *string `json:"observed"`
	}
	type verdict struct {
		Observed *string `json:"observed_device"`
		Fallback bool    `json:"cpu_fallback"`
	}
	var c struct {
		Input struct {
			Placement []pair `json:"placement"`
			Scorecard []pair `json:"scorecard"`
		} `json:"input"`
		Expected struct {
			Placement []verdict `json:"placement"`
			Scorecard verdict   `json:"scorecard"`
		} `json:"expected"`
	}
	readCases(t, "placement.json", &c)
	if len(c.Input.Placement) == 0 || len(c.Input.Placement) != len(c.Expected.Placement) {
		t.Fatal("the cases are not complete")
	}
	read := func(p pair) exchange.Deployment {
		d := exchange.Deployment{}
		if p.Observed != nil {
			d.ObservedDevice = deviceName(*p.Observed)
		}
		place(&d, p.Requested)
		return d
	}
	for i, p := range c.Input.Placement {
		want := c.Expected.Placement[i]
		d := read(p)
		if d.CPUFallback != want.Fallback {
			t.Errorf("%s asked, %v seen: fallback %v, want %v", p.Requested, show(p.Observed), d.CPUFallback, want.Fallback)
		}
		if want.Observed != nil && *want.Observed == Unknown && d.ObservedDevice != nil {
			t.Errorf("%s asked, nothing seen: device %q, want unknown", p.Requested, *d.ObservedDevice)
		}
	}
	var card []exchange.Deployment
	for _, p := range c.Input.Scorecard {
		card = append(card, read(p))
	}
	observed, fallback := DeviceOf(card)
	if show(observed) != show(c.Expected.Scorecard.Observed) || fallback != c.Expected.Scorecard.Fallback {
		t.Errorf("scorecard %v, %v; want %v, %v", show(observed), fallback, show(c.Expected.Scorecard.Observed), c.Expected.Scorecard.Fallback)
	}
}
