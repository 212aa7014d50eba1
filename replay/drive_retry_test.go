package replay

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// loading answers the first n chat requests with 503 and this Retry-After.
func loading(n int32, after string) sim.Config {
	c := steady
	var seen atomic.Int32
	c.Handler = func(req sim.Request) *sim.Script {
		if seen.Add(1) > n {
			return nil
		}
		s := &sim.Script{Status: 503, Framing: sim.FramingLength, Steps: []sim.Step{{Data: []byte(`{"error":"loading"}`)}},
			Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}}
		if after != "" {
			s.Headers = append(s.Headers, exchange.Header{Name: "Retry-After", Value: after})
		}
		return s
	}
	return c
}

func TestAskedToComeBack(t *testing.T) {
	o := PlanOptions{Loop: LoopRate, Rate: 1}
	rig{engine: loading(2, "3")}.play(t, many(1, 0, 10), o, func(t *testing.T, p *played) {
		r := p.report(t)
		if want := (exchange.ItemCounts{Planned: 1, Complete: 1, Requests: 3, Retries: 2}); r.Items != want {
			t.Errorf("items %+v, want %+v", r.Items, want)
		}
		if r.Schedule.Sent != 1 || *r.Schedule.LagMS.Max != 0 || r.Schedule.SentMS.N != 0 {
			t.Errorf("a second attempt is in the schedule: %+v", r.Schedule)
		}
		xs := p.records[0].measured()
		for i, x := range xs {
			if x.Item.Attempt != i || offsets(xs)[i] != time.Duration(i)*3*time.Second {
				t.Errorf("attempt %d is told as %d, after %s", i, x.Item.Attempt, offsets(xs)[i])
			}
			if at, _ := x.Timeline.SendStart.NS(); at > int64(time.Second) {
				t.Error("the wait is in the timeline of the attempt")
			}
		}
		if pr := p.driver.Progress(); pr.Ended != 1 || pr.Failed != 0 || pr.InFlight != 0 || pr.Tokens != 10 {
			t.Errorf("progress %+v", pr)
		}
	})
}

// Nothing but a 503 that says when to come back is ever sent again, and that not for ever.
func TestNotSentAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		engine  sim.Config
		header  string
		retries int
		want    int // requests
	}{
		"without a time":    {loading(9, ""), "", 0, 1},
		"nonsense":          {loading(9, "soon"), "", 0, 1},
		"below zero":        {loading(9, "-1"), "", 0, 1},
		"for ever":          {loading(99, "1"), "", 0, 1 + DefaultRetries},
		"none wanted":       {loading(9, "1"), "", -1, 1},
		"refused":           {steady, "status=400", 0, 1},
		"too many":          {steady, "status=429", 0, 1},
		"broken":            {steady, "fault=reset@2", 0, 1},
		"closed unread":     {steady, "fault=crash_conn", 0, 1},
		"cut in the middle": {steady, "fault=truncate_event@4", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := many(1, 0, 10)
			if tc.header != "" {
				w.Items[0].Headers = append(w.Items[0].Headers, exchange.Header{Name: "X-Sim", Value: tc.header})
			}
			rig{engine: tc.engine}.play(t, w, PlanOptions{Loop: LoopClosed, Retries: tc.retries}, func(t *testing.T, p *played) {
				r := p.report(t)
				if r.Items.Requests != tc.want || r.Items.Failed != 1 || r.Incomplete != "" {
					t.Errorf("%d requests, want %d; %+v %q", r.Items.Requests, tc.want, r.Items, r.Incomplete)
				}
			})
		})
	}
}

func TestRetryAfterAsADate(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"Fri, 01 May 2026 12:00:30 GMT": 30 * time.Second, "Fri, 01 May 2026 11:00:00 GMT": 0, "Sat, 02 May 2026 12:00:00 GMT": maxRetryWait,
		"0.5": 500 * time.Millisecond, "1e300": maxRetryWait, " 7 ": 7 * time.Second,
	} {
		x := &exchange.Exchange{End: exchange.EndEOF}
		x.Timeline.Wall = now
		x.Response.Status = 503
		x.Response.Headers = []exchange.Header{{Name: "retry-after", Value: value}}
		if got, ok := retryAfter(x); !ok || got != want {
			t.Errorf("%q: %s, %v; want %s", value, got, ok, want)
		}
	}
}

// toolTalk is a conversation in which the recorded engine called a tool, and got its result.
func toolTalk(headers ...exchange.Header) *Workload {
	const tools = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	user := `{"role":"user","content":"weather?"}`
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_recorded","type":"function","function":{"name":"get_weather","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"call_recorded","content":"sunny"}`
	w := &Workload{Name: "tools"}
	for turn, messages := range []string{user, user + "," + call + "," + result} {
		it := asked(fmt.Sprint("t", turn), 0, `{"model":"sim","stream":true,"max_tokens":40,`+tools+`,"messages":[`+messages+`]}`)
		it.Conversation, it.Turn = "talk", turn
		it.Headers = append(it.Headers, headers...)
		w.Items = append(w.Items, it)
	}
	return w
}

func TestLiveHistory(t *testing.T) {
	rig{engine: steady}.play(t, toolTalk(), PlanOptions{Loop: LoopClosed, LiveHistory: true}, func(t *testing.T, p *played) {
		if r := p.report(t); r.Items.Complete != 1 || r.Items.Requests != 2 {
			t.Fatalf("items %+v", r.Items)
		}
		xs := p.records[0].measured()
		body := string(xs[1].Request.Body.Bytes())
		if strings.Contains(body, "call_recorded") || !strings.Contains(body, `"role":"tool","tool_call_id":"call_`) || !strings.Contains(body, "sunny") {
			t.Errorf("the second turn has %s", body)
		}
		if n := len(xs[1].Interventions); n < 2 || xs[1].Interventions[0].Reason != "live_history" {
			t.Errorf("interventions %+v", xs[1].Interventions)
		}
	})
}

func TestLiveHistoryThatCannotGoOn(t *testing.T) {
	w := toolTalk(exchange.Header{Name: "X-Sim", Value: "tools=off"}) // it answers with text
	rig{engine: steady}.play(t, w, PlanOptions{Loop: LoopClosed, LiveHistory: true}, func(t *testing.T, p *played) {
		if r := p.report(t); r.Items.Partial != 1 || r.Items.Requests != 1 || r.Incomplete != "" {
			t.Errorf("items %+v, %q", r.Items, r.Incomplete)
		}
	})
	rig{engine: steady}.play(t, w, PlanOptions{Loop: LoopClosed}, func(t *testing.T, p *played) {
		if r := p.report(t); r.Items.Complete != 1 || r.Items.Requests != 2 {
			t.Errorf("as recorded: items %+v", r.Items)
		}
	})
}

func TestRequestThatCannotBeMadeEndsTheRun(t *testing.T) {
	w := many(5, 0, 10)
	w.Items[2].payload = func() ([]byte, error) { return nil, fmt.Errorf("read blob: %w", exchange.ErrDamaged) }
	rig{engine: steady}.play(t, w, PlanOptions{Loop: LoopClosed}, func(t *testing.T, p *played) {
		r := p.driver.Report(0)
		if p.err == nil || !strings.Contains(r.Incomplete, "read request r2: read blob") {
			t.Errorf("err = %v, incomplete %q", p.err, r.Incomplete)
		}
	})
}
