package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

// watchLines is how many running exchanges are shown one by one.
const watchLines = 8

// watch describes the exchanges that run now. It parses what they published so far, each from where it left off.
type watch struct {
	session *proxy.Session
	mu      sync.Mutex
	seen    map[exchange.ID]*watched
}

type watched struct {
	model  string
	parser *wire.Parser
	reads  int // reads the parser has taken
	bytes  int // body bytes of them
	tokens int // token events among them
	first  time.Duration
}

func newWatch(s *proxy.Session) *watch {
	return &watch{session: s, seen: map[exchange.ID]*watched{}}
}

// lines are a headline and one line for each of the oldest running exchanges; none when nothing runs.
func (w *watch) lines() []string {
	live := w.session.Live()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(live)
	if len(live) == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("%d running", len(live))}
	for _, l := range live[:min(len(live), watchLines)] {
		out = append(out, w.line(l))
	}
	return out
}

func (w *watch) forget(live []proxy.Live) {
	running := map[exchange.ID]bool{}
	for _, l := range live {
		running[l.ID] = true
	}
	for id := range w.seen {
		if !running[id] {
			delete(w.seen, id)
		}
	}
}

func (w *watch) line(l proxy.Live) string {
	s := w.seen[l.ID]
	if s == nil {
		s = &watched{model: wire.ReadRequest(l.Target, nil, l.RequestBody).Model}
		if s.model == "" {
			s.model = l.Method + " " + l.Target
		}
		w.seen[l.ID] = s
	}
	s.feed(l)
	name := runewidth.FillRight(runewidth.Truncate(printable(s.model), modelWidth, "…"), modelWidth)
	age := clock.Since(l.Started).Round(100 * time.Millisecond)
	switch {
	case l.Response == nil:
		return fmt.Sprintf("%4d  %s  %6s  waiting for the engine", l.Seq, name, age)
	case s.tokens == 0:
		return fmt.Sprintf("%4d  %s  %6s  %s, no token yet", l.Seq, name, age, bytesText(l.Size))
	}
	return fmt.Sprintf("%4d  %s  %6s  %s, %d token events, first after %s", l.Seq, name, age, bytesText(l.Size), s.tokens, s.first)
}

// feed gives the parser the reads that came since the last look.
func (s *watched) feed(l proxy.Live) {
	if l.Response == nil {
		return
	}
	if s.parser == nil {
		s.parser = wire.NewParser(wire.InfoOf(&exchange.Exchange{Request: exchange.Request{Target: l.Target}, Response: *l.Response}))
	}
	for ; s.reads < len(l.Reads); s.reads++ {
		n := l.Reads[s.reads].Size
		for _, part := range slice(l.Chunks, s.bytes, n) {
			s.parser.Feed(part, s.reads)
		}
		s.bytes += n
	}
	t := s.parser.Snapshot()
	s.tokens = t.TokenEvents()
	for _, e := range t.Events {
		if e.Kinds != 0 && e.Read < len(l.Reads) {
			sent, _ := l.Timeline.SendStart.NS()
			s.first = time.Duration(l.Reads[e.Read].At - sent).Round(time.Millisecond)
			break
		}
	}
}

// slice is n bytes from offset at of the bytes in chunks, as slices of them; fewer when they end before.
func slice(chunks [][]byte, at, n int) [][]byte {
	var out [][]byte
	for _, c := range chunks {
		if at >= len(c) {
			at -= len(c)
			continue
		}
		part := c[at:min(len(c), at+n)]
		out, n, at = append(out, part), n-len(part), 0
		if n == 0 {
			break
		}
	}
	return out
}
