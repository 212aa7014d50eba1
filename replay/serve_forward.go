package replay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/benchproxy/benchproxy/internal/sim"
)

// forward sends a request that is not recorded to the server behind Forward, as it was sent to us but for its framing, and
// copies what comes back to w. The connection is for this request alone. A reset of that server is one for the client too,
// and so is whatever else keeps the answer from being read to its end.
func (s *StandIn) forward(ctx context.Context, req sim.Request, w io.Writer) sim.Ending {
	conn, err := s.o.Forward(ctx)
	if err != nil {
		script := sim.ErrorScript(req, 502, "server_error", "pass on request: "+err.Error())
		_, _ = w.Write(script.Bytes(req)) // the connection ends here
		return sim.EndClose
	}
	p := &passage{conn: conn, request: req, sent: make(chan struct{})}
	p.Open()
	defer p.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // the client left: nobody waits
	if _, err := io.Copy(w, conn); err != nil {
		return sim.EndReset
	}
	return sim.EndClose // an early end is one for the client too
}

// passage is a request on its way. A server may answer before it has read all of it, and then wants to be heard first.
type passage struct {
	conn    net.Conn
	request sim.Request
	sent    chan struct{} // closed when nothing more is sent
}

// Open begins to send.
func (p *passage) Open() {
	go func() {
		defer close(p.sent)
		_ = passOn(p.conn, p.request) // who does not take it has answered, or ends the connection
	}()
}

// Close ends the connection and waits until nothing is sent any more.
func (p *passage) Close() {
	_ = p.conn.Close() // all that was wanted of it was read
	<-p.sent
}

// passOn writes a request. Its body is whole, so it has a length.
func passOn(conn net.Conn, req sim.Request) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\r\n", req.Method, req.Target, req.Proto)
	framed := false
	for _, h := range req.Headers {
		switch strings.ToLower(h.Name) {
		case "connection", "keep-alive", "expect", "trailer":
			continue
		case "content-length", "transfer-encoding":
			framed = true
			continue
		}
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	if framed || len(req.Body) > 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(req.Body))
	}
	b.WriteString("Connection: close\r\n\r\n")
	b.Write(req.Body)
	_, err := conn.Write(b.Bytes())
	return err
}
