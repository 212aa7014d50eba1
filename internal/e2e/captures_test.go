package e2e

import (
	"bytes"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// captureScript plays a capture in its own pieces; speed 0 is at once.
func captureScript(t testing.TB, c wiretest.Capture, speed float64) *sim.Script {
	t.Helper()
	end, ok := map[string]sim.Ending{"complete": sim.EndKeep, "eof": sim.EndTruncate, "client-abort": sim.EndHang}[c.Facts.End]
	if !ok {
		t.Fatalf("%s ended %q", c.ID(), c.Facts.End)
	}
	var recvs []sim.Recv
	for _, r := range c.Recvs {
		recvs = append(recvs, sim.Recv{At: time.Duration(r.At), Size: r.Size})
	}
	s, err := sim.RawScript(c.Raw, recvs, end, speed)
	if err != nil {
		t.Fatalf("%s: %v", c.ID(), err)
	}
	return s
}

// scripted answers each request by its case header.
func scripted(scripts map[string]*sim.Script) sim.Config {
	return sim.Config{Handler: func(r sim.Request) *sim.Script { return scripts[caseOf(r)] }}
}

// TestEveryCaptureAtOnce plays all captures as fast as the sockets take them: bytes are untouched on either side of the
// record, no stamp is early, and reads that were merged for want of time are counted.
func TestEveryCaptureAtOnce(t *testing.T) {
	all := wiretest.Captures(t)
	scripts := map[string]*sim.Script{}
	for _, c := range all {
		scripts[c.ID()] = captureScript(t, c, 0)
	}
	r := newRig(t, func(o *rigOptions) { o.engine = scripted(scripts) })
	answers := make([]answer, len(all))
	for i, c := range all {
		answers[i] = playCapture(t, r, c, c.ID())
	}
	merged := 0
	for i, c := range all {
		t.Run(c.ID(), func(t *testing.T) {
			if x := checkCapture(t, r, c, c.ID(), answers[i]); slices.Contains(x.row.Flags, measure.FlagMergedReads) {
				merged++
			}
		})
	}
	t.Logf("%d captures, %d with merged reads", len(all), merged)
}

// TestCapturesAtRecordedSpeed plays captures with their own pauses: then the pieces of the engine are the reads of the
// record.
func TestCapturesAtRecordedSpeed(t *testing.T) {
	ids := []string{
		"llama-server/chat-stream-200", "llama-server/chat-stream-usage", "llama-server/slow-stream", "llama-server/think-stream",
		"llama-server/abort-midstream", "ollama/api-chat-stream", "ollama/v1-chat-stream-usage", "ollama/api-generate-raw-stream",
	}
	scripts := map[string]*sim.Script{}
	for _, id := range ids {
		for n := range attempts {
			scripts[id+"#"+strconv.Itoa(n)] = captureScript(t, wiretest.LoadCapture(t, id), 1)
		}
	}
	r := newRig(t, func(o *rigOptions) { o.engine = scripted(scripts) })
	for _, id := range ids {
		c := wiretest.LoadCapture(t, id)
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			undisturbed(t, func(n int) bool {
				name := id + "#" + strconv.Itoa(n)
				x := checkCapture(t, r, c, name, playCapture(t, r, c, name))
				return splitsVisible(t, x, r.truth(t, name))
			})
		})
	}
}

// undisturbed plays a stream until the machine did not hold it up, which play reports.
func undisturbed(t testing.TB, play func(n int) bool) {
	t.Helper()
	for n := range attempts {
		if play(n) || t.Failed() {
			return
		}
		t.Logf("play %d was disturbed", n)
	}
	t.Errorf("disturbed %d times", attempts)
}

// within holds that something happened no earlier than the engine's write before it, and reports whether it happened
// at most liveBound after.
func within(t testing.TB, what string, delay time.Duration) bool {
	t.Helper()
	if delay < -granularity {
		t.Errorf("%s is %v before the engine's write", what, -delay)
	}
	if delay > liveBound {
		t.Logf("%s is %v after the engine's write", what, delay)
	}
	return delay <= liveBound
}

// playCapture sends the request of a capture. A client that left in the capture leaves at the same byte.
func playCapture(t *testing.T, r *rig, c wiretest.Capture, name string) answer {
	t.Helper()
	conn := dial(t, r.addr)
	defer conn.Close()
	conn.send(request{method: c.Method, target: c.Path, name: name, body: string(c.RequestBody)})
	return conn.answer(c.Method, leaveAfter(c))
}

// leaveAfter is the number of body bytes after which the client of a capture left, 0 when it stayed.
func leaveAfter(c wiretest.Capture) int {
	if c.Facts.End == "client-abort" {
		return len(c.Body)
	}
	return 0
}

// checkCapture holds everything about a capture that was played that does not depend on the speed of the machine.
func checkCapture(t *testing.T, r *rig, c wiretest.Capture, name string, a answer) record {
	t.Helper()
	x := r.stored(t, name, 0)
	if c.Head == nil {
		if a.StatusCode != 502 || x.End != exchange.EndShort || x.row.Outcome != exchange.OutcomeUpstreamError {
			t.Errorf("an engine without an answer gave the client %d, the record %s and %s", a.StatusCode, x.End, x.row.Outcome)
		}
		return x
	}
	if early := a.err != nil; a.StatusCode != c.Status || early != (!c.Whole && leaveAfter(c) == 0) {
		t.Errorf("the client got status %d and %v, want %d", a.StatusCode, a.err, c.Status)
	}
	want := c.Body
	if c.Method == "HEAD" {
		want = nil
	}
	sameBytes(t, "the client's body", a.body, want)
	sameBytes(t, "the recorded body", x.Response.Body.Bytes(), want)
	sameBytes(t, "the recorded head", x.Response.Head, c.Head)
	if sum := exchange.NewBody(want).Sum(); x.row.ResponseSum != sum || x.State != exchange.StateStored {
		t.Errorf("the record is %s with the digest %s, want %s", x.State, x.row.ResponseSum, sum)
	}
	sameBytes(t, "the recorded request", x.Request.Body.Bytes(), c.RequestBody)
	if left := leaveAfter(c) > 0; left != (x.End == exchange.EndClientGone) {
		t.Errorf("sealed as %s", x.End)
	}
	checkStamps(t, x, r.truth(t, name))
	checkMerged(t, x)
	return x
}

