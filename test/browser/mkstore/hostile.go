package main

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// attack is one answer that wants to be more than text. The page must show each and run, load or follow none.
type attack struct {
	name   string
	pieces []string // of the stream
	raw    string   // body in their place
	model  string
	ask    string
	head   string // one more line of the response's head
}

// hostileName is the name of a run that wants to be more than a name.
const hostileName = "\"><script>alert(15)</script>\u202e\x1b[2J ../../etc/passwd"

var attacks = []attack{
	{name: "script", pieces: []string{"<script>document.title='owned';alert(1)</script>", "<img src=/owned onerror=alert(2)>", "<svg onload=alert(3)>", "</pre></td></table><script src=//evil.example/x.js></script>"}},
	{name: "attribute", pieces: []string{`" onmouseover="alert(4)`, `' autofocus onfocus=alert(5) x='`, "javascript:alert(6)"}, model: `"><script>alert(7)</script>`, ask: "</textarea><script>alert(8)</script>"},
	{name: "template", pieces: []string{"{{.}} {{template \"x\"}} ${alert(9)}", "<!--", "]]>", "&lt;script&gt;"}},
	{name: "bidi", pieces: []string{"abc \u202egnp.exe\u202c def", "\u2066isolate\u2069 \u200fmark", "\u061c"}, model: "model\u202eledom"},
	{name: "ansi", pieces: []string{"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J", "\x08\x08\x00\x7f", "\u0085\u009b31m"}},
	{name: "invalid", raw: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"bad \xff\xfe\xc3 bytes\"}}]}\n\ndata: \xed\xa0\x80 not json\n\ndata: [DONE]\n\n"},
	{name: "long", pieces: []string{strings.Repeat("<b>long</b>", 5<<20/11)}},
	{name: "lines", pieces: []string{strings.Repeat("line\n", 100_000)}},
	{name: "tools", raw: "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"</script><script>alert(10)</script>\",\"function\":{\"name\":\"</script><img src=/owned onerror=alert(11)>\",\"arguments\":" +
		"\"{\\\"url\\\":\\\"javascript:alert(12)\\\",\\\"html\\\":\\\"</script><script>alert(13)</script>\\\"}\"}}]}}]}\n\ndata: [DONE]\n\n", head: "X-Engine: <script>alert(14)</script>\u202e\x1b[2J"},
	{name: "combining", pieces: []string{"Z" + strings.Repeat("\u0353\u0321", 2000)}},
}

func (a attack) exchange(i int) *exchange.Exchange {
	model, ask := a.model, a.ask
	if model == "" {
		model = a.name
	}
	x := request(i, model, ask)
	stream(x, rand.New(rand.NewPCG(uint64(i), 1)), a.pieces)
	if a.raw != "" {
		x.Response.Body = exchange.NewBody([]byte(a.raw))
		x.Timeline.Reads = []exchange.Read{{At: 50_000_000, Write: 20_000, Size: len(a.raw)}}
		marks(x, 49_000_000)
	}
	if a.head != "" {
		x.Response.Head = []byte(strings.Replace(string(x.Response.Head), "\r\n\r\n", "\r\n"+a.head+"\r\n\r\n", 1))
		x.Response.Headers = headersOf(string(x.Response.Head))
	}
	return x
}

// jsonText is s as a JSON text. Control characters stand in it as escapes, as engines send them.
func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // no text is without a JSON form
		panic(err)
	}
	return string(b)
}
