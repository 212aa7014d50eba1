package proxy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Call is a request as its sender states it. Nothing in it may change until the exchange is sealed.
type Call struct {
	Method  string
	Target  string // origin form or absolute form; bytes are kept as they are
	Proto   string // "" is HTTP/1.1
	Head    []byte // request line and headers, raw; nil makes one of the fields here
	Headers []exchange.Header
	Body    []byte

	Cell   string           // benchmark cell
	Wave   string           // requests sent together
	Origin *exchange.Origin // what it repeats

	// Item is the part of a plan it carries out, nil outside one.
	Item *exchange.PlanItem
	// Intended is when the plan wants it sent, an instant of internal/clock; zero for no plan.
	Intended time.Time
	// Notes tell what was changed before the call was made. They go before those of sending.
	Notes []exchange.Intervention

	server   *Server  // it came through; nil for Do
	identity bool     // ask for an answer without content coding
	consumed []string // lower-case names of the headers whose credential was for the proxy
	trailers []string
	sent     []byte            // body for the engine where it is not Body
	trace    []exchange.Header // what a Tracer has the engine get
}

// outgoing is the request head for the engine and what makes it differ from the call.
type outgoing struct {
	head    bytes.Buffer
	notes   []exchange.Intervention
	call    *Call
	up      *Upstream
	upgrade bool     // a WebSocket is asked for
	traced  []string // names of trace headers that are written
	length  bool     // Content-Length is written
	host    bool     // Host is written
	coded   bool     // the client used a transfer coding
}

// buildHead makes the head that goes to the engine: the client's lines in the client's order and case, without what
// was for one hop only.
func buildHead(u *Upstream, c *Call) *outgoing {
	o := &outgoing{call: c, up: u, upgrade: wantsWebSocket(c)}
	o.requestLine()
	var credentials []exchange.Header
	if u.opts.Credentials != nil {
		credentials = u.opts.Credentials()
	}
	hop := nominated(c.Headers)
	for _, h := range c.Headers {
		name := lower(h.Name)
		if i := slices.IndexFunc(credentials, func(k exchange.Header) bool { return lower(k.Name) == name }); i >= 0 {
			o.note("header_removed", h.Name, h.Value, "", "credential")
			continue
		}
		if !o.traceHeader(name, h) {
			o.header(name, h, hop)
		}
	}
	for _, t := range c.trailers {
		o.note("header_removed", t, "", "", "trailer")
	}
	o.finish(credentials)
	return o
}

func (o *outgoing) note(kind, name, from, to, reason string) {
	o.notes = append(o.notes, exchange.Intervention{
		Kind: kind, Where: exchange.SideEngine, Name: name, From: from, To: to, Reason: reason,
	})
}

func (o *outgoing) line(name, value string) {
	writeAll(&o.head, name, ": ", value, "\r\n")
}

// requestLine joins the upstream's prefix and the target, brought to origin form.
func (o *outgoing) requestLine() {
	target := originForm(o.call.Target)
	if target != "*" {
		target = joined(o.up.prefix, target)
	}
	if target != o.call.Target {
		o.note("target_changed", "target", o.call.Target, target, "upstream_url")
	}
	o.head.Grow(256 + len(o.call.Head))
	writeAll(&o.head, o.call.Method, " ", target, " HTTP/1.1\r\n")
}

// joined puts the path prefix of an upstream before a target. Base URLs of clients end in a version, /v1, and so do those
// that people give here, while the paths that clients ask for begin with it: where a prefix ends in a version, and the
// target begins with as much of its end as holds that, it is there once. No API has a version below the same version.
func joined(prefix, target string) string {
	last := prefix[strings.LastIndexByte(prefix, '/')+1:]
	if !isVersion(last) {
		return prefix + target
	}
	path, _, _ := strings.Cut(target, "?")
	for end := prefix; end != ""; {
		if path == end || strings.HasPrefix(path, end+"/") {
			return strings.TrimSuffix(prefix, end) + target
		}
		next := strings.IndexByte(end[1:], '/')
		if next < 0 {
			break
		}
		end = end[1+next:]
	}
	return prefix + target
}

