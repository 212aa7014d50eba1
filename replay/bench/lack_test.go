package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/bridge"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// without is an engine that refuses requests which hold a text, in these words.
func without(held, message string) sim.Config {
	return sim.Config{Handler: func(r sim.Request) *sim.Script {
		if bytes.Contains(r.Body, []byte(held)) {
			return sim.ErrorScript(r, 400, "invalid_request_error", message)
		}
		return nil
	}}
}

// sentTo are the timed requests of a cell, and whether the warm-ups are those of the cell.
func (p *played) sentTo(cell string) (timed, warm int) {
	for _, x := range p.place.seen {
		switch {
		case x.Cell != cell:
		case x.Item.Warmup:
			warm++
		default:
			timed++
		}
	}
	return timed, warm
}

// TestAskedForACapabilityOnce holds that cells which need what the model lacks are no failures, that further ones of it are
// not sent, that other cells and other servers go on, and that what a refused warm-up left cold is warmed.
func TestAskedForACapabilityOnce(t *testing.T) {
	scenarios := []string{"tool_use_selection_weather", "tool_use_multistep_reorder", "text_short", "function_call"}
	p := &place{options: map[string]sim.Options{"a": quick, "b": quick}, config: map[string]sim.Config{"a": without(`"tools"`, "registry/m does not support tools")}}
	p.play(t, planOf([]string{"a", "b"}, scenarios, 2, 1, 2), nil, func(t *testing.T, out *played) {
		if out.err != nil || out.sum != (Summary{OK: 10, Unsupported: 6, Planned: 16}) {
			t.Fatalf("err %v, %+v", out.err, out.sum)
		}
		for cell, r := range out.records {
			switch {
			case !strings.HasPrefix(cell, "a__") || r.Scenario == "text_short":
				out.answered(t, &r)
			case cell == firstLacking:
				out.refused(t, &r)
			default:
				out.notSent(t, &r)
			}
		}
		if _, warm := out.sentTo("a__cpu__m__text_short"); warm != 1 {
			t.Errorf("%d warm-ups of the first cell that was answered", warm)
		}
		asked := slices.IndexFunc(out.events, func(e Event) bool { return e.Kind == EventTurn && e.Cell.Name == "a__cpu__m__function_call" })
		if run := out.place.runs["a__cpu__m"]; asked >= 0 || run.Incomplete != "" {
			t.Errorf("event %d, run %q", asked, run.Incomplete)
		}
	})
}

const firstLacking = "a__cpu__m__tool_use_selection_weather"

func (p *played) answered(t *testing.T, r *matrix.Record) {
	t.Helper()
	if timed, _ := p.sentTo(r.Cell); r.Status != matrix.StatusOK || r.Lack != nil || timed != 2*r.Concurrency*r.Turns {
		t.Errorf("%s: %s %q, %d requests", r.Cell, r.Status, r.Detail, timed)
	}
}

// lacks holds that a record is of a cell that needs tools, of which the first cell was told that there are none.
func lacks(t *testing.T, r *matrix.Record) bool {
	t.Helper()
	if r.Status != matrix.StatusUnsupported || r.Lack == nil || r.Lack.Capability != "tools" || !strings.HasPrefix(r.Lack.Case, firstLacking+"/") || r.DecodeTPS != nil || r.Run != "run-a__cpu__m" {
		t.Errorf("%s: %s %q, %+v", r.Cell, r.Status, r.Detail, r.Lack)
		return false
	}
	return true
}

func (p *played) refused(t *testing.T, r *matrix.Record) {
	t.Helper()
	timed, warm := p.sentTo(r.Cell)
	if lacks(t, r) && (timed != 1 || warm != 1 || len(r.Exchanges) != 1 || r.Exchanges[0] != r.Lack.Exchange || r.Repeats != 1 || r.Detail != "the engine has no tools: \"registry/m does not support tools\"") {
		t.Errorf("%s: %d requests, %d warm-ups, %q, exchanges %v", r.Cell, timed, warm, r.Detail, r.Exchanges)
	}
}

func (p *played) notSent(t *testing.T, r *matrix.Record) {
	t.Helper()
	timed, warm := p.sentTo(r.Cell)
	if lacks(t, r) && (timed+warm > 0 || len(r.Exchanges) > 0 || r.Repeats != 0 || !strings.HasSuffix(r.Detail, "as it said to "+r.Lack.Case+"; it is asked once a model")) {
		t.Errorf("%s was not to be sent: %d requests, %q", r.Cell, timed+warm, r.Detail)
	}
}

// TestWhatIsNoLack holds that every other refusal is a failure, and that each cell is asked for itself then.
func TestWhatIsNoLack(t *testing.T) {
	for name, c := range map[string]struct{ held, says, scenario string }{
		"one tool":           {`"tools"`, "tool get_weather: its schema is not supported", "tool_use_selection_weather"},
		"another capability": {`"tools"`, "image input is not supported", "function_call"},
		"nothing was needed": {`"messages"`, "registry/m does not support tools", "text_short"},
	} {
		p := &place{options: map[string]sim.Options{"a": quick}, config: map[string]sim.Config{"a": without(c.held, c.says)}}
		p.play(t, planOf([]string{"a"}, []string{c.scenario}, 1, 1, 2), nil, func(t *testing.T, out *played) {
			if out.sum != (Summary{Failed: 2, Planned: 2}) {
				t.Errorf("%s: %+v", name, out.sum)
			}
			for cell, r := range out.records {
				if timed, _ := out.sentTo(cell); r.Status != matrix.StatusFail || r.Lack != nil || timed != r.Concurrency {
					t.Errorf("%s: %s: %s %q, %d requests", name, cell, r.Status, r.Detail, timed)
				}
			}
		})
	}
}

