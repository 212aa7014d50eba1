package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

func toldOf(h *heard) map[string]string {
	out := map[string]string{}
	for _, w := range h.waves {
		for _, c := range w.Cases {
			out[c.Tag()] = string(c.Status) + ": " + c.Detail
		}
	}
	return out
}

// TestSuitePasses sends the whole of both suites to an engine that knows the answers.
func TestSuitePasses(t *testing.T) {
	for suite, want := range map[string]struct{ cases, requests, waves int }{
		scenario.SuiteValidation: {65, 13*5 + (1+1+2)*5, 26}, scenario.SuitePolicies: {30, 35, 15},
	} {
		suiteRig{}.play(t, validation(suite), func(t *testing.T, h *heard) {
			if h.err != nil {
				t.Fatal(h.err)
			}
			for tag, status := range toldOf(h) {
				if status != "ok: " {
					t.Errorf("%s: %s", tag, status)
				}
			}
			if len(toldOf(h)) != want.cases || len(h.sink.xs) != want.requests || len(h.waves) != want.waves {
				t.Errorf("%s: %d cases, %d requests, %d waves", suite, len(toldOf(h)), len(h.sink.xs), len(h.waves))
			}
			r := h.suite.Report(nil)
			if r.Items.Complete+r.Items.Failed != want.cases || r.Items.Unsent+r.Items.Broken+r.Items.Partial != 0 || r.Incomplete != "" || r.Driver != "waves" {
				t.Errorf("%s: %+v", suite, r)
			}
			if exchanges, cases, planned := h.suite.Sent(); exchanges != want.requests || cases != want.cases || planned != want.cases {
				t.Errorf("%d exchanges, %d of %d cases", exchanges, cases, planned)
			}
		})
	}
}

