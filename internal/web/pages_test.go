package web

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
)

var (
	tags       = regexp.MustCompile(`<(/?[a-zA-Z][a-zA-Z0-9]*|!)([^>]*)>`)
	attributes = regexp.MustCompile(`([a-zA-Z-]+)="([^"]*)"`)
)

// scriptTag is the only script of any page.
const scriptTag = ` src="/static/app.js" defer`

// inert holds that a page has no markup but that of the templates, and nothing that acts: no script or style of its own,
// no handler, nothing from elsewhere, no character that steers.
func inert(t *testing.T, path, body string) {
	t.Helper()
	if !utf8.ValidString(body) {
		t.Errorf("%s is not valid UTF-8", path)
	}
	if at := strings.IndexFunc(body, steers); at >= 0 {
		t.Errorf("%s has the character %q", path, body[at:min(len(body), at+4)])
	}
	for _, m := range tags.FindAllStringSubmatch(body, -1) {
		name := strings.ToLower(strings.TrimPrefix(m[1], "/"))
		if !slices.Contains(allowedElements, name) || m[1] == "script" && m[2] != scriptTag {
			t.Errorf("%s has the element %s", path, m[0])
		}
		for _, a := range attributes.FindAllStringSubmatch(m[2], -1) {
			if acts(strings.ToLower(a[1]), a[2]) {
				t.Errorf("%s has %s", path, m[0])
			}
		}
	}
}

// allowedElements are those of the templates.
var allowedElements = strings.Fields("! html head meta title link script body a header svg path rect line circle g text nav span main footer kbd dialog h1 h2 h3 dl dt dd form button div section p table caption thead tbody tr th td bdi meter progress label select option input pre details summary mark code")

// steers reports whether a character would change how others show, or does not show at all.
func steers(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200f || r == 0x061c
}

// acts reports whether an attribute runs or loads something that is not ours.
func acts(name, value string) bool {
	if strings.HasPrefix(name, "on") || name == "style" {
		return true
	}
	link := name == "href" || name == "src" || name == "action"
	return link && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "?") && !strings.HasPrefix(value, "#")
}

