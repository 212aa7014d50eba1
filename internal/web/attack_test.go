package web

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
)

// TestOtherSites holds that a page from elsewhere, or of another port here, reaches nothing but pages a person is led to.
func TestOtherSites(t *testing.T) {
	addr := serve(t, withStore(&fake{}))
	type asks struct{ site, mode, dest, origin string }
	for _, path := range []string{"/runs", "/exchanges/" + string(xID), "/api/v1/runs", "/api/v1/check", "/metrics", "/healthz", "/part/live", "/static/app.js"} {
		page := path == "/runs" || strings.HasPrefix(path, "/exchanges")
		for a, allowed := range map[asks]bool{
			{}:                                                      true,
			{"none", "navigate", "document", ""}:                    true,
			{"same-origin", "cors", "empty", ""}:                    true,
			{"same-origin", "cors", "empty", "own"}:                 true,
			{"cross-site", "navigate", "document", ""}:              page,
			{"same-site", "navigate", "document", ""}:               page,
			{"cross-site", "navigate", "iframe", ""}:                false,
			{"cross-site", "navigate", "embed", ""}:                 false,
			{"same-site", "no-cors", "image", ""}:                   false,
			{"same-site", "cors", "empty", "http://localhost:3000"}: false,
			{"cross-site", "no-cors", "script", ""}:                 false,
			{"", "", "", "null"}:                                    false,
			{"", "", "", "http://evil.example"}:                     false,
		} {
			if a.origin == "own" {
				a.origin = "http://" + addr
			}
			resp, _ := answerOf(t, http.MethodGet, "http://"+addr+path, "Sec-Fetch-Site", a.site, "Sec-Fetch-Mode", a.mode, "Sec-Fetch-Dest", a.dest, "Origin", a.origin)
			if got := resp.StatusCode != http.StatusForbidden; got != allowed {
				t.Errorf("%s asked as %+v: status %d", path, a, resp.StatusCode)
			}
		}
	}
}

// TestHostileAddresses holds that no address makes the server fail, leave its routes or answer with something else's.
func TestHostileAddresses(t *testing.T) {
	store, run, rows := recorded(t, asked{model: "m", prompt: "p", pieces: []string{"a"}})
	addr := serve(t, Options{Store: store, Health: func() any { return Health{Status: "ok"} }})
	ids := []string{"..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "a%00b", "%ff%fe", "*", "%25", "%0d%0aX:1", strings.Repeat("A", 26), strings.Repeat("a", 30000),
		strings.ToLower(string(rows[0].ID)), string(rows[0].ID) + "%00", "%2F", "r%2F..", "h1%3A", "%E2%80%AE"}
	for _, id := range ids {
		for _, path := range []string{"/exchanges/" + id, "/exchanges/" + id + "/text/answer", "/api/v1/exchanges/" + id, "/api/v1/exchanges/" + id + "/record",
			"/runs/" + id, "/runs/" + id + "/search?text=x", "/api/v1/runs/" + id, "/api/v1/runs/" + id + "/exchanges", "/api/v1/keys/" + id, "/compare?a=" + id + "&b=" + id,
			"/static/" + id, "/exchanges/" + string(rows[0].ID) + "/text/" + id} {
			status, body := rawGet(t, addr, path)
			empty := status == http.StatusOK && strings.HasPrefix(path, "/api/v1/keys/") && strings.Contains(body, `"takes":null`)
			lower := strings.HasPrefix(path, "/compare") && strings.EqualFold(id, string(rows[0].ID)) // an id as people may write it
			if !empty && !lower && (status < 300 || status >= 500) {
				t.Errorf("%.80s: status %d, %.200s", path, status, body)
			}
		}
	}
	for _, query := range []string{"page=99999999999999999999", "page=-1", "page=9223372036854775807", "sort=%00", "status=-1", "status=9999999999xx", "from=x", "to=%ff",
		"model=" + strings.Repeat("m", 30000), "page=0", "page=1e9"} {
		if status, body := rawGet(t, addr, "/runs/"+string(run.ID)+"?"+query); status >= 500 {
			t.Errorf("?%.60s: status %d, %.200s", query, status, body)
		}
	}
	if status, body := rawGet(t, addr, "/exchanges/"+string(rows[0].ID)+"?event=9223372036854775807"); status != http.StatusOK {
		t.Errorf("far event: %d %.200s", status, body)
	}
}

// rawGet asks for a path as it stands, which a client of the library would clean.
func rawGet(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, addr); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.80s: %v", path, err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatalf("%.80s: %v", path, err)
	}
	return resp.StatusCode, b.String()
}

