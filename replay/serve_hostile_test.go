package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestServeForwardsResets holds that a miss whose engine resets the connection is never a whole answer: a client to which
// only the end of the connection tells it gets a reset too.
func TestServeForwardsResets(t *testing.T) {
	forwarding(t, func(t *testing.T, p *passing) {
		for _, proto := range []string{"HTTP/1.0", "HTTP/1.1"} {
			v := p.visit()
			raw := chatPost(chatBody("reset "+proto, 20), "X-Sim: fault=reset@3")
			got := v.ask("POST", strings.Replace(raw, "HTTP/1.1", proto, 1))
			if got.status != 200 || got.body == "" || got.err == nil {
				t.Errorf("%s: %+v", proto, got)
			}
			if reset := errors.Is(got.err, syscall.ECONNRESET); proto == "HTTP/1.0" && !reset {
				t.Errorf("%s: it ended with %v", proto, got.err)
			}
			if err := <-p.added; err != nil {
				t.Error(err)
			}
			_ = v.conn.Close()
		}
	})
}

// TestServeForwardsEarlyAnswers holds that a server which answers before it has read the request is heard, and that nobody
// waits for the rest of the request.
func TestServeForwardsEarlyAnswers(t *testing.T) {
	ended := make(chan error, 1)
	forward := func(context.Context) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			_, err := server.Read(make([]byte, 10))
			if err == nil {
				_, err = io.WriteString(server, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
			}
			ended <- errors.Join(err, server.Close())
		}()
		return client, nil
	}
	src := newShelf(answering(question, chunkedHead, "x"))
	serving(t, src, ServeOptions{Forward: forward}, func(t *testing.T, c *counter) {
		got := c.post(chatBody(strings.Repeat("long ", 100_000), 1))
		if got.status != 413 || got.body != "no" {
			t.Errorf("%+v", got)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestServeStrictGivesMissesOnce holds that what was recorded of a miss counts as given: a strict stand-in passes the next
// such request on again, another one answers it.
func TestServeStrictGivesMissesOnce(t *testing.T) {
	for strict, want := range map[bool]int64{true: 3, false: 1} {
		forwarding(t, func(t *testing.T, p *passing) {
			p.s.o.Strict = strict
			for range 3 {
				forwarded := p.s.Report().Forwarded
				if got := p.post(chatBody("new", 2)); got.status != 200 {
					t.Errorf("%+v", got)
				}
				if p.report().Forwarded > forwarded {
					if err := <-p.added; err != nil {
						t.Error(err)
					}
				}
			}
			if n := p.engine.Truth().Total; n != want {
				t.Errorf("strict %v: the engine got %d, want %d", strict, n, want)
			}
			if r := p.report(); r.Unserved != 1 {
				t.Errorf("strict %v: %d were not asked for", strict, r.Unserved)
			}
		})
	}
}

// TestServeArchivedHeads holds that what other tools save of an answer becomes one head, whatever its values hold.
func TestServeArchivedHeads(t *testing.T) {
	archive := func(proto, headers string) string {
		return fmt.Sprintf(`{"log":{"version":"1.2","entries":[{"startedDateTime":"2026-01-02T15:04:05Z","time":5,`+
			`"request":{"method":"POST","url":"https://h/v1/chat/completions","httpVersion":"HTTP/1.1","headers":[],"bodySize":%d,"postData":{"mimeType":"application/json","text":%q}},`+
			`"response":{"status":200,"statusText":"OK","httpVersion":%q,"headers":[%s],"content":{"size":5,"text":"plain"},"bodySize":5},"timings":{"send":0,"wait":1,"receive":1}}]}}`,
			len(question), question, proto, headers)
	}
	for _, proto := range []string{"HTTP/1.1", "http/1.1", "h2"} {
		for headers, want := range map[string][]string{
			`{"name":"X-Two","value":"a\nb"}`:                                          {"a", "b"},
			`{"name":"X-Two","value":"a\r\nContent-Length: 1\r\n\r\nHTTP/1.1 200 OK"}`: nil,
			`{"name":"X-Two","value":"a"},{"name":"X\r\nY","value":"b"}`:               {"a"},
			`{"name":"X-Two","value":"a\rb"}`:                                          nil,
		} {
			held, err := OpenFile(write(t, "b.har", archive(proto, headers)), FileOptions{}).Hold(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s, err := NewStandIn(t.Context(), held, &held.Run, Filter{}, ServeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c := &counter{t: t, s: s}
			inBubbleWith(t, c, func(t *testing.T) {
				v := c.visit()
				defer v.conn.Close()
				got := v.ask("POST", chatPost(question, "Connection: close"))
				values := strings.Join(got.header["X-Two"], ",")
				if got.status != 200 || got.body != "plain" || got.err != nil || want != nil && values != strings.Join(want, ",") {
					t.Errorf("%s, %s: %+v", proto, headers, got)
				}
				if rest, _ := io.ReadAll(v.br); len(rest) > 0 {
					t.Errorf("%s, %s: behind it came %q", proto, headers, rest)
				}
			})
		}
	}
}

// TestHeadOfRecord holds which raw heads are sent as they are.
func TestHeadOfRecord(t *testing.T) {
	for head, want := range map[string]bool{
		"HTTP/1.1 200 OK\r\n\r\n": true, "HTTP/1.0 200\nA: b\n\n": true, "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n": true,
		"HTTP/1.1 200 OK\r\nA: b\r\n": false, "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n": false, "HTTP/2 200\r\n\r\n": false,
		"HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n": false, "HTTP/1.1 200 OK\r\nA\r\n\r\n": false, "HTTP/1.1 200 OK\r\n\r\nx": false, "HTTP/1.1 200 OK": false, "": false,
	} {
		if got := singleHead([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// TestServeLongWaits holds that instants that are stretched without end are late and not at once.
func TestServeLongWaits(t *testing.T) {
	for _, p := range []pacer{{speed: 1e-300}, {speed: 1e-9, zero: 5}, {speed: 1}} {
		if at := p.at(math.MaxInt64); at < time.Hour || at > longestWait {
			t.Errorf("%+v: %v", p, at)
		}
	}
}

// TestServeNothingSaysWhy holds that a recording without an answer is refused with what it has instead.
func TestServeNothingSaysWhy(t *testing.T) {
	failed, upgraded, early := answering(question, chunkedHead), answering("{}", chunkedHead), answering("[]", chunkedHead)
	failed.End, failed.Response = exchange.EndConnectFailed, exchange.Response{}
	upgraded.Response.Status, early.Response.Status = http.StatusSwitchingProtocols, http.StatusEarlyHints
	src := newShelf(failed, failed, upgraded, early)
	_, err := NewStandIn(t.Context(), src, &src.run, Filter{}, ServeOptions{})
	const want = "(1 record: it is an upgraded connection; 2 records: no answer was recorded; 1 record: no final answer was recorded)"
	if !errors.Is(err, exchange.ErrMiss) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "morning") {
		t.Errorf("%v", err)
	}
}

// TestServeRemovedRecord holds that a record that was pruned while it is served makes a miss, which says so, and no damage.
func TestServeRemovedRecord(t *testing.T) {
	src := newShelf(answering(question, chunkedHead, "x"))
	serving(t, src, ServeOptions{}, func(t *testing.T, c *counter) {
		clear(src.xs)
		got := c.post(question)
		if got.status != 404 || !strings.Contains(got.body, "removed meanwhile") || !strings.Contains(got.body, `"why":"removed"`) {
			t.Errorf("%+v", got)
		}
		if r := c.report(); r.Misses != 1 || r.Failed != 0 || !errors.Is(r.Err(), exchange.ErrMiss) {
			t.Errorf("%+v", r)
		}
	})
}

// TestServeDoesNotLearnFailures holds that a client which tries again after a failure of the engine is passed on again.
func TestServeDoesNotLearnFailures(t *testing.T) {
	forwarding(t, func(t *testing.T, p *passing) {
		asked := chatBody("again", 3)
		for i, tc := range []struct {
			how    string
			status int
		}{{"status=429", 429}, {"status=503", 503}, {"fault=truncate_event@1", 200}, {"answer=3", 200}} {
			got := p.post(asked, "X-Sim: "+tc.how)
			if err := <-p.added; err != nil {
				t.Error(err)
			}
			if got.status != tc.status || p.report().Forwarded != int64(i+1) {
				t.Errorf("%s: %+v", tc.how, got)
			}
		}
		if got := p.post(asked, "X-Sim: status=500"); got.status != 200 || p.report().Forwarded != 4 {
			t.Errorf("the complete answer is not given: %+v", got)
		}
	})
}

// TestEmptyFileIsToldSo holds that a file with nothing in it is not called one of an unknown format.
func TestEmptyFileIsToldSo(t *testing.T) {
	for _, text := range []string{"", " \n"} {
		_, err := OpenFile(write(t, "x.jsonl", text), FileOptions{}).Hold(t.Context())
		if !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), "x.jsonl: usage: the file is empty") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestServeTellsWhyARecordCannotBeRead holds that the end of a stand-in tells the first cause, and calls nothing damaged that
// is only out of reach.
func TestServeTellsWhyARecordCannotBeRead(t *testing.T) {
	src := newShelf(answering(question, chunkedHead, "x"))
	src.rows[0].Digest = "sha256:of something" // then the index needs the row alone
	for _, cause := range []error{exchange.ErrDamaged, exchange.ErrLocked, errors.New("the network is down")} {
		s, err := NewStandIn(t.Context(), failing{src, cause}, &src.run, Filter{}, ServeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if script := s.Answer(simChat(question)); script.Status != 500 {
			t.Errorf("%v: status %d", cause, script.Status)
		}
		r := s.Report()
		if err := r.Err(); !errors.Is(err, cause) || errors.Is(err, exchange.ErrDamaged) != (cause == exchange.ErrDamaged) {
			t.Errorf("%v becomes %v", cause, err)
		}
	}
}

// failing is a source whose exchanges cannot be read for a cause.
type failing struct {
	*shelf
	cause error
}

func (f failing) Exchange(exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	return nil, exchange.Summary{}, f.cause
}
