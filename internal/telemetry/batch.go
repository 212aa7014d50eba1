package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// batcher sends spans in batches, behind everything else. Unlike the SDK's it counts what it loses.
type batcher struct {
	to       sdktrace.SpanExporter
	s        *Settings
	trouble  func(error)
	queue    chan sdktrace.ReadOnlySpan
	end      chan struct{} // closed by Shutdown
	once     sync.Once
	ended    sync.WaitGroup
	hurry    context.Context // ends what is being sent
	hurryUp  context.CancelFunc
	sent     atomic.Int64
	lost     atomic.Int64 // the exporter did not take them
	overflow atomic.Int64 // they found no room in the queue
}

func newBatcher(to sdktrace.SpanExporter, s *Settings, trouble func(error)) *batcher {
	b := &batcher{to: to, s: s, trouble: trouble, queue: make(chan sdktrace.ReadOnlySpan, s.Queue), end: make(chan struct{})}
	b.hurry, b.hurryUp = context.WithCancel(context.Background())
	b.start()
	return b
}

func (b *batcher) start() { b.ended.Go(b.run) }

// add queues a span and never waits.
func (b *batcher) add(span sdktrace.ReadOnlySpan) {
	select {
	case b.queue <- span:
	default:
		b.overflow.Add(1)
	}
}

// run sends what is queued until Shutdown, and then what is left.
func (b *batcher) run() {
	tick := time.NewTicker(b.s.Delay)
	defer tick.Stop()
	batch := make([]sdktrace.ReadOnlySpan, 0, b.s.Batch)
	for {
		select {
		case span := <-b.queue:
			if batch = append(batch, span); len(batch) == b.s.Batch {
				batch = b.send(batch)
			}
		case <-tick.C:
			batch = b.send(batch)
		case <-b.end:
			b.drain(batch)
			return
		}
	}
}

func (b *batcher) drain(batch []sdktrace.ReadOnlySpan) {
	for {
		select {
		case span := <-b.queue:
			if batch = append(batch, span); len(batch) == b.s.Batch {
				batch = b.send(batch)
			}
		default:
			b.send(batch)
			return
		}
	}
}

// send exports a batch and gives its memory back, empty.
func (b *batcher) send(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(b.hurry, b.s.Patience)
	defer cancel()
	lost := int64(0)
	if err := b.to.ExportSpans(ctx, batch); err != nil {
		lost = int64(len(batch))
		var some *rejectedError
		if errors.As(err, &some) {
			lost = min(some.rejected, lost)
		}
		b.trouble(err)
	}
	b.lost.Add(lost)
	b.sent.Add(int64(len(batch)) - lost)
	clear(batch)
	return batch[:0]
}

// Shutdown sends what waits, as long as ctx allows, and ends the exporter. What could not be sent is counted.
func (b *batcher) Shutdown(ctx context.Context) error {
	b.once.Do(func() { close(b.end) })
	stop := context.AfterFunc(ctx, b.hurryUp)
	defer stop()
	b.ended.Wait()
	b.hurryUp()
	return b.to.Shutdown(ctx)
}
