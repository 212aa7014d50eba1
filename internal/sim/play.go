package sim

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// player performs the plan of one request.
type player struct {
	conn  *conn
	rec   *Record
	read  time.Time // the request was read whole
	watch *watch
	deaf  bool          // go on when the client left
	slot  time.Duration // when the slot was taken, since read
	ended string        // why playing stopped; "" = the plan is done
	held  bool          // a slot is taken
	done  func(Record)  // is told of the end; nil = nobody is
}

// takeSlot waits for a slot in order of arrival. It is false when the client or the server went first.
func (p *player) takeSlot() bool {
	if slots := p.conn.srv.slots; slots != nil {
		select {
		case slots <- struct{}{}:
			p.held = true
		case <-p.watch.gone:
			p.lost()
			return false
		case <-p.conn.srv.quit:
			p.ended = EndedClose
			return false
		}
	}
	p.slot = clock.Since(p.read)
	p.conn.srv.journal.change(func() { p.rec.Slot = int64(p.slot) })
	return true
}

func (p *player) freeSlot() {
	if p.held {
		<-p.conn.srv.slots
	}
}

// play performs every write at its instant and then the ending. It reports whether the connection may carry another
// request.
func (p *player) play(pl plan) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, w := range pl.writes {
		if !p.waitUntil(timer, w.at) || !p.write(w) {
			return p.finish(EndTruncate)
		}
	}
	// A client that leaves when it has all was not left without anything.
	if n := len(pl.writes); (n == 0 || pl.endAt > pl.writes[n-1].at) && !p.waitUntil(timer, pl.endAt) {
		return p.finish(EndTruncate)
	}
	if pl.end == EndKeep && pl.closes {
		return p.finish(EndClose)
	}
	return p.finish(pl.end)
}

// waitUntil waits for an instant since the slot. It is false when the client or the server went first.
func (p *player) waitUntil(timer *time.Timer, at time.Duration) bool {
	gone := p.watch.gone
	if p.deaf {
		gone = nil
	}
	wait := at - (clock.Since(p.read) - p.slot)
	if wait <= 0 {
		select {
		case <-gone:
			p.lost()
			return false
		case <-p.conn.srv.quit:
			p.ended = EndedClose
			return false
		default:
			return true
		}
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-gone:
		p.lost()
		return false
	case <-p.conn.srv.quit:
		p.ended = EndedClose
		return false
	}
}

// write performs one write and enters it. It is false when the client did not take it.
func (p *player) write(w planned) bool {
	j := p.conn.srv.journal
	j.writing(p.rec, p.read, Write{
		Plan: int64(p.slot + w.at), Size: len(w.data), Body: w.body, Token: w.token, Tokens: w.tokens,
	}, w.data)
	n, err := p.conn.nc.Write(w.data)
	j.wrote(p.rec, int64(clock.Since(p.read)), n)
	if err != nil {
		p.lost()
	}
	return err == nil
}

// relay lets answer write to the client, and ends the connection as it says.
func (p *player) relay(answer func(ctx context.Context, w io.Writer) Ending) bool {
	p.conn.untold.Store(true) // what it writes is not looked at
	defer p.conn.untold.Store(false)
	if answer(p.watch.ctx, relayWriter{p}) == EndReset {
		return p.finish(EndReset)
	}
	return p.finish(EndClose)
}

// relayWriter enters what a relay writes: due when it came.
type relayWriter struct{ p *player }

// Write implements io.Writer.
func (w relayWriter) Write(data []byte) (int, error) {
	at := clock.Since(w.p.read) - w.p.slot
	if !w.p.write(planned{at: at, data: data}) {
		return 0, net.ErrClosed
	}
	return len(data), nil
}

// lost ends the answer because the connection is gone: the server closed it, or else the client left.
func (p *player) lost() {
	select {
	case <-p.conn.srv.quit:
		p.ended = EndedClose
	default:
		p.ended = EndedGone
	}
}

// goneAt is when the client was found gone, since the request was read; 0 when it is there.
func (p *player) goneAt(now time.Duration) time.Duration {
	if p.ended == EndedClose {
		return 0
	}
	select {
	case <-p.watch.gone:
		return p.watch.at.Sub(p.read)
	default:
	}
	if p.ended == EndedGone { // a write told it before the watch
		return now
	}
	return 0
}

// finish performs the ending and enters the end of the request.
func (p *player) finish(end Ending) bool {
	if end == EndHang {
		select {
		case <-p.watch.gone:
			p.lost()
		case <-p.conn.srv.quit:
			p.ended = EndedClose
		}
	}
	ended := p.ended
	if ended == "" {
		ended = EndedSent
	}
	now := clock.Since(p.read)
	gone := p.goneAt(now)
	p.conn.srv.journal.change(func() { p.rec.End, p.rec.Gone, p.rec.Ended = int64(now), int64(gone), ended })
	if p.done != nil {
		p.done(*p.rec) // nobody else writes into it
	}
	switch {
	case ended == EndedGone:
		p.conn.close("client", nil)
	case ended == EndedClose && !p.conn.srv.didCrash():
		p.conn.interrupt()
	case end == EndKeep:
		return true
	case end == EndCrash:
		p.conn.cut(false)
		p.conn.srv.shut(true)
	case end == EndTruncate || end == EndReset:
		p.conn.cut(end == EndReset)
	default:
		p.conn.close("server", nil)
	}
	return false
}
