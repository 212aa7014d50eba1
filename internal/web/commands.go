package web

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// inlineBody bounds a body that stands in a command line; a larger one is read from the store.
const inlineBody = 32 << 10

// ownHeaders are the headers that curl makes itself, or that belong to one sending.
var ownHeaders = []string{"host", "content-length", "connection", "transfer-encoding", "accept-encoding", "keep-alive", "te", "trailer", "upgrade",
	"proxy-connection", "expect", "traceparent", "tracestate", "baggage"}

// curlOf is a command line that sends the request again, to the engine. Credentials are not in the record: $KEY stands in
// their places. It is "" where no command line sends just that: to a target that is no path, which would name another host, or
// where it would be too long to be shown whole.
func curlOf(x *exchange.Exchange) string {
	target := x.Request.Target
	if x.Request.Method == "" || x.UpstreamURL == "" || strings.HasPrefix(x.UpstreamURL, "unix:") || !strings.HasPrefix(target, "/") || !plain(target) {
		return ""
	}
	body := x.Request.Body.Bytes()
	inline := x.Request.Body.Whole() && len(shellWord(string(body))) <= inlineBody && plain(string(body)) && !bytes.ContainsRune(body, '\t') // which a shell completes on
	var b strings.Builder
	if len(body) > 0 && !inline {
		b.WriteString("benchproxy store show " + string(x.ID) + " --raw request |\n  ")
	}
	// Without -g and --path-as-is, curl makes requests of its own of brackets, braces and dots in a path.
	b.WriteString("curl -N -g --path-as-is -X " + shellWord(x.Request.Method) + " " + shellWord(strings.TrimSuffix(x.UpstreamURL, "/")+target))
	for _, h := range x.Request.Headers {
		if headerName.MatchString(h.Name) && !slices.Contains(ownHeaders, strings.ToLower(h.Name)) {
			b.WriteString(" \\\n  -H " + headerWord(h))
		}
	}
	switch {
	case len(body) == 0:
	case inline:
		b.WriteString(" \\\n  --data-raw " + shellWord(string(body)))
	default:
		b.WriteString(" \\\n  --data-binary @-")
	}
	if b.Len() > excerptBytes {
		return ""
	}
	return b.String()
}

// plain reports whether a text can be shown as it is, and so copied.
func plain(s string) bool {
	segments, _ := visible(s, len(s))
	return !slices.ContainsFunc(segments, func(g segment) bool { return g.Mark })
}

// headerWord is a header as one word of a shell.
func headerWord(h exchange.Header) string {
	if h.Value == "" {
		return shellWord(h.Name + ";") // with a colon, curl would leave the header out
	}
	if !strings.Contains(h.Value, redact.Mask) {
		return shellWord(h.Name + ": " + h.Value)
	}
	before, after, _ := strings.Cut(h.Value, redact.Mask)
	return shellWord(h.Name+": "+before) + `"$KEY"` + shellWord(after)
}

// headerName matches names of headers. curl would take one that begins with "@" for a file to read.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// plainWord matches words that a shell takes as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shellWord quotes s for a POSIX shell.
func shellWord(s string) string {
	switch {
	case s == "":
		return ""
	case plainWord.MatchString(s):
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// replayOf is the command that sends the request again and records it. It names the run by its id: names come again, and
// one may look like a flag.
func replayOf(x *exchange.Exchange) string {
	if x.UpstreamURL == "" {
		return ""
	}
	return "benchproxy replay " + string(x.Run) + " --only-id " + string(x.ID) + " --target " + shellWord(x.UpstreamURL)
}

// traceParent is the header of W3C's trace context.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)

// traceOf is the id of the trace that an exchange belongs to, as it was sent to the engine, and where it can be looked at.
// Both are "" when there is none.
func (s *Server) traceOf(x *exchange.Exchange) (id, url string) {
	parent, _ := exchange.HeaderValue(x.Request.Headers, "traceparent")
	for _, i := range x.Interventions {
		if strings.EqualFold(i.Name, "traceparent") && i.Where == exchange.SideEngine && i.To != "" {
			parent = i.To
		}
	}
	m := traceParent.FindStringSubmatch(parent)
	if m == nil {
		return "", ""
	}
	if s.o.TraceURL == "" {
		return m[1], ""
	}
	return m[1], strings.ReplaceAll(s.o.TraceURL, "{trace}", m[1])
}
