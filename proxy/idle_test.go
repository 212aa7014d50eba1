package proxy

import (
	"sync"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// TestIdleTellsOfTheFirstAndTheLast holds that only the first exchange to begin and the last to end change the answer.
func TestIdleTellsOfTheFirstAndTheLast(t *testing.T) {
	s := NewSession(SessionOptions{})
	a, b := &flight{s: s}, &flight{s: s}
	idle, changed := s.Idle()
	if _, same := s.Idle(); !idle || closed(changed) || same != changed {
		t.Fatal("a new session is not idle")
	}
	s.add(a)
	if !closed(changed) {
		t.Error("the first exchange was not told")
	}
	idle, changed = s.Idle()
	s.add(b)
	s.finish(a, &exchange.Exchange{End: exchange.EndEOF})
	if idle || closed(changed) {
		t.Error("idle while an exchange runs")
	}
	s.finish(b, &exchange.Exchange{End: exchange.EndEOF})
	if idle, _ := s.Idle(); !closed(changed) || !idle {
		t.Error("the last exchange was not told")
	}
}

// TestIdleUnderTraffic churns exchanges while others wait for an idle and for a busy session: nobody waits for ever.
func TestIdleUnderTraffic(t *testing.T) {
	s := NewSession(SessionOptions{})
	var traffic, waiting sync.WaitGroup
	for range 4 {
		traffic.Go(func() {
			for range 500 {
				f := &flight{s: s}
				s.add(f)
				s.finish(f, &exchange.Exchange{End: exchange.EndEOF})
			}
		})
		waiting.Go(func() {
			for idle, changed := s.Idle(); !idle; idle, changed = s.Idle() {
				<-changed
			}
		})
	}
	traffic.Wait()
	waiting.Wait()
	if idle, _ := s.Idle(); !idle {
		t.Error("not idle after all ended")
	}
}
