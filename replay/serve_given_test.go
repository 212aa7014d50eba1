package replay

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestServeTellsOfAnswersAndMisses holds what is told of an answer that was given and of a miss: of which record, when, and
// in which trace the client asked for it.
func TestServeTellsOfAnswersAndMisses(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	x := answering(question, chunkedHead, say("a"), chatEnd)
	x.Interventions = append(x.Interventions, exchange.Intervention{Kind: "header_added", Where: exchange.SideEngine, Name: "traceparent", To: parent, Reason: "trace_context"})
	var mu sync.Mutex
	var all []Given
	o := ServeOptions{Speed: 1, OnAnswer: func(g Given) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, g)
	}}
	src := newShelf(x)
	serving(t, src, o, func(t *testing.T, c *counter) {
		recorded := src.rows[0].ID
		began := clock.Now().UTC()
		got := c.post(question, "TraceParent: "+parent, "tracestate: a=1", "Authorization: Bearer x")
		c.post(question)
		c.post(strings.Replace(question, "model", "modle", 1), "traceparent: "+parent)
		if r := c.report(); r.Answered != 2 || r.Misses != 1 || len(all) != 2 || len(c.misses) != 1 {
			t.Fatalf("%+v; told of %d answers and %d misses", r, len(all), len(c.misses))
		}
		span, _ := exchange.ParseTraceParent(parent)
		sent := all[0].Sent
		all[0].Read = all[0].Read.UTC()
		want := Given{Key: keyOfChat(question), Method: "POST", Target: "/v1/chat/completions", Recorded: recorded, Span: span, Status: 200, Read: began, Sent: sent,
			Took:  got.times[len(got.times)-1],
			Trace: []exchange.Header{{Name: "TraceParent", Value: parent}, {Name: "tracestate", Value: "a=1"}}}
		if d := cmp.Diff(want, all[0]); d != "" || sent < int64(len(got.head)+len(got.body)) {
			t.Errorf("%d bytes are said to be sent (-want +got)\n%s", sent, d)
		}
		if !all[1].Again || all[1].Trace != nil {
			t.Errorf("the second answer is told as %+v", all[1])
		}
		if d := cmp.Diff([]exchange.Header{{Name: "traceparent", Value: parent}}, c.misses[0].Trace); d != "" {
			t.Errorf("the miss (-want +got)\n%s", d)
		}
	})
}

// TestServeTellsOfACutAnswer holds that an answer whose client left is told as cut.
func TestServeTellsOfACutAnswer(t *testing.T) {
	var mu sync.Mutex
	var all []Given
	o := ServeOptions{Speed: 1, OnAnswer: func(g Given) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, g)
	}}
	serving(t, newShelf(answering(question, chunkedHead, say("a"), say("b"), chatEnd)), o, func(t *testing.T, c *counter) {
		v := c.visit()
		if _, err := v.conn.Write([]byte(chatPost(question))); err != nil {
			t.Fatal(err)
		}
		v.conn.Close()
		c.report()
		mu.Lock()
		defer mu.Unlock()
		if len(all) != 1 || !all[0].Cut {
			t.Errorf("told is %+v", all)
		}
	})
}
