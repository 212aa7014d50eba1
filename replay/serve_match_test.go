package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
)

func rules(t *testing.T, texts ...string) (out []RelaxRule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRelax(text)
		if err != nil {
			t.Fatal(err)
		}
		if r.String() != text {
			t.Errorf("%q is printed as %q", text, r)
		}
		out = append(out, r)
	}
	return out
}

// TestRelaxRules holds what each form of a rule lets pass, and what it does not.
func TestRelaxRules(t *testing.T) {
	for _, tc := range []struct {
		rule, a, b string
		same       bool
	}{
		{`$.t`, `{"t":1,"x":1}`, `{"x":1,"t":2}`, true},
		{`$.t`, `{"t":1,"x":1}`, `{"x":1}`, true},
		{`$.t`, `{"t":1,"x":1}`, `{"t":1,"x":1.0}`, false},
		{`$.t`, `{"x":{"t":1}}`, `{"x":{"t":2}}`, false},
		{`$.x.t`, `{"x":{"t":1}}`, `{"x":{"t":2}}`, true},
		{`$.a\.b`, `{"a.b":1}`, `{"a.b":2}`, true},
		{`$.m[0].c`, `{"m":[{"c":1},{"c":1}]}`, `{"m":[{"c":2},{"c":1}]}`, true},
		{`$.m[0].c`, `{"m":[{"c":1},{"c":1}]}`, `{"m":[{"c":1},{"c":2}]}`, false},
		{`$.m[1]`, `{"m":[1,2,3]}`, `{"m":[1,9,3]}`, true},
		{`$.m[1]`, `{"m":[1,2,3]}`, `{"m":[1,3]}`, false},
		{`$.m[*].id`, `{"m":[{"id":1,"v":1},{"v":2}]}`, `{"m":[{"v":1},{"id":9,"v":2}]}`, true},
		{`$.m[*].id`, `{"m":[{"id":1,"v":1}]}`, `{"m":[{"id":1,"v":1},{"id":2}]}`, false},
		{`$.m[*].c[*].id`, `{"m":[{"c":[{"id":1}]}]}`, `{"m":[{"c":[{"id":2}]}]}`, true},
		{`$.m[*]`, `{"m":[1,2]}`, `{"m":[3,4]}`, true},
		{`$.m[*]`, `{"m":[1,2]}`, `{"m":[3]}`, false},
		{`$[*].a`, `[{"a":1}]`, `[{"a":2}]`, true},
		{`$.m[7].c`, `{"m":[1]}`, `{"m":[1]}`, true},
		{`$.m.c`, `{"m":1}`, `{"m":2}`, false},
		{`$.n`, `{"n":123456789012345678901234567890.10}`, `{}`, true},
	} {
		r := rules(t, tc.rule)
		key := func(body string) string {
			req := ask(simChat(body)).request
			k, ok := relaxedKey(&req, r)
			if !ok {
				t.Fatalf("%s: no key of %s", tc.rule, body)
			}
			return k.Key
		}
		if same := key(tc.a) == key(tc.b); same != tc.same {
			t.Errorf("%s: %s and %s are the same: %v", tc.rule, tc.a, tc.b, same)
		}
	}
	for _, bad := range []string{"", "$", "t", "$t", "$.", "$.a..b", "$.a[x]", "$.a[", "$.[*]"} {
		if r, err := ParseRelax(bad); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%q is a rule: %+v, %v", bad, r, err)
		}
	}
	req := ask(simChat(`{"a":1,"a":2}`)).request
	if _, ok := relaxedKey(&req, rules(t, "$.a")); ok {
		t.Error("a body of no certain meaning has places")
	}
}

