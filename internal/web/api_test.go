package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// documentAt is a JSON document of the read API.
func documentAt[T any](t *testing.T, addr, path string, headers ...string) (doc T) {
	t.Helper()
	resp, body := answerOf(t, http.MethodGet, "http://"+addr+path, headers...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %d %s", path, resp.StatusCode, body)
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestListsComeByPages holds that the pages of a list together are the list, that none is longer than asked for or than the
// bound, and that a reader of lines gets all.
func TestListsComeByPages(t *testing.T) {
	var rows []exchange.Summary
	for i := range mostListPage + 500 {
		rows = append(rows, rowOf(uint64(i+1), "m", "/p", 200, 1))
	}
	if page := documentAt[ExchangeList](t, serve(t, withStore(&fake{rows: rows})), "/api/v1/runs/r/exchanges?limit=99999999"); len(page.Exchanges) != mostListPage || page.Next != fmt.Sprint(mostListPage) {
		t.Errorf("the largest page has %d rows, and then comes %q", len(page.Exchanges), page.Next)
	}
	rows = rows[:2*listPage+listPage/2]
	addr := serve(t, withStore(&fake{rows: rows}))
	for limit, want := range map[string]int{"": listPage, "&limit=1700": 1700, "&limit=99999": mostListPage} {
		var all []exchange.ID
		for next := "0"; next != ""; {
			page := documentAt[ExchangeList](t, addr, "/api/v1/runs/r/exchanges?after="+next+limit)
			if n := len(page.Exchanges); n > want || page.Next != "" && n < want {
				t.Fatalf("limit %q: a page of %d", limit, n)
			}
			for _, row := range page.Exchanges {
				all = append(all, row.ID)
			}
			next = page.Next
		}
		if !slices.EqualFunc(all, rows, func(id exchange.ID, row exchange.Summary) bool { return id == row.ID }) {
			t.Errorf("limit %q: the pages have %d rows of %d", limit, len(all), len(rows))
		}
	}
	resp, body := answerOf(t, http.MethodGet, "http://"+addr+"/api/v1/runs/r/exchanges", "Accept", "text/plain, "+jsonLines)
	if n := strings.Count(body, "\n"); n != len(rows) || resp.Header.Get("Content-Type") != jsonLines {
		t.Errorf("%d lines of %s", n, resp.Header.Get("Content-Type"))
	}
	if _, body := answerOf(t, http.MethodGet, "http://"+addr+"/api/v1/runs/r/exchanges?after=99999999"); body != `{"schema":1,"exchanges":[]}`+"\n" {
		t.Errorf("behind the end: %s", body)
	}
}

// TestTakesComeByPages holds the same of the recordings of one request, as documents and as pages.
func TestTakesComeByPages(t *testing.T) {
	const n = 2*pageRows + 3
	var asks []asked
	for range n {
		asks = append(asks, asked{model: "m", prompt: "again", pieces: []string{"a"}})
	}
	store, _, rows := recorded(t, asks...)
	addr := serve(t, Options{Store: store})
	var all []exchange.ID
	for next := ""; ; {
		page := documentAt[TakeList](t, addr, "/api/v1/keys/"+rows[0].Key+"?limit=90&after="+next)
		for _, take := range page.Takes {
			all = append(all, take.ID)
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if !slices.EqualFunc(all, rows, func(id exchange.ID, row exchange.Summary) bool { return id == row.ID }) {
		t.Errorf("%d takes of %d", len(all), n)
	}
	_, body := get(t, addr, "/exchanges/"+string(rows[1].ID), "")
	if got := strings.Count(body, "side by side</a>"); got != takesShown-1 || !strings.Contains(body, ">All takes<") {
		t.Errorf("an exchange page has %d takes", got)
	}
	seen, path := 0, takesAddress(rows[0].Key)+"?with="+string(rows[0].ID)
	for path != "" {
		_, body := get(t, addr, path, "")
		inert(t, path, body)
		seen += strings.Count(body, `class="go"`)
		path = ""
		if _, rest, ok := strings.Cut(body, `rel="next"`); ok {
			before := strings.TrimSuffix(body, rest)
			at := strings.LastIndex(before, `href="`) + len(`href="`)
			path = strings.ReplaceAll(before[at:at+strings.IndexByte(before[at:], '"')], "&amp;", "&")
		}
	}
	if seen != n {
		t.Errorf("the pages have %d takes of %d", seen, n)
	}
	for _, after := range []string{"x", "a.b.c", string(rows[0].Run) + ".x." + string(rows[0].ID), string(rows[0].Run) + ".1"} {
		if status, body := get(t, addr, "/takes/"+rows[0].Key+"?after="+after, ""); status != 400 || !strings.Contains(body, "page before") {
			t.Errorf("after %q: %d %.200s", after, status, body)
		}
	}
	if status, body := get(t, addr, "/takes/h1:0000000000000000", ""); status != 200 || !strings.Contains(body, "Nothing was recorded under this key") {
		t.Errorf("of no request: %d %.200s", status, body)
	}
}

// TestSparklinesOfRows holds that a page's rows get their sparklines, each drawn once, and what has none is left out.
func TestSparklinesOfRows(t *testing.T) {
	long := asked{model: "m", raw: strings.Repeat("data: {}\n\n", sparkBody/10+1)}
	store, _, rows := recorded(t, asked{model: "m", pieces: []string{"a", "b"}}, long, asked{model: "m", status: 503, raw: "{}"})
	s := NewServer(Options{Store: store, Health: func() any { return Health{} }})
	addr := serveOn(t, s)
	query := "?id=" + string(exchange.NewID(day)) // of none
	for _, r := range rows {
		query += "&id=" + string(r.ID)
	}
	for range 2 {
		_, body := answerOf(t, http.MethodGet, "http://"+addr+"/part/sparks"+query)
		lines := strings.Split(strings.TrimSpace(body), "\n")
		if len(lines) != len(rows) {
			t.Fatalf("%d lines: %s", len(lines), body)
		}
		for i, want := range []string{"2 token events over time", "1 reads over time", "no token event"} {
			var got drawn
			if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
				t.Fatal(err)
			}
			if got.ID != string(rows[i].ID) || !strings.Contains(string(got.SVG), want) {
				t.Errorf("line %d is %+v, want %q", i, got, want)
			}
		}
	}
	if n := len(s.sparks.byID); n != len(rows) {
		t.Errorf("%d are kept", n)
	}
	for _, bad := range []string{"?id=x", "?" + strings.Repeat("id="+string(rows[0].ID)+"&", pageRows+1)} {
		if status, _ := get(t, addr, "/part/sparks"+bad, ""); status != 400 {
			t.Errorf("%.40s: status %d", bad, status)
		}
	}
	for i := range 2 * keptSparks {
		s.sparks.put(exchange.ID(fmt.Sprint(i)), "")
		s.sparks.put(exchange.ID(fmt.Sprint(i)), "")
	}
	if n := len(s.sparks.byID); n != keptSparks || len(s.sparks.order) != keptSparks {
		t.Errorf("%d are kept", n)
	}
}

// TestLongExchangesAreShort holds that a page of an exchange is bounded, whatever was recorded, and leads to the rest.
func TestLongExchangesAreShort(t *testing.T) {
	calls := ""
	for i := range 300 {
		calls += fmt.Sprintf(`%s{"index":%d,"id":"c%d","function":{"name":"f","arguments":%s}}`, strings.Repeat(",", min(i, 1)), i, i, jsonQuoted(strings.Repeat("</script>", 1000)))
	}
	big := strings.Repeat("<b>\x00\u202e</b>", 1<<16)
	for name, a := range map[string]asked{
		"answer": {model: "m", pieces: []string{big}}, "prompt": {model: "m", prompt: big, pieces: []string{"a"}}, "raw": {model: "m", raw: big},
		"calls": {model: "m", raw: `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]}}]}` + "\n\n"},
	} {
		store, _, rows := recorded(t, a)
		addr := serve(t, Options{Store: store})
		_, body := get(t, addr, "/exchanges/"+string(rows[0].ID), "")
		if len(body) > 4*pageText {
			t.Errorf("%s: %d bytes", name, len(body))
		}
		inert(t, name, body)
		if !strings.Contains(body, "?judge=1#gates") {
			t.Errorf("%s: no way to the verdicts", name)
		}
		if _, judged := get(t, addr, "/exchanges/"+string(rows[0].ID)+"?judge=1", ""); strings.Contains(judged, "?judge=1") || !strings.Contains(judged, ">now<") {
			t.Errorf("%s: it is not judged when asked for", name)
		}
		if name == "prompt" {
			if _, read := get(t, addr, "/exchanges/"+string(rows[0].ID)+"?messages=1", ""); !strings.Contains(body, "?messages=1") || !strings.Contains(read, "<h3>user</h3>") {
				t.Error("a long conversation is not read when asked for")
			}
		}
		if name == "calls" && !strings.Contains(body, "200 more calls") {
			t.Error("calls are left out silently")
		}
	}
}
