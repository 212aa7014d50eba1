package telemetry

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// exchangeSpans are the two sides of one exchange.
type exchangeSpans struct {
	server span // as its client saw it; told where a client asked for it
	client span // as the engine had it
}

// build makes the spans of a sealed exchange by its timeline, its record and what is derived of it.
func (t *Tracing) build(x *exchange.Exchange, a *measure.Analysis) *exchangeSpans {
	s := &exchangeSpans{server: serverSpan(x, a), client: clientSpan(x, a)}
	if o := x.Origin; o != nil && t.o.Link != nil {
		if link, ok := t.o.Link(o.Exchange); ok {
			s.client.links = append(s.client.links, link)
		}
	}
	t.tellContent(&s.client, x, a)
	return s
}

// instant is a mark on the wall clock.
func instant(x *exchange.Exchange, ns int64) time.Time {
	return x.Timeline.Wall.Add(time.Duration(ns))
}

// bounds are when the engine's part of an exchange began, before a connection was looked for, and ended.
func bounds(x *exchange.Exchange) (start, end time.Time) {
	tl := &x.Timeline
	began, _ := tl.RequestRead.NS()
	ended, ok := tl.BodyEnd.NS()
	if !ok {
		ended = lastMark(tl)
	}
	return instant(x, began), instant(x, max(began, ended))
}

// lastMark is the latest instant that happened.
func lastMark(tl *exchange.Timeline) (last int64) {
	for _, m := range []exchange.Mark{tl.Accepted, tl.RequestRead, tl.Dialed, tl.SendStart, tl.SendDone, tl.HeaderRead, tl.FirstRead,
		tl.LastRead, tl.BodyEnd, tl.ClientDone} {
		if ns, ok := m.NS(); ok {
			last = max(last, ns)
		}
	}
	return last
}

// methods are the methods of HTTP that a span may be named by.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}

// method adds the method and gives its name in names of spans.
func (a *attributes) method(m string) string {
	if slices.Contains(methods, m) {
		a.str(httpMethod, m)
		return m
	}
	a.str(httpMethod, "_OTHER")
	a.str(httpMethodOriginal, cut(m, maxName))
	return "HTTP"
}

// serverSpan is the exchange as its client saw it.
func serverSpan(x *exchange.Exchange, a *measure.Analysis) span {
	s := span{kind: trace.SpanKindServer, attrs: make(attributes, 0, 18), start: instant(x, 0), end: instant(x, lastMark(&x.Timeline))}
	path, query, _ := strings.Cut(x.Request.Target, "?")
	s.name = s.attrs.method(x.Request.Method)
	if route := routeOf(path); route != "" {
		s.name += " " + route
		s.attrs.str(httpRoute, route)
	}
	s.attrs.str(urlPath, cut(path, maxValue))
	s.attrs.str(urlQuery, cut(query, maxValue))
	s.attrs.str(urlScheme, "http")
	if host, ok := exchange.HeaderValue(x.Request.Headers, "Host"); ok {
		s.attrs.address(cut(host, maxValue), "")
	}
	s.attrs.protocol(x.Request.Proto)
	agent, _ := exchange.HeaderValue(x.Request.Headers, "User-Agent")
	s.attrs.str(userAgent, cut(agent, maxValue))
	s.attrs.status(answered(x))
	s.attrs.int(httpRequestSize, x.Request.Body.Size)
	s.attrs.int(httpResponseSize, x.Response.Body.Size)
	s.attrs.str(ourRecord, string(x.ID))
	why := errorOf(x, a)
	s.attrs.str(errorType, why)
	// What the client did itself is no error of the server: a request it was told is wrong, and its leaving.
	if status := answered(x); status >= 500 || why != "" && why != errClient && status < 400 {
		s.fail(why, a)
	}
	return s
}

// answered is the status that the client got: the engine's, or the proxy's own where the engine gave none.
func answered(x *exchange.Exchange) int {
	if x.Response.Status != 0 {
		return x.Response.Status
	}
	switch x.End {
	case exchange.EndClientGone:
		return 0
	case exchange.EndTimeout:
		return 504
	case exchange.EndShutdown:
		return 503
	}
	return 502
}

// clientSpan is the exchange as the engine had it.
func clientSpan(x *exchange.Exchange, a *measure.Analysis) span {
	s := span{kind: trace.SpanKindClient, attrs: make(attributes, 0, 44)}
	s.start, s.end = bounds(x)
	operation := operationOf(x, a.Transcript)
	if operation == "" {
		s.name = s.attrs.method(x.Request.Method)
		s.attrs.str(urlFull, cut(x.UpstreamURL+x.Request.Target, maxValue))
	} else {
		s.name = strings.TrimSpace(operation + " " + nameable(a.Request.Model))
		s.attrs.str(aiOperation, operation)
		s.attrs.str(aiProvider, providerOf(x))
	}
	s.attrs.upstream(x.UpstreamURL)
	s.attrs.status(x.Response.Status)
	s.attrs.protocol(x.Response.Proto)
	s.attrs.record(x, a)
	if operation != "" {
		s.attrs.request(x, a)
		s.attrs.response(x, a)
		s.attrs.figures(a)
	}
	why := errorOf(x, a)
	if why == errClient {
		why = ""
	}
	s.attrs.str(errorType, why)
	s.events = eventsOf(x, a, why)
	if why != "" {
		s.fail(why, a)
	}
	return s
}

