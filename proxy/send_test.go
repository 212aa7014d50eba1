package proxy

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRefusalOfAnUnreadRequest holds that the answer of an engine that reads no further, and does not close either,
// comes through; and that an answer of success, or a 100, does not end the request.
func TestRefusalOfAnUnreadRequest(t *testing.T) {
	const size = 32 << 20 // more than sockets hold
	for _, head := range []string{
		"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno",
		"HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
	} {
		ln := listen(t, "tcp")
		got := make(chan int64, 1)
		go func() {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			req, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, head)
			if strings.Contains(head, "413") {
				<-got // until the client has its answer
				return
			}
			<-time.After(3 * stallLook) // it takes its time, and then all of the request
			n, _ := io.Copy(io.Discard, req.Body)
			got <- n
			if strings.Contains(head, "100") {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			}
			_, _ = io.WriteString(c, "ok")
		}()
		r := newRig(t, "http://"+ln.Addr().String())
		c := r.dial()
		go c.post(strings.Repeat("x", size))
		resp, body, err := c.answer("POST")
		if err != nil {
			t.Fatal(err)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if strings.Contains(head, "413") {
			if resp.StatusCode != 413 || body != "no" || x.Timeline.SendDone.Happened() {
				t.Errorf("client got %d %q, send_done %v", resp.StatusCode, body, x.Timeline.SendDone)
			}
			got <- 0
		} else if n := <-got; resp.StatusCode != 200 || body != "ok" || n != size || !x.Timeline.SendDone.Happened() {
			t.Errorf("%.12q: client got %d %q, the engine %d bytes", head, resp.StatusCode, body, n)
		}
		ln.Close()
	}
}