// TestSuiteWaves holds that the cases of a wave run together, and waves do not.
func TestSuiteWaves(t *testing.T) {
	suiteRig{}.play(t, validation(scenario.SuiteValidation, "multi_turn", "short"), func(t *testing.T, h *heard) {
		var names []string
		var last time.Time
		for _, w := range h.waves {
			names = append(names, w.Name)
			first := sentAt(w.Cases[0].Exchanges[0])
			if first.Before(last) {
				t.Errorf("%s began before the wave before had ended", w.Name)
			}
			for _, c := range w.Cases {
				if !sentAt(c.Exchanges[0]).Equal(first) {
					t.Errorf("%s began apart from its wave", c.Tag())
				}
			}
			if w.Wall <= 0 {
				t.Errorf("%s took %s", w.Name, w.Wall)
			}
			last = first.Add(w.Wall)
		}
		if diff := cmp.Diff([]string{"short-c1-r0", "short-c4-r0", "multi_turn-c1-r0", "multi_turn-c4-r0"}, names); diff != "" {
			t.Error(diff)
		}
		var rates []string
		for _, w := range h.suite.Report(nil).Waves {
			rates = append(rates, fmt.Sprint(w.Wave, " ", w.Streams, " ", w.Figures[measure.AggregateDecodeTPS].Present()))
		}
		want := []string{"short-c1-r0 1 true", "short-c4-r0 4 true", "multi_turn-c1-r0/1 1 true", "multi_turn-c1-r0/2 1 true", "multi_turn-c4-r0/1 4 true", "multi_turn-c4-r0/2 4 true"}
		if diff := cmp.Diff(want, rates); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSuiteFails holds what the cases say of answers that are wrong in each of the ways there are.
func TestSuiteFails(t *testing.T) {
	for name, c := range map[string]struct {
		scenario, suite string
		answer          pupilSays
		turn            int
		why             string
	}{
		"wrong text":       {"short", scenario.SuiteValidation, pupilSays{content: "43"}, 0, `exact: want "42"`},
		"fence":            {"json", scenario.SuiteValidation, pupilSays{content: "```json\n{\"name\":\"Mars\",\"moons\":2,\"habitable\":false}\n```"}, 0, "json: "},
		"cut":              {"short", scenario.SuiteValidation, pupilSays{content: "42", finish: "length"}, 0, "finish_reason: "},
		"under the budget": {"decode", scenario.SuiteValidation, pupilSays{content: hashTables, tokens: 100}, 0, "sustained_decode: "},
		"code missing":     {"long_8k", scenario.SuiteValidation, pupilSays{content: "ALPHA silver-4821\nBETA amber-7392"}, 0, "violet-1605"},
		"first turn":       {"multi_turn", scenario.SuiteValidation, pupilSays{content: "Okay!"}, 0, `behind turn 1/2: the answer is "Okay!"`},
		"no call":          {"agentic", scenario.SuiteValidation, pupilSays{content: "read_invoice(INV-472)"}, 0, "behind turn 1/3"},
		"own arithmetic":   {"agentic", scenario.SuiteValidation, pupilSays{content: `{"invoice_id":"INV-472","total":74.25}`}, 2, "agentic_validation: "},
		"error":            {"agentic", scenario.SuiteValidation, pupilSays{status: 500, body: `{"error":{"message":"out of memory"}}`}, 1, "turn 2/3 was not answered in full: upstream_error"},
		"not refused":      {"invalid_schema", scenario.SuitePolicies, pupilSays{status: 200, body: `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`}, 0, "tool_policy: "},
		"too many calls":   {"single_call", scenario.SuitePolicies, knows("two_calls", 0), 0, "tool_policy: "},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := func(tag string, turn int) *pupilSays {
				if turn == c.turn && strings.HasSuffix(tag, "-i0") {
					return &c.answer
				}
				return nil
			}
			suiteRig{pupil: pupil{wrong: wrong}}.play(t, validation(c.suite, c.scenario), func(t *testing.T, h *heard) {
				if h.err != nil {
					t.Fatal(h.err)
				}
				for tag, status := range toldOf(h) {
					switch want := strings.HasSuffix(tag, "-i0"); {
					case want && (!strings.HasPrefix(status, "fail: ") || !strings.Contains(status, c.why)):
						t.Errorf("%s: %s, want %s", tag, status, c.why)
					case !want && status != "ok: ":
						t.Errorf("%s: %s", tag, status)
					}
				}
			})
		})
	}
}

// TestSuiteVoidsWaves holds that one conversation that stopped voids the rates of the turns behind it.
func TestSuiteVoidsWaves(t *testing.T) {
	wrong := func(tag string, turn int) *pupilSays {
		if tag == "agentic-c4-r0-i2" && turn == 0 {
			return &pupilSays{content: "no"}
		}
		return nil
	}
	suiteRig{pupil: pupil{wrong: wrong}}.play(t, validation(scenario.SuiteValidation, "agentic"), func(t *testing.T, h *heard) {
		r := h.suite.Report(nil)
		if r.Items.Partial != 1 || r.Items.Complete != 4 {
			t.Errorf("%+v", r.Items)
		}
		for _, w := range r.Waves {
			void := strings.HasPrefix(w.Wave, "agentic-c4-r0/") && !strings.HasSuffix(w.Wave, "/1")
			if (w.Failed > 0) != void || void && w.Figures[measure.BatchTPS].Present() {
				t.Errorf("%s: %d failed, %v", w.Wave, w.Failed, w.Figures)
			}
		}
	})
}

// TestSuiteStops holds that a suite which is told to end cuts what runs, judges nothing half, and says so.
func TestSuiteStops(t *testing.T) {
	why := errors.New("told to")
	suiteRig{until: 125 * time.Millisecond, why: why}.play(t, validation(scenario.SuiteValidation), func(t *testing.T, h *heard) {
		if !errors.Is(h.err, why) || len(h.waves) == 0 || len(h.waves) == 26 {
			t.Errorf("%v, %d waves", h.err, len(h.waves))
		}
		r := h.suite.Report(h.err)
		if !strings.Contains(r.Incomplete, "cases did not end: told to") || r.Items.Unsent == 0 {
			t.Errorf("%+v", r)
		}
		last := h.sink.measured()[len(h.sink.xs)-1]
		if last.End != exchange.EndShutdown {
			t.Errorf("the last exchange ended as %s", last.End)
		}
	})
	suiteRig{dead: true}.play(t, validation(scenario.SuiteValidation), func(t *testing.T, h *heard) {
		if !errors.Is(h.err, exchange.ErrUnreachable) {
			t.Errorf("nobody there: %v", h.err)
		}
	})
	o := validation(scenario.SuiteValidation)
	o.Wave = func(*SuiteWave) error { return why }
	suiteRig{}.play(t, o, func(t *testing.T, h *heard) {
		if !errors.Is(h.err, why) || len(h.waves) != 1 {
			t.Errorf("%v, %d waves", h.err, len(h.waves))
		}
	})
}

// TestSuiteSpelling holds what engines are told beside the question: each in its own words, and noted in the record.
func TestSuiteSpelling(t *testing.T) {
	o := validation(scenario.SuitePolicies, "required", "required_thinking", "invalid_named")
	o.Members = slices.DeleteFunc(o.Members, func(m scenario.Member) bool { return m.Concurrency > 1 })
	o.Spelling = Spelling{ThinkingOn: json.RawMessage(`{"chat_template_kwargs":{"enable_thinking":true}}`), ThinkingOff: json.RawMessage(`{"think":false}`),
		Timings: json.RawMessage(`{"timings_per_token":true}`)}
	o.Session, o.Salt, o.Warmup = "X-Talk", "salt", 2
	suiteRig{}.play(t, o, func(t *testing.T, h *heard) {
		if h.err != nil {
			t.Fatal(h.err)
		}
		if n := len(h.sink.xs) - len(h.sink.measured()); n != 2 {
			t.Errorf("%d warm-ups", n)
		}
		for i, want := range []string{`"think":false,"timings_per_token":true}`, `"chat_template_kwargs":{"enable_thinking":true},"timings_per_token":true}`, `"think":false}`} {
			x := h.sink.measured()[i]
			if body := string(x.Request.Body.Bytes()); !strings.HasSuffix(body, want) {
				t.Errorf("request %d: %s, want %s", i, body, want)
			}
			if v, _ := exchange.HeaderValue(x.Request.Headers, "X-Talk"); len(v) != 16 || v == tokenOf("other", "session "+x.Item.Item) {
				t.Errorf("request %d: session %q", i, v)
			}
		}
	})
	bad := Spelling{ThinkingOff: json.RawMessage(`[1]`)}
	if _, err := bad.spell(scenario.Request{Body: json.RawMessage(`{}`)}, false); err == nil {
		t.Error("a spelling that is no object is taken")
	}
}

// TestSuiteLearnsSpelling holds that a limit which the engine has another word for costs one more request, not a case.
func TestSuiteLearnsSpelling(t *testing.T) {
	asked := 0
	wrong := func(string, int) *pupilSays {
		if asked++; asked == 1 {
			return &pupilSays{status: 400, body: `{"error":{"type":"invalid_request_error","message":"max_tokens is not supported, use max_completion_tokens instead"}}`}
		}
		return nil
	}
	o := validation(scenario.SuiteValidation, "short")
	o.Members = o.Members[:1]
	suiteRig{pupil: pupil{wrong: wrong}}.play(t, o, func(t *testing.T, h *heard) {
		if got := toldOf(h)["short-c1-r0-i0"]; got != "ok: " || len(h.sink.xs) != 2 {
			t.Errorf("%s, %d exchanges", got, len(h.sink.xs))
		}
		if body := string(h.waves[0].Cases[0].Exchanges[0].Request.Body.Bytes()); !strings.Contains(body, `"max_completion_tokens":256`) || strings.Contains(body, `"max_tokens"`) {
			t.Errorf("sent %s", body)
		}
		if r := h.suite.Report(nil); r.Items.Retries != 1 || r.Items.Complete != 1 {
			t.Errorf("%+v", r.Items)
		}
	})
}

// TestSuitePlan holds that a plan is of one hash, and that what is asked is part of it.
func TestSuitePlan(t *testing.T) {
	hash := func(o SuiteOptions) string {
		s, err := NewSuite(o)
		if err != nil {
			t.Fatal(err)
		}
		p := s.Planned()
		if !strings.HasPrefix(p.Plan, PlanScheme) || !strings.HasPrefix(p.Workload, HashScheme) || p.Items.Planned != len(o.Members) {
			t.Errorf("%+v", p)
		}
		return p.Plan
	}
	base := validation(scenario.SuiteValidation, "short", "json")
	seen := []string{hash(base)}
	if hash(validation(scenario.SuiteValidation, "short", "json")) != seen[0] {
		t.Error("the same plan has two hashes")
	}
	for _, change := range []func(*SuiteOptions){
		func(o *SuiteOptions) { o.Members = o.Members[1:] }, func(o *SuiteOptions) { o.Options.MaxTokens = 7 },
		func(o *SuiteOptions) { o.Warmup = 1 }, func(o *SuiteOptions) { o.Changes.Model = "other" },
	} {
		o := base
		change(&o)
		if h := hash(o); slices.Contains(seen, h) {
			t.Error("a change is no part of the hash")
		} else {
			seen = append(seen, h)
		}
	}
}
