package proxy

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// tunnelGrace is how long the other side may go on talking after one side said it has finished.
const tunnelGrace = 10 * time.Second

// tunnel passes an upgraded connection through in both directions, untouched, and counts.
type tunnel struct {
	f      *flight
	engine *engineConn
	up     sync.WaitGroup
	sent   int64 // client to engine; read after up is done
	fail   error // of that direction
}

func newTunnel(f *flight) *tunnel { return &tunnel{f: f, engine: f.conn} }

// run serves the client's side of the tunnel until both directions have ended.
func (t *tunnel) run(client net.Conn) {
	f := t.f
	f.tunnel = &exchange.Tunnel{}
	if _, err := client.Write(f.response.Head); err != nil {
		_ = f.writeFailed(err)
		f.seal()
		return
	}
	_ = t.engine.SetDeadline(time.Time{}) // those of the request and its head would end a long session
	t.start(client)
	toClient, rerr, werr := t.down(client)
	t.settle(client, rerr, werr)
	f.tunnel.ToEngine, f.tunnel.ToClient = t.sent, toClient
	f.seal()
}

func (t *tunnel) start(client net.Conn) { t.up.Go(func() { t.upward(client) }) }

// upward copies from the client to the engine and passes the client's end on.
func (t *tunnel) upward(client net.Conn) {
	t.sent, t.fail = io.Copy(onlyWriter{t.engine.Conn}, client)
	if cw, ok := t.engine.Conn.(interface{ CloseWrite() error }); t.fail == nil && ok && cw.CloseWrite() == nil {
		_ = t.engine.SetReadDeadline(deadlineIn(tunnelGrace))
		return
	}
	t.engine.closeRaw()
}

// down copies from the engine to the client, beginning with what came behind the head.
func (t *tunnel) down(client net.Conn) (n int64, rerr, werr error) {
	f := t.f
	at := f.headAt
	for {
		if b := t.engine.unread(); len(b) > 0 {
			f.mark(at)
			k, err := client.Write(b)
			n += int64(k)
			t.engine.use(len(b))
			f.tl.ClientDone = exchange.MarkAt(f.origin.NS())
			if err != nil {
				return n, nil, err
			}
		}
		if at, rerr = t.engine.fill(f.origin); rerr != nil {
			f.tl.BodyEnd = exchange.MarkAt(at)
			return n, rerr, nil
		}
	}
}

// settle waits for the other direction and ends the exchange by what ended the tunnel.
func (t *tunnel) settle(client net.Conn, rerr, werr error) {
	f := t.f
	_ = client.SetReadDeadline(deadlineIn(0))
	t.up.Wait()
	switch {
	case f.stopped() != nil:
		_ = f.fail(rerr, "tunnel")
	case werr != nil:
		_ = f.writeFailed(werr)
	case rerr == io.EOF:
		f.end = exchange.EndEOF
		f.detach(false)
	case t.fail != nil && !isTimeout(t.fail): // the engine's side was closed because the client's broke
		_ = f.writeFailed(t.fail)
	default:
		_ = f.fail(rerr, "tunnel")
	}
}

// Close ends both directions.
func (t *tunnel) Close() error {
	t.engine.closeRaw()
	t.up.Wait()
	return nil
}

// onlyWriter hides every other ability of a connection, so that copying counts what was written.
type onlyWriter struct{ io.Writer }