// fail marks a span as failed.
func (s *span) fail(why string, a *measure.Analysis) {
	s.failed, s.why = true, why
	if a.Cause != nil && a.Cause.Text != "" {
		s.why = causeText(a)
	}
}

// record adds what leads from the span to the record.
func (a *attributes) record(x *exchange.Exchange, an *measure.Analysis) {
	a.str(ourRecord, string(x.ID))
	a.str(ourRun, string(x.Run))
	a.str(ourMode, x.Mode)
	a.str(ourUpstream, x.Upstream)
	a.str(ourBuild, x.Identity.Version)
	a.str(ourCell, x.Cell)
	a.str(ourWave, x.Wave)
	if x.Item != nil {
		a.str(ourItem, x.Item.Item)
	}
	if x.Origin != nil {
		a.str(ourReplayed, string(x.Origin.Exchange))
	}
	a.str(ourOutcome, string(an.Outcome))
	a.strs(ourFlags, an.Flags)
}

// upstream adds the address of an engine's URL.
func (a *attributes) upstream(at string) {
	u, err := url.Parse(at)
	if err != nil {
		return
	}
	if u.Scheme == "unix" {
		a.str(serverAddress, cmp.Or(u.Path, u.Opaque))
		return
	}
	a.address(u.Host, u.Scheme)
}

// address adds a host with its port; a scheme tells the port where the host does not.
func (a *attributes) address(hostport, scheme string) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), map[string]string{"http": "80", "https": "443"}[scheme]
	}
	a.str(serverAddress, host)
	if n, err := strconv.Atoi(port); err == nil {
		a.int(serverPort, int64(n))
	}
}

func (a *attributes) status(code int) {
	if code != 0 {
		a.int(httpStatus, int64(code))
	}
}

func (a *attributes) protocol(proto string) {
	if _, version, ok := strings.Cut(proto, "/"); ok {
		a.str(protocolVersion, version)
	}
}

// routes are the paths that a span may be named by: what clients ask for is theirs to choose, and a name must not be.
var routes = []string{
	"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/models",
	"/chat/completions", "/completions", "/completion", "/embeddings", "/embedding", "/generate", "/infill", "/tokenize", "/health", "/props",
	"/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/tags", "/api/show", "/api/ps", "/api/version", "/api/v1/chat", "/v1/messages/count_tokens",
}

// routeOf is the route of a path, "" for one that has none here.
func routeOf(path string) string {
	if slices.Contains(routes, path) {
		return path
	}
	for _, method := range []string{"generateContent", "streamGenerateContent", "embedContent", "batchEmbedContents"} {
		if strings.HasSuffix(path, ":"+method) {
			return "/{version}/models/{model}:" + method
		}
	}
	return ""
}

// operationOf is what the engine was asked to do, "" for nothing that generates.
func operationOf(x *exchange.Exchange, t *wire.Transcript) string {
	if x.Request.Method != "POST" || x.Tunnel != nil {
		return ""
	}
	d := wire.DialectFor(wire.Dialect(x.Dialect), x.Request.Target)
	if t.Dialect != wire.DialectNone {
		d = t.Dialect
	}
	switch d {
	case wire.DialectNone:
		return ""
	case wire.DialectCompletions, wire.DialectLlamaCpp, wire.DialectSGLang:
		return "text_completion"
	case wire.DialectEmbeddings:
		return "embeddings"
	case wire.DialectGemini:
		return "generate_content"
	case wire.DialectOllama:
		if strings.HasSuffix(strings.TrimSuffix(path(x), "/"), "/generate") {
			return "text_completion"
		}
	}
	return "chat"
}

func path(x *exchange.Exchange) string {
	p, _, _ := strings.Cut(x.Request.Target, "?")
	return p
}

// providerOf is who answers, in the words of the conventions where they have one.
func providerOf(x *exchange.Exchange) string {
	switch e := x.Identity.Engine; e {
	case "llamacpp":
		return "llama_cpp"
	case "gemini":
		return "gcp.gemini"
	case "":
		return "unknown"
	default:
		return e
	}
}

const (
	maxName  = 64   // bytes of a client's text in a name
	maxValue = 1024 // bytes of a client's text in an attribute
)

// nameable is a text of a client as part of a name: one short line.
func nameable(s string) string { return nameableTo(s, maxName) }

func nameableTo(s string, limit int) string {
	return cut(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, cut(s, 4*limit)), limit)
}

// cut is s as far as so many bytes, at a whole character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