// isVersion reports whether a segment of a path is the version of an API: v and digits, and perhaps a stage, as in v1beta.
func isVersion(segment string) bool {
	rest := strings.TrimPrefix(segment, "v")
	stage := strings.TrimLeft(rest, "0123456789")
	return rest != segment && stage != rest && strings.Trim(stage, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// originForm cuts scheme and authority off an absolute target.
func originForm(target string) string {
	_, rest, ok := strings.Cut(target, "://")
	if !ok || strings.HasPrefix(target, "/") {
		return target
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 && rest[i] == '/' {
		return rest[i:]
	} else if i >= 0 {
		return "/" + rest[i:]
	}
	return "/"
}

// header writes, changes or drops one header of the client; name is its name in lower case.
func (o *outgoing) header(name string, h exchange.Header, hop []string) {
	switch {
	case name == "host":
		o.hostLine(h)
	case name == "content-length":
		if !o.length {
			o.length = true
			n := strconv.Itoa(len(o.call.body()))
			o.line(h.Name, n)
			if o.call.sent != nil {
				o.note("header_changed", h.Name, h.Value, n, "body_changed")
			}
		}
	case name == "transfer-encoding":
		o.coded = true
		if !o.length {
			o.length = true
			n := strconv.Itoa(len(o.call.body()))
			o.line("Content-Length", n)
			o.note("body_reframed", h.Name, h.Value, "Content-Length: "+n, "request_read_whole")
		}
	case name == "expect":
		o.note("header_removed", h.Name, h.Value, "", "answered_by_proxy")
	case slices.Contains(o.call.consumed, name):
		o.note("header_removed", h.Name, h.Value, "", "credential")
	case o.upgrade && (name == "connection" || name == "upgrade"):
		o.line(h.Name, h.Value)
	case hopByHop(name) || slices.Contains(hop, name):
		o.note("header_removed", h.Name, h.Value, "", "hop_by_hop")
	case name == "accept-encoding" && o.call.identity && h.Value != "identity":
		o.line(h.Name, "identity")
		o.note("header_changed", h.Name, h.Value, "identity", "identity_coding")
	default:
		o.line(h.Name, h.Value)
	}
}

// traceHeader puts the trace's own value in the place of a header that carries one; false means that h is none.
func (o *outgoing) traceHeader(name string, h exchange.Header) bool {
	list := o.call.trace
	i := slices.IndexFunc(list, func(t exchange.Header) bool { return t.Name == name })
	switch {
	case i < 0:
		return false
	case list[i].Value == "" || slices.Contains(o.traced, name):
		o.note("header_removed", h.Name, h.Value, "", traceContext)
		return true
	case list[i].Value != h.Value:
		o.note("header_changed", h.Name, h.Value, list[i].Value, traceContext)
	}
	o.line(h.Name, list[i].Value)
	o.traced = append(o.traced, name)
	return true
}

// traceContext is the reason of an intervention that tells the engine its place in a trace.
const traceContext = "trace_context"

// addTrace writes the trace headers that the client did not send.
func (o *outgoing) addTrace() {
	for _, t := range o.call.trace {
		if t.Value != "" && !slices.Contains(o.traced, t.Name) {
			o.line(t.Name, t.Value)
			o.note("header_added", t.Name, "", t.Value, traceContext)
		}
	}
}

func (o *outgoing) hostLine(h exchange.Header) {
	o.host = true
	if o.up.opts.KeepHost || h.Value == o.up.authority {
		o.line(h.Name, h.Value)
		return
	}
	o.line(h.Name, o.up.authority)
	o.note("header_changed", h.Name, h.Value, o.up.authority, "host")
}

// finish adds what the client did not say and the engine must hear.
func (o *outgoing) finish(credentials []exchange.Header) {
	if !o.host {
		o.line("Host", o.up.authority)
		o.note("header_added", "Host", "", o.up.authority, "host")
	}
	if !o.length && (len(o.call.body()) > 0 || needsLength(o.call.Method)) {
		n := strconv.Itoa(len(o.call.body()))
		o.line("Content-Length", n)
		o.note("header_added", "Content-Length", "", n, "framing")
	}
	o.addTrace()
	for _, h := range credentials {
		o.line(h.Name, h.Value)
		o.note("header_added", h.Name, "", "", "credential") // never the value
	}
	o.head.WriteString("\r\n")
}

// needsLength reports whether a request without a body must say so.
func needsLength(method string) bool { return method == "POST" || method == "PUT" || method == "PATCH" }

// wantsWebSocket reports whether the call asks for a WebSocket. No other upgrade is passed on: a connection that
// speaks h2c would carry requests nobody sees.
func wantsWebSocket(c *Call) bool {
	up, _ := exchange.HeaderValue(c.Headers, "Upgrade")
	return lower(up) == "websocket" && slices.Contains(nominated(c.Headers), "upgrade") && len(c.Body) == 0
}

// rawHead is the head of a call that came without one.
func rawHead(c *Call) []byte {
	var b bytes.Buffer
	writeAll(&b, c.Method, " ", c.Target, " HTTP/1.1\r\n")
	for _, h := range c.Headers {
		writeAll(&b, h.Name, ": ", h.Value, "\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}
