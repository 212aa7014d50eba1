package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestKey holds that with a key nothing is told without it, and that the client sends its own.
func TestKey(t *testing.T) {
	o := withStore(&fake{})
	o.Key = "s3cret"
	addr := serve(t, o)
	for _, path := range []string{"/healthz", "/api/v1/runs", "/api/v1/stats", "/api/v1/exchanges/" + string(xID) + "/record", "/nowhere"} {
		for header, want := range map[string]bool{
			"": false, "Bearer": false, "Bearer s3cre": false, "Bearer s3cret2": false, "Basic s3cret": false, "s3cret": false,
			"Bearer s3cret": true, "bearer  s3cret": true,
		} {
			req, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if header != "" {
				req.Header.Set("Authorization", header)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.StatusCode != http.StatusUnauthorized; got != want {
				t.Errorf("%s with %q: %d", path, header, resp.StatusCode)
			}
		}
	}
	c := NewClient(addr, "s3cret")
	defer c.Close()
	if runs, err := c.Runs(); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
	without := NewClient(addr, "")
	defer without.Close()
	if _, err := without.Runs(); err == nil || !strings.Contains(err.Error(), "BENCHPROXY_ADMIN_KEY") {
		t.Errorf("without the key: %v", err)
	}
}

// TestPages holds that pages join to the whole list, whatever their length, and that no page parts rows of one seq.
func TestPages(t *testing.T) {
	var rows []exchange.Summary
	for _, seq := range []uint64{1, 2, 2, 2, 3, 5, 5, 9} {
		rows = append(rows, exchange.Summary{ID: xID, Seq: seq, Path: fmt.Sprint(len(rows))})
	}
	addr := serve(t, withStore(&fake{rows: rows}))
	c := NewClient(addr, "")
	defer c.Close()
	for limit := 1; limit < 10; limit++ {
		var got []string
		for after := uint64(0); ; {
			page := rowsAt(t, c, fmt.Sprintf("/api/v1/runs/r/exchanges?limit=%d&after=%d", limit, after))
			if len(page) == 0 {
				break
			}
			for _, row := range page {
				got = append(got, row.Path)
				after = row.Seq
			}
		}
		if strings.Join(got, "") != "01234567" {
			t.Errorf("pages of %d: %q", limit, got)
		}
	}
}

func rowsAt(t *testing.T, c *Client, path string) (rows []exchange.Summary) {
	t.Helper()
	for row, err := range c.rows(path) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestOwnerEndsDuringARead holds that a reader is told so, in a list and in an exchange, and never takes a part for the
// whole.
func TestOwnerEndsDuringARead(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	more, held := make(chan struct{}), make(chan struct{}, 1)
	s := NewServer(withStore(&fake{rows: []exchange.Summary{{ID: xID, Seq: 1}, {ID: xID, Seq: 2}}, pause: func() {
		held <- struct{}{}
		<-more
	}}))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	c := NewClient(ln.Addr().String(), "")
	defer c.Close()
	ended := make(chan error, 1)
	go func() {
		var last error
		for _, err := range c.Summaries(runID) {
			last = err
		}
		ended <- last
	}()
	<-held
	if err := errors.Join(s.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	close(more)
	var e *exchange.Error
	if err := <-ended; !errors.As(err, &e) || !strings.Contains(err.Error(), "run this again") {
		t.Errorf("a list ended with %v", err)
	}
	if _, _, err := c.Exchange(xID); !errors.As(err, &e) || !strings.Contains(err.Error(), "run this again") {
		t.Errorf("an exchange ended with %v", err)
	}
}

// TestExchangeThatIsCutOff holds the same for an owner that dies in the middle of an exchange.
func TestExchangeThatIsCutOff(t *testing.T) {
	for name, send := range map[string]string{
		"connection": "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbenchproxy-exchange 1\n",
		"proper end": "HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\nbenchproxy-exchange 1\n",
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- answerOnce(ln, send) }()
		c := NewClient(ln.Addr().String(), "")
		_, _, got := c.Exchange(xID)
		c.Close()
		if err := errors.Join(<-done, ln.Close()); err != nil {
			t.Fatal(err)
		}
		if got == nil || !strings.Contains(got.Error(), "run this again") || !errors.Is(got, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// answerOnce sends text to whoever connects first, once a request has come.
func answerOnce(ln net.Listener, text string) error {
	conn, err := ln.Accept()
	if err != nil {
		return err
	}
	if _, err = conn.Read(make([]byte, 4096)); err == nil {
		_, err = io.WriteString(conn, text)
	}
	return errors.Join(err, conn.Close())
}

// TestFewExchangesAreWholeAtOnce holds the bound: readers beyond it wait, and one that goes away while it waits is let go.
func TestFewExchangesAreWholeAtOnce(t *testing.T) {
	more, held := make(chan struct{}), make(chan struct{})
	addr := serve(t, withStore(&fake{pause: func() {
		held <- struct{}{}
		<-more
	}}))
	c := NewClient(addr, "")
	defer c.Close()
	results := make(chan error, wholeAtOnce+1)
	for range wholeAtOnce + 1 {
		go func() {
			_, _, err := c.Exchange(xID)
			results <- err
		}()
	}
	for range wholeAtOnce {
		<-held
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.get(ctx, "/api/v1/exchanges/"+string(xID)+"/record", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that went away: %v", err)
	}
	select {
	case <-held:
		t.Errorf("more than %d exchanges were read at once", wholeAtOnce)
	default:
	}
	more <- struct{}{}
	<-held // the one that waited
	close(more)
	for range wholeAtOnce + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