// attacks are answers that want to be more than text.
var attacks = []asked{
	{model: "m", pieces: []string{"<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "</pre></td></table><script src=//evil.example/x.js></script>"}},
	{model: `"><script>alert(7)</script>`, prompt: "</textarea><svg onload=alert(3)>", pieces: []string{`" onmouseover="alert(4)`, "' onfocus=alert(5) '", "javascript:alert(6)"}},
	{model: "{{.}}", pieces: []string{"{{template \"x\"}}", "<!--", "]]>", "&lt;script&gt;"}},
	{model: "rev\u202eledom", prompt: "\u2066a\u2069", pieces: []string{"abc \u202egnp.exe\u202c", "\u200f\u061c"}},
	{model: "ansi\x1b[31m", pieces: []string{"\x1b[31mred\x1b[0m \x1b]0;title\x07", "\x08\x00\x7f", "\u0085\u009b31m"}},
	{model: "bytes", raw: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"bad \xff\xfe\xc3 bytes\"}}]}\n\ndata: \xed\xa0\x80 <b>not</b> json\n\n"},
	{model: "long", pieces: []string{strings.Repeat("<b>long</b>", 5<<20/11)}},
	{model: strings.Repeat("x", 10_000), prompt: strings.Repeat("line\n", 50_000), pieces: []string{strings.Repeat("l\n", 50_000)}},
	{model: "error", status: 500, raw: `{"error":{"message":"<script>alert(9)</script>","type":"<b>","code":"'"}}`},
	{model: "web page", status: 200, raw: "<!doctype html><script>alert(10)</script>"},
}

// TestHostileAnswersAreInert holds that nothing recorded becomes markup, on any page, and that none grows with an answer.
func TestHostileAnswersAreInert(t *testing.T) {
	store, run, rows := recorded(t, attacks...)
	live := NewLive(func() []proxy.Live { return nil })
	for _, r := range rows {
		x, row, err := store.Exchange(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		end(live, x, row)
	}
	addr := serve(t, Options{Store: store, Live: live, Health: healthy(run)})
	paths := []string{"/", "/part/live", "/runs", "/runs/r", "/runs/r?model=%22%3E%3Cscript%3E&text=", "/runs/%3Cscript%3E", "/runs/r?status=%3Cscript%3E", "/exchanges/%3Cscript%3E",
		"/runs/r?text=%3Cscript%3E", "/runs/r?model=%22ansi%5Cx1b%5B31m%22", "/compare?a=%3Cscript%3E", "/nowhere"}
	for i, r := range rows {
		paths = append(paths, "/exchanges/"+string(r.ID), "/compare?a="+string(r.ID)+"&b="+string(rows[(i+1)%len(rows)].ID))
	}
	for _, path := range paths {
		_, body := page(t, addr, path)
		inert(t, path, body)
		if len(body) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
	}
	for _, r := range rows[:5] {
		for _, channel := range []string{"answer", "reasoning", "nothing"} {
			resp, body := answerOf(t, http.MethodGet, "http://"+addr+"/exchanges/"+string(r.ID)+"/text/"+channel)
			if channel == "answer" && (resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" || strings.ContainsAny(body, "\x1b\u202e\x00") || body == "") {
				t.Errorf("text of %s: %v %q", r.ID, resp.Header, body)
			}
		}
	}
}

// end tells a Live of an exchange as a capture does.
func end(l *Live, x *exchange.Exchange, row exchange.Summary) { l.End(x, parse(x), row) }

func healthy(run exchange.Run) func() any {
	return func() any {
		return Health{Schema: 1, Status: "ok", Version: "v1", Run: &run, Recorder: &recorder.Health{Stored: 3, QueueLimit: 10, DropWhy: map[string]int64{"<b>": 1}}}
	}
}

// TestPagesShowWhatIsRecorded looks for the parts of each page.
func TestPagesShowWhatIsRecorded(t *testing.T) {
	store, run, rows := recorded(t, asked{model: "alpha", prompt: "what is it", pieces: []string{"it ", "is ", "a ", "test"}},
		asked{model: "alpha", prompt: "what is it", pieces: []string{"it ", "is ", "not ", "one"}}, asked{model: "beta", status: 503, raw: `{"error":{"message":"busy"}}`})
	addr := serve(t, Options{Store: store, TraceURL: "/trace/{trace}"})
	first, second := string(rows[0].ID), string(rows[1].ID)
	for path, want := range map[string][]string{
		"/runs":   {`href="/runs/` + string(run.ID) + `"`, "complete", ">3<"},
		"/runs/r": {"alpha (2)", "beta (1)", "503 (1)", "1–3 of 3", "upstream_error 503", first, "100.0 ms"},
		"/exchanges/" + first: {"waterfall", "first token", "text: 4 token events", "ttft_ms", "measured", "absent", "it is a test", "what is it", "header_changed", "finish_reason v",
			"/trace/4bf92f3577b34da6a3ce929d0e0e4736", "curl -N", "&#39;Authorization: Bearer &#39;", "--only-id " + first, "/compare?a=" + first, "25 us", "POST /v1/chat/completions", "***"},
		"/exchanges/" + first + "?event=2":                 {"data: ", "earlier"},
		"/exchanges/" + string(rows[2].ID):                 {"busy", "upstream_error 503"},
		"/compare?a=" + first + "&b=" + second:             {"differ at character 6 of text", "The requests are the same.", "<mark>a test</mark>", "<mark>not one</mark>", "1.000"},
		"/compare?a=" + first + "&b=" + first:              {"no divergence"},
		"/compare?a=" + first + "&b=" + string(rows[2].ID): {"The requests differ"},
		"/exchanges/" + first + "/text/answer":             {"it is a test"},
		"/static/app.css":                                  {"--chart-1", "prefers-color-scheme: dark"},
		"/static/app.js":                                   {"data-poll"},
		"/static/icon.svg":                                 {"<svg"},
	} {
		status, body := page(t, addr, path)
		if status != 200 {
			t.Errorf("%s: %d", path, status)
		}
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %q", path, w)
			}
		}
		if strings.Contains(body, "secretsecret") {
			t.Errorf("%s shows a secret", path)
		}
	}
}

// TestPagesThatCannotBe holds what is answered in their place.
func TestPagesThatCannotBe(t *testing.T) {
	store, _, rows := recorded(t, asked{model: "m", pieces: []string{"x"}})
	addr := serve(t, Options{Store: store})
	for path, want := range map[string]int{
		"/runs/none": 404, "/exchanges/none": 404, "/exchanges/" + string(xID): 404, "/runs/r?page=0": 400, "/runs/r?page=x": 400, "/runs/r?sort=x": 400, "/runs/r?status=9999": 400,
		"/runs/r?status=x": 400, "/runs/r?from=yesterday": 400, "/runs/r?to=x": 400, "/compare?a=x&b=y": 400, "/compare?b=..&a=" + string(rows[0].ID): 400, "/part/live": 404,
		"/compare?a=" + string(rows[0].ID) + "&b=" + string(xID): 404, "/exchanges/" + string(rows[0].ID) + "?event=x": 400, "/exchanges/" + string(rows[0].ID) + "/text/x": 404,
		"/static/none": 404, "/static/..%2fserver.go": 404, "/runs/r/search?page=x": 400, "/runs/none/search": 404,
		"/exchanges/" + string(rows[0].ID) + "?event=99999999999999": 200, "/runs/r?page=77": 200,
	} {
		if status, body := page(t, addr, path); status != want {
			t.Errorf("%s: %d, want %d: %.200s", path, status, want, body)
		}
	}
	if resp, _ := answerOf(t, http.MethodGet, "http://"+addr+"/"); resp.StatusCode != 302 || resp.Header.Get("Location") != "/runs" {
		t.Errorf("/ without a live page: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	measuring := serve(t, Options{Live: NewLive(func() []proxy.Live { return nil })})
	for path, want := range map[string]int{"/": 200, "/runs": 404, "/exchanges/x": 404} {
		if status, _ := get(t, measuring, path, ""); status != want {
			t.Errorf("without a store %s: %d, want %d", path, status, want)
		}
	}
}

// TestBrowsersAreHeldToThePolicy holds the headers of every answer, that nothing but reading is answered, and that pages of
// other sites get nothing.
func TestBrowsersAreHeldToThePolicy(t *testing.T) {
	store, _, rows := recorded(t, asked{model: "m", pieces: []string{"x"}})
	addr := serve(t, Options{Store: store})
	paths := []string{"/", "/runs", "/runs/r", "/exchanges/" + string(rows[0].ID), "/compare", "/static/app.js", "/api/v1/runs", "/healthz", "/nowhere", "/api/v1/exchanges/" + string(rows[0].ID) + "/response/body"}
	for _, path := range paths {
		resp, _ := answerOf(t, http.MethodGet, "http://"+addr+path)
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if resp, _ := answerOf(t, method, "http://"+addr+path); resp.StatusCode != http.StatusMethodNotAllowed && resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: %d", method, path, resp.StatusCode)
			}
		}
		if resp, _ := answerOf(t, http.MethodGet, "http://"+addr+path, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("another site's page gets %s: %d", path, resp.StatusCode)
		}
	}
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("policy %s", policy)
	}
}

// TestBrowserSendsTheKey holds that a browser can give the key in the way that it asks its user for.
func TestBrowserSendsTheKey(t *testing.T) {
	store, _, _ := recorded(t, asked{model: "m", pieces: []string{"x"}})
	addr := serve(t, Options{Store: store, Key: "s3cret"})
	resp, _ := answerOf(t, http.MethodGet, "http://"+addr+"/runs")
	if asks := strings.Join(resp.Header.Values("WWW-Authenticate"), " "); resp.StatusCode != 401 || !strings.Contains(asks, "Basic realm=") || !strings.Contains(asks, "Bearer") {
		t.Errorf("without the key: %d %s", resp.StatusCode, asks)
	}
	for user, want := range map[string]int{"any:s3cret": 200, ":s3cret": 200, "s3cret:": 401, "any:wrong": 401} {
		if resp, _ := answerOf(t, http.MethodGet, "http://"+user+"@"+addr+"/runs"); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", user, resp.StatusCode, want)
		}
	}
}
