package main

import (
	"sync"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// meterQueue is how many sealed exchanges may wait to be measured when nothing is recorded.
const meterQueue = 4096

// meter is a sink that keeps nothing: it derives the row of each exchange, off the measured path.
type meter struct {
	in  chan *exchange.Exchange
	row func(exchange.Summary)
	wg  sync.WaitGroup
}

func newMeter(row func(exchange.Summary)) *meter {
	m := &meter{in: make(chan *exchange.Exchange, meterQueue), row: row}
	m.start()
	return m
}

func (m *meter) start() {
	m.wg.Go(func() {
		for x := range m.in {
			m.row(derive(x))
		}
	})
}

// Offer takes x unless too many wait.
func (m *meter) Offer(x *exchange.Exchange) bool {
	select {
	case m.in <- x:
		return true
	default:
		return false
	}
}

// Close measures what waits and returns. Nothing may be offered after.
func (m *meter) Close() {
	close(m.in)
	m.wg.Wait()
}
