package main

import (
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	// meterQueue is how many sealed exchanges may wait to be measured when nothing is recorded.
	meterQueue = 4096
	// meterPause is how long sealed exchanges gather before they are measured: waking a goroutine for each of them
	// would cost the measured path more than the measuring.
	meterPause = 3 * time.Millisecond
)

// meter is a sink that keeps nothing: it derives the row of each exchange, off the measured path.
type meter struct {
	derive func(*exchange.Exchange) exchange.Summary
	row    func(exchange.Summary)
	wake   chan struct{} // the first of a batch waits
	end    chan struct{} // closed by Close
	wg     sync.WaitGroup

	mu      sync.Mutex
	waiting []*exchange.Exchange
}

func newMeter(derive func(*exchange.Exchange) exchange.Summary, row func(exchange.Summary)) *meter {
	m := &meter{derive: derive, row: row, wake: make(chan struct{}, 1), end: make(chan struct{})}
	m.start()
	return m
}

func (m *meter) start() { m.wg.Go(m.run) }

// Offer takes x unless too many wait.
func (m *meter) Offer(x *exchange.Exchange) bool {
	m.mu.Lock()
	n := len(m.waiting)
	if n < meterQueue {
		m.waiting = append(m.waiting, x)
	}
	m.mu.Unlock()
	if n == 0 {
		m.wake <- struct{}{} // there is room: what it tells is taken before the next batch can begin
	}
	return n < meterQueue
}

// run measures batch by batch until Close.
func (m *meter) run() {
	for {
		select {
		case <-m.wake:
		case <-m.end:
			m.batch()
			return
		}
		select {
		case <-time.After(meterPause):
		case <-m.end:
		}
		m.batch()
	}
}

func (m *meter) batch() {
	m.mu.Lock()
	batch := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	for _, x := range batch {
		m.row(m.derive(x))
	}
}

// Close measures what waits and returns. Nothing may be offered after.
func (m *meter) Close() {
	close(m.end)
	m.wg.Wait()
}