// checkStamps holds that nothing was stamped before the engine wrote it: the head against the write of its last byte,
// each read against the newest write of which it holds a body byte.
func checkStamps(t testing.TB, x record, engine sim.Record) {
	t.Helper()
	head, _ := x.Timeline.HeaderRead.NS()
	i := slices.IndexFunc(engine.Writes, func(w sim.Write) bool { return w.Offset+w.Size >= len(x.Response.Head) })
	if i < 0 || engine.Writes[i].Wall-wallOf(x, head) > int64(granularity) {
		t.Errorf("the head is stamped at %d, before the engine's write %d of its end", wallOf(x, head), i)
	}
	end := 0
	for i, rd := range x.Timeline.Reads {
		if rd.Size == 0 {
			continue
		}
		end += rd.Size
		w := writeOf(t, engine, end)
		if early := w.Wall - wallOf(x, rd.At); early > int64(granularity) {
			t.Errorf("read %d is stamped %d ns before the write of its last byte", i, early)
		}
	}
}

// wallOf is an instant of an exchange on the wall clock, in ns.
func wallOf(x record, at int64) int64 { return x.Timeline.Wall.UnixNano() + at }

// writeOf is the engine's write that holds the last of the first n body bytes.
func writeOf(t testing.TB, engine sim.Record, n int) sim.Write {
	t.Helper()
	i := sort.Search(len(engine.Writes), func(i int) bool { return engine.Writes[i].Body >= n })
	if i == len(engine.Writes) {
		t.Fatalf("the engine wrote no body byte %d", n)
	}
	return engine.Writes[i]
}

// checkMerged counts the reads of a stream that hold more than one token event, from the whole body and the sizes of the
// reads, and compares it with the figure and the flag of the row.
func checkMerged(t testing.TB, x record) {
	t.Helper()
	p := wire.NewParser(wire.InfoOf(x.Exchange))
	p.Feed(x.Response.Body.Bytes(), 0)
	whole := p.Finish(x.End == exchange.EndEOF)
	if whole.Coding != "" {
		t.Fatalf("coded in %s: its events have no place in the body", whole.Coding)
	}
	perRead := map[int]int{}
	tokens := 0
	for _, e := range whole.Events {
		if e.Kinds != 0 {
			tokens++
			perRead[readOf(x.Timeline.Reads, e.End)]++
		}
	}
	want := 0
	for _, n := range perRead {
		if n > 1 {
			want++
		}
	}
	f := x.row.Metrics[measure.MergedReads]
	if f.Present() != (x.row.Stream && tokens > 0) || f.Present() && int(f.Value) != want {
		t.Errorf("merged_reads is %+v, counted %d in %d token events", f, want, tokens)
	}
	if flagged := slices.Contains(x.row.Flags, measure.FlagMergedReads); flagged != (want > 0) {
		t.Errorf("%d reads were merged, flags are %q", want, x.row.Flags)
	}
}

// readOf is the index of the read that brought the last of the first n body bytes.
func readOf(reads []exchange.Read, n int64) int {
	for i, rd := range reads {
		if n -= int64(rd.Size); n <= 0 {
			return i
		}
	}
	return len(reads)
}

// splitsVisible reports whether each piece of the body that the engine wrote at least 2 ms before the next one ends a
// read of the record.
func splitsVisible(t testing.TB, x record, engine sim.Record) bool {
	t.Helper()
	ends := map[int]bool{}
	sum := 0
	for _, rd := range x.Timeline.Reads {
		sum += rd.Size
		ends[sum] = true
	}
	seen, hidden := 0, 0
	for i, w := range engine.Writes {
		switch last := i == len(engine.Writes)-1; {
		case w.Body == 0 || !last && engine.Writes[i+1].At-w.Done < int64(2*time.Millisecond):
		case ends[w.Body]:
			seen++
		default:
			hidden++
		}
	}
	if seen+hidden == 0 {
		t.Errorf("no piece of %d writes stands alone", len(engine.Writes))
	}
	return hidden == 0
}

// TestKeptConnectionCarriesCaptures sends captures one after the other on one connection: none leaves a byte to the next.
func TestKeptConnectionCarriesCaptures(t *testing.T) {
	scripts, bodies := map[string]*sim.Script{}, map[string][]byte{}
	var names []string
	for _, c := range wiretest.Captures(t) {
		if c.Whole && c.Method == "POST" && c.Facts.End == "complete" {
			scripts[c.ID()], bodies[c.ID()] = captureScript(t, c, 0), c.Body
			names = append(names, c.ID())
		}
	}
	r := newRig(t, func(o *rigOptions) { o.engine = scripted(scripts) })
	conn := dial(t, r.addr)
	for _, name := range names {
		a := conn.send(chat(name)).answer("POST", 0)
		if a.err != nil || !bytes.Equal(a.body, bodies[name]) {
			t.Fatalf("%s: %v, %d bytes of %d", name, a.err, len(a.body), len(bodies[name]))
		}
	}
	if len(names) < 20 {
		t.Errorf("only %d captures were sent", len(names))
	}
}