// TestImagesAndAudio holds that pictures and sounds are capabilities of their own.
func TestImagesAndAudio(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick, "b": quick}, config: map[string]sim.Config{
		"a": without(`"image_url"`, "image input is not supported"), "b": without(`"input_audio"`, "At most 0 audio(s) may be provided in one request"),
	}}
	p.play(t, planOf([]string{"a", "b"}, []string{"image", "audio", "video"}, 1, 1), nil, func(t *testing.T, out *played) {
		got := map[string]string{}
		for cell, r := range out.records {
			got[cell] = string(r.Status)
			if r.Lack != nil {
				timed, _ := out.sentTo(cell)
				got[cell] += " " + r.Lack.Capability + " " + string(rune('0'+timed))
			}
		}
		want := map[string]string{"a__cpu__m__image": "unsupported images 1", "a__cpu__m__audio": "ok", "a__cpu__m__video": "unsupported images 0",
			"b__cpu__m__image": "ok", "b__cpu__m__audio": "unsupported audio 1", "b__cpu__m__video": "ok"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestLacksOfAServer holds that groups at one address share what a model lacks, and launches do not.
func TestLacksOfAServer(t *testing.T) {
	for transport, want := range map[string]int{matrix.TransportConnect: 1, matrix.TransportServer: 2} {
		plan := planOf([]string{"a", "b"}, []string{"function_call"}, 1, 1)
		for i := range plan.Groups {
			plan.Groups[i].Launch.Transport, plan.Groups[i].Launch.URL = transport, "http://127.0.0.1:1"
		}
		refuses := without(`"tools"`, "m does not support tools")
		p := &place{options: map[string]sim.Options{"a": quick, "b": quick}, config: map[string]sim.Config{"a": refuses, "b": refuses}}
		p.play(t, plan, nil, func(t *testing.T, out *played) {
			one, _ := out.sentTo("a__cpu__m__function_call")
			other, _ := out.sentTo("b__cpu__m__function_call")
			if out.sum.Unsupported != 2 || one+other != want {
				t.Errorf("%s: %+v, %d requests", transport, out.sum, one+other)
			}
		})
	}
}

// TestRefusedAfterAnAnswer holds that an engine which answered in one repeat, and then says that it cannot, has failed.
func TestRefusedAfterAnAnswer(t *testing.T) {
	refuses := without("-r1-i0]", "m does not support tools")
	p := &place{options: map[string]sim.Options{"a": quick}, config: map[string]sim.Config{"a": refuses}}
	p.play(t, planOf([]string{"a"}, []string{"function_call"}, 2, 1), nil, func(t *testing.T, out *played) {
		if r := out.records["a__cpu__m__function_call"]; r.Status != matrix.StatusFail || r.Lack != nil || len(r.Exchanges) != 2 {
			t.Errorf("%s %q, %d exchanges", r.Status, r.Detail, len(r.Exchanges))
		}
	})
}

// TestToolUseInItsOwnAPI holds that only cells of the tool_use suite are asked as the place says for them, and not streamed.
func TestToolUseInItsOwnAPI(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick}, manner: &Manner{}}
	p.manner.Changes.Bridges = []bridge.Endpoint{{Dialect: wire.DialectOllama, Engine: "ollama"}}
	p.play(t, planOf([]string{"a"}, []string{"tool_use_selection_stock", "function_call"}, 1, 1), nil, func(t *testing.T, out *played) {
		if len(out.place.seen) == 0 {
			t.Fatal("nothing was sent")
		}
		for _, x := range out.place.seen {
			var body struct{ Stream *bool }
			err := json.Unmarshal(x.Request.Body.Bytes(), &body)
			own := strings.Contains(x.Cell, "tool_use")
			if err != nil || (x.Request.Target == "/api/chat") != own || own != (body.Stream != nil && !*body.Stream) {
				t.Errorf("%s: %s, stream %v, %v", x.Cell, x.Request.Target, body.Stream, err)
			}
		}
		if out.sum.OK != 2 {
			t.Errorf("%+v: %+v", out.sum, out.records)
		}
	})
}

// TestDraftsNeedNoLack holds that methods of a scenario that the model cannot do are not told as failed.
func TestDraftsNeedNoLack(t *testing.T) {
	none := &matrix.Record{Cell: "none", Method: "none", Status: matrix.StatusOK}
	with := &matrix.Record{Cell: "with", Method: "draft-mtp"}
	with.LackWith(exchange.Lack{Capability: "tools"}, "the engine has no tools")
	if got := Draftings([]*matrix.Record{none, with}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
