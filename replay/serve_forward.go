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
// copies what comes back to w. The connection is for this request alone.
func (s *StandIn) forward(ctx context.Context, req sim.Request, w io.Writer) {
	conn, err := s.o.Forward(ctx)
	if err != nil {
		script := sim.ErrorScript(req, 502, "server_error", "pass on request: "+err.Error())
		_, _ = w.Write(script.Bytes(req)) // the connection ends here
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // the client left: nobody waits
	defer conn.Close()
	if err := passOn(conn, req); err == nil {
		_, _ = io.Copy(w, conn) // an early end is one for the client too
	}
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