// TestTextsThatCostMuch holds that recorded texts cost what they are long, whatever they are made of: each of these would
// take minutes or all memory where it does not.
func TestTextsThatCostMuch(t *testing.T) {
	marks := strings.Repeat("\x1b\xff\u202e", 1<<17)
	if segments, _ := visible(marks, len(marks)); len(segments) != 1 || len(segments[0].Text) != (3+4+6)<<17 {
		t.Errorf("%d segments", len(segments))
	}
	n := 0
	for part := range parts(marks) {
		if n += len(part); n > 100 {
			break
		}
	}
	deep := strings.Repeat("[", 9000) + "0" + strings.Repeat(",0", 100_000) + strings.Repeat("]", 9000)
	x := asked{model: "m", raw: deep}.exchange(0)
	for _, body := range []string{deep, strings.Repeat("[", 1<<17), `{"a":"` + strings.Repeat(`\"[`, 1<<16) + `"}`} {
		m := messageOf("", nil, exchange.NewBody([]byte(body)), &excerpts{left: pageText})
		if shown := len(bracketed(m.Body)); shown > excerptBytes {
			t.Errorf("%d bytes shown", shown)
		}
	}
	if got := eventsOf(x, parse(x), 0); got.All > 1 {
		t.Errorf("%d events", got.All)
	}
	if m := messageOf("", nil, exchange.NewBody([]byte(`{"a":"[[\"[","b":[1]}`)), &excerpts{left: pageText}); !strings.Contains(m.Note, "line breaks") {
		t.Errorf("plain JSON is shown with note %q", m.Note)
	}
}

// TestManyLook holds that a running exchange is looked at a few times a second, however many pages are open.
func TestManyLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := 0
		s := NewServer(Options{Live: NewLive(func() []proxy.Live { looked++; return nil }), Health: func() any { return Health{} }})
		look := func(times int) {
			var tabs sync.WaitGroup
			for range times {
				tabs.Go(func() {
					w := httptest.NewRecorder()
					if err := s.livePart(w, nil); err != nil || !strings.Contains(w.Body.String(), "Nothing came through") {
						t.Errorf("%v: %.100s", err, w.Body.String())
					}
				})
			}
			tabs.Wait()
		}
		look(200)
		if look(200); looked != 1 {
			t.Errorf("looked %d times", looked)
		}
		time.Sleep(partAge)
		if look(200); looked != 2 {
			t.Errorf("looked %d times after a while", looked)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOneSearchAtATime holds that what goes through a whole run waits for another, and leaves with its reader.
func TestOneSearchAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Store: &fake{}, Health: func() any { return Health{} }})
		running, most := 0, 0
		var mu sync.Mutex
		h := s.alone(func(http.ResponseWriter, *http.Request) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if err := h(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d at a time", most)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// deadlines is a connection's writer that keeps its deadlines.
type deadlines struct {
	http.ResponseWriter
	at    []time.Time
	sizes []int
	err   error
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.at = append(d.at, at)
	return nil
}

func (d *deadlines) Write(p []byte) (int, error) {
	d.sizes = append(d.sizes, len(p))
	return len(p), d.err
}

func TestReadersGetTheirTimeForEachPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadlines{ResponseWriter: httptest.NewRecorder()}
		h := patient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n, err := w.Write(make([]byte, 2*pieceBytes+1)); n != 2*pieceBytes+1 || err != nil {
				t.Errorf("%d %v", n, err)
			}
			time.Sleep(time.Minute)
			if n, err := w.Write(nil); n != 0 || err != nil {
				t.Errorf("%d %v", n, err)
			}
			d.err = errors.New("the reader does not read")
			if _, err := w.Write(make([]byte, 5*pieceBytes)); !errors.Is(err, d.err) {
				t.Errorf("%v", err)
			}
		}))
		began := clock.Now()
		h.ServeHTTP(d, nil)
		if want := []int{pieceBytes, pieceBytes, 1, 0, pieceBytes}; !slices.Equal(d.sizes, want) {
			t.Errorf("pieces %v", d.sizes)
		}
		if len(d.at) != 5 || !d.at[0].Equal(began.Add(readerPatience)) || !d.at[4].Equal(began.Add(time.Minute+readerPatience)) {
			t.Errorf("deadlines %v", d.at)
		}
	})
}

// pipes is a listener in memory.
type pipes struct {
	net.Listener
	next chan net.Conn
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.next
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func TestConnectionsAreBounded(t *testing.T) {
	p := &pipes{next: make(chan net.Conn, mostConns+2)}
	l := &fewConns{Listener: p}
	dial := func() net.Conn {
		far, near := net.Pipe()
		p.next <- near
		return far
	}
	var open []net.Conn
	for range mostConns {
		dial()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	refused := dial()
	close(p.next)
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := refused.Read(make([]byte, 1)); err == nil {
		t.Error("one too many is open")
	}
	for range 2 { // a second close frees nothing more
		if err := open[0].Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.open.Load(); got != mostConns-1 {
		t.Errorf("%d count as open", got)
	}
}