// TestServeRelaxed holds that a rule is used only where nothing is recorded for the very request, and that each answer is
// given once first.
func TestServeRelaxed(t *testing.T) {
	at := func(temperature string) string {
		return strings.Replace(question, `"stream"`, `"temperature":`+temperature+`,"stream"`, 1)
	}
	src := newShelf(answering(at("0"), chunkedHead, "zero"), answering(at("1"), chunkedHead, "one"), answering(at("2"), chunkedHead, "two"))
	serving(t, src, ServeOptions{}, func(t *testing.T, c *counter) {
		if got := c.post(at("7")); got.status != 404 {
			t.Errorf("without a rule: %+v", got)
		}
	})
	serving(t, src, ServeOptions{Relax: rules(t, "$.temperature")}, func(t *testing.T, c *counter) {
		var got []string
		for _, temperature := range []string{"1", "7", "0.5", "0", "8"} {
			got = append(got, c.post(at(temperature)).body)
		}
		got = append(got, c.post(question).body)
		if diff := cmp.Diff([]string{"one", "zero", "two", "zero", "two", "two"}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if got := c.post(strings.Replace(question, "why", "who", 1)); got.status != 404 || strings.Contains(got.body, "temperature") {
			t.Errorf("a miss tells of what may differ: %s", got.body)
		}
		r := c.report()
		if r.Relaxed != 4 || r.Repeated != 3 || r.Unserved != 0 || !slices.Equal(r.Relax, []string{"$.temperature"}) {
			t.Errorf("%+v", r)
		}
	})
	serving(t, src, ServeOptions{Relax: rules(t, "$.temperature"), Strict: true}, func(t *testing.T, c *counter) {
		for i, want := range []int{200, 200, 200, 404} {
			if got := c.post(at("7")); got.status != want {
				t.Errorf("%d: %d", i, got.status)
			}
		}
	})
}

// TestServeConcurrently holds that of many clients who ask the same each gets one answer of its own while there are any.
func TestServeConcurrently(t *testing.T) {
	const n = 50
	var xs []*exchange.Exchange
	for i := range n {
		xs = append(xs, answering(question, chunkedHead, fmt.Sprint("answer ", i), " ends"))
	}
	serving(t, newShelf(xs...), ServeOptions{Speed: 1, Strict: true}, func(t *testing.T, c *counter) {
		var mu sync.Mutex
		got := map[string]int{}
		var wg sync.WaitGroup
		for range n + 5 {
			wg.Go(func() {
				v := c.visit()
				defer v.conn.Close()
				g := v.ask("POST", chatPost(question))
				mu.Lock()
				defer mu.Unlock()
				got[fmt.Sprint(g.status, strings.Join(g.pieces[:min(len(g.pieces), 1)], ""))[:min(12, 3+len(g.pieces[0]))]]++
				if g.status == 200 && !strings.HasSuffix(g.body, " ends") {
					t.Errorf("got %q", g.body)
				}
			})
		}
		wg.Wait()
		r := c.report()
		if r.Answered != n || r.Misses != 5 || r.Unserved != 0 || r.Cut != 0 {
			t.Errorf("%+v", r)
		}
		for what, times := range got {
			if strings.HasPrefix(what, "200") && times != 1 && len(what) == 12 {
				t.Errorf("%q was given %d times", what, times)
			}
		}
	})
}

// TestServeProbes holds what those are told who ask what the server is: neither is a miss.
func TestServeProbes(t *testing.T) {
	second := answering(strings.Replace(question, `"m"`, `"other/model"`, 1), chunkedHead, "x")
	get := answering("", "HTTP/1.1 200 OK\r\nContent-Length: 2", "ok")
	get.Request.Method, get.Request.Target = "GET", "/health"
	serving(t, newShelf(answering(question, chunkedHead, "x"), second, get), ServeOptions{}, func(t *testing.T, c *counter) {
		v := c.visit()
		defer v.conn.Close()
		for _, tc := range []struct {
			method, target, header string
			status                 int
			want                   string
		}{
			{"GET", "/health", "", 200, "ok"}, // as recorded
			{"GET", "/", "", 200, `{"status":"ok"}`},
			{"GET", "/v1/models", "", 200, `{"data":[{"created":0,"id":"m","object":"model","owned_by":"recording"},{"created":0,"id":"other/model"`},
			{"GET", "/openai/v1/models?limit=9", "", 200, `"object":"list"`},
			{"GET", "/v1/models", "anthropic-version: 2023-06-01", 200, `"first_id":"m","has_more":false,"last_id":"other/model"`},
			{"GET", "/v1/models/other/model", "", 200, `"id":"other/model"`},
			{"GET", "/v1/models/third", "", 404, `"error"`},
			{"GET", "/v1beta/models", "", 200, `"name":"models/m"`},
			{"GET", "/v1beta/models/m", "", 200, `"name":"models/m"`},
			{"GET", "/api/tags", "", 200, `{"models":[{"details":{}`},
			{"GET", "/props", "", 404, "does not answer GET /props"},
			{"OPTIONS", "/v1/chat/completions", "", 404, "does not answer"},
			{"POST", "/api/show", "", 404, `{"error":"the recording`},
		} {
			raw := fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\n", tc.method, tc.target, lines(slices.DeleteFunc([]string{tc.header}, func(h string) bool { return h == "" })))
			got := v.ask(tc.method, raw)
			if got.status != tc.status || !strings.Contains(got.body, tc.want) {
				t.Errorf("%s %s: %d %s", tc.method, tc.target, got.status, got.body)
			}
		}
		if r := c.report(); r.Misses != 0 || r.Probes != 12 || r.Err() != nil {
			t.Errorf("%+v", r)
		}
		for _, target := range []string{"/v1/files/1", "/v1/responses/r"} {
			if got := v.ask("GET", "GET "+target+" HTTP/1.1\r\n\r\n"); got.status != 404 || !strings.Contains(got.body, "replay_miss") {
				t.Errorf("GET %s: %d %s", target, got.status, got.body)
			}
		}
	})
}

// TestServeBothSidesOfAddedUsage holds that a request which the proxy changed is answered both as its client sent it, without
// what the proxy kept from the client, and as the engine got it, with all.
func TestServeBothSidesOfAddedUsage(t *testing.T) {
	usage := `data: {"choices":[],"usage":{"completion_tokens":1}}` + "\n\n"
	end := "data: [DONE]\n\n"
	x := answering(question, chunkedHead, say("a"), usage+end)
	field := `,"stream_options":{"include_usage":true}`
	at := strings.Index(question, "true") + len("true")
	x.Interventions = []exchange.Intervention{
		{Kind: exchange.KindBodyChanged, Where: exchange.SideEngine, Name: "stream_options", Offset: int64(at), To: field},
		{Kind: "response_removed", Where: exchange.SideClient, Name: "usage", Offset: int64(len(say("a"))), Length: int64(len(usage))},
	}
	src := newShelf(x)
	sent, _ := exchange.SentRequest(x)
	src.rows[0].SentKey = canon.RequestKey(&sent).Key
	serving(t, src, ServeOptions{Speed: 1}, func(t *testing.T, c *counter) {
		if got := c.post(question); got.body != say("a")+end || len(got.pieces) != 2 {
			t.Errorf("the client gets %q", got.body)
		}
		if got := c.post(question[:at] + field + question[at:]); got.body != say("a")+usage+end {
			t.Errorf("the proxy gets %q", got.body)
		}
	})
}

// TestNothingLeavesWithoutForward holds that the stand-in has no way to reach anybody: its source dials nothing and knows no
// client, and no answer to any kind of request is a relay unless Forward is given (field report RR-13).
func TestNothingLeavesWithoutForward(t *testing.T) {
	files, err := filepath.Glob("serve*.go")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range f.Imports {
			if p := strings.Trim(im.Path.Value, `"`); strings.HasSuffix(p, "/proxy") || p == "net/http" || p == "crypto/tls" || p == "os/exec" || p == "syscall" {
				t.Errorf("%s imports %s", name, p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && strings.Contains(sel.Sel.Name, "Dial") {
				t.Errorf("%s: %s", name, sel.Sel.Name)
			}
			return true
		})
	}
	src := newShelf(answering(question, chunkedHead, "x"))
	s, err := NewStandIn(t.Context(), src, &src.run, Filter{}, ServeOptions{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []sim.Request{
		simChat(question), simChat(question), simChat("{}"), {Method: "GET", Target: "/v1/models", Proto: "HTTP/1.1"},
		{Method: "PUT", Target: "http://elsewhere/x", Proto: "HTTP/1.1"}, {Method: "CONNECT", Target: "elsewhere:443", Proto: "HTTP/1.1"},
	} {
		if s.Answer(req).Relay != nil {
			t.Errorf("%s %s leaves", req.Method, req.Target)
		}
	}
}

// passing is a stand-in that passes misses on through a recording proxy to a scripted engine.
type passing struct {
	*counter
	engine *sim.Server
	inside *sim.PipeListener // before the proxy
	added  chan error        // of each exchange that the proxy recorded
}

// forwarding runs f with such a one in a bubble.
func forwarding(t *testing.T, f func(t *testing.T, p *passing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &passing{counter: &counter{t: t, ln: sim.NewPipeListener()}, engine: sim.New(sim.Config{}), inside: sim.NewPipeListener(), added: make(chan error, 9)}
		behind, caught := sim.NewPipeListener(), newShelf()
		up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: "engine", URL: "http://engine", Dial: behind.Dial})
		if err != nil {
			t.Fatal(err)
		}
		sink := sinkFunc(func(x *exchange.Exchange) bool {
			sealDigests(x)
			caught.put(x)
			p.added <- p.s.Add(caught, &caught.rows[len(caught.rows)-1])
			return true
		})
		middle, err := proxy.NewServer(proxy.ServerOptions{Session: proxy.NewSession(proxy.SessionOptions{Sink: sink}), Upstream: up})
		if err != nil {
			t.Fatal(err)
		}
		src := newShelf(answering(question, chunkedHead, "recorded"))
		if p.s, err = NewStandIn(t.Context(), src, &src.run, Filter{}, ServeOptions{Forward: p.inside.Dial}); err != nil {
			t.Fatal(err)
		}
		server, ended := sim.New(p.s.Config()), make(chan error, 3)
		for _, serve := range []func() error{
			func() error { return p.engine.Serve(behind) }, func() error { return middle.Serve(p.inside) }, func() error { return server.Serve(p.ln) },
		} {
			go func() { ended <- serve() }()
		}
		defer func() {
			if err := errors.Join(server.Close(), middle.Close(), up.Close(), p.engine.Close()); err != nil {
				t.Error(err)
			}
			for range 3 {
				if err := <-ended; err != nil && !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
			time.Sleep(time.Minute) // the HTTP library's pool winds down
		}()
		f(t, p)
	})
}

// TestServeForwards holds that a miss goes on to a server as it was and comes back as it was, is recorded where the proxy
// before that server records, and then is an answer.
func TestServeForwards(t *testing.T) {
	forwarding(t, func(t *testing.T, p *passing) {
		if got := p.post(question); got.body != "recorded" {
			t.Errorf("%+v", got)
		}
		asked := chatBody("something new", 3)
		first := p.post(asked, "X-Extra: kept")
		if err := <-p.added; err != nil {
			t.Error(err)
		}
		if first.status != 200 || !strings.Contains(first.body, "[DONE]") || first.err != nil {
			t.Errorf("passed on: %+v", first)
		}
		if again := p.post(asked); again.body != first.body {
			t.Errorf("recorded, it is %q and not %q", again.body, first.body)
		}
		all := p.engine.Truth().Requests
		if len(all) != 1 || string(all[0].Body) != asked || headerOf(all[0].Request, "X-Extra") != "kept" {
			t.Errorf("the engine got %+v", all)
		}
		if r := p.report(); r.Forwarded != 1 || r.Answered != 2 || r.Misses != 0 || r.Err() != nil {
			t.Errorf("%+v", r)
		}
	})
}

// TestServeForwardsNobody holds what becomes of a miss whose client leaves, and of one behind which nobody is.
func TestServeForwardsNobody(t *testing.T) {
	forwarding(t, func(t *testing.T, p *passing) {
		v := p.visit()
		if _, err := v.conn.Write([]byte(chatPost(chatBody("slow", 100), "X-Sim: fault=stall@2"))); err != nil {
			t.Fatal(err)
		}
		if _, err := v.br.Peek(10); err != nil {
			t.Fatal(err)
		}
		_ = v.conn.Close()
		if err := <-p.added; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if all := p.engine.Truth().Requests; len(all) != 1 || all[0].Ended != sim.EndedGone {
			t.Errorf("the engine's answers %+v", all)
		}
		_ = p.inside.Close()
		if got := p.post(chatBody("nobody", 3)); got.status != 502 || !json.Valid([]byte(got.body)) {
			t.Errorf("%+v", got)
		}
	})
}

type sinkFunc func(x *exchange.Exchange) bool

func (f sinkFunc) Offer(x *exchange.Exchange) bool { return f(x) }

func headerOf(r sim.Request, name string) string {
	v, _ := exchange.HeaderValue(r.Headers, name)
	return v
}

// TestServeRefusesBadOptions holds speeds that are none, and the end of a context.
func TestServeRefusesBadOptions(t *testing.T) {
	src := newShelf(answering(question, chunkedHead, "x"))
	if _, err := NewStandIn(t.Context(), src, &src.run, Filter{}, ServeOptions{Speed: -1}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("speed -1: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewStandIn(ctx, src, &src.run, Filter{}, ServeOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := NewStandIn(t.Context(), src, &src.run, Filter{Models: []string{"none"}}, ServeOptions{}); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("nothing picked: %v", err)
	}
}
