package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// errMalformed is wrapped by every complaint about bytes of the engine that are not HTTP.
var errMalformed = errors.New("malformed HTTP")

// headEnd is the length of the head at the start of b including its blank line, or -1 while that is not there. from is
// where the search starts; bytes before it were searched already.
func headEnd(b []byte, from int) int {
	for i := max(from-3, 0); i < len(b); {
		k := bytes.IndexByte(b[i:], '\n')
		if k < 0 {
			return -1
		}
		i += k + 1
		rest := b[i:]
		if bytes.HasPrefix(rest, []byte("\r\n")) {
			return i + 2
		}
		if bytes.HasPrefix(rest, []byte("\n")) {
			return i + 1
		}
	}
	return -1
}

// parseHeaders reads header lines up to the blank line. Folded lines are joined by one blank; names keep their case.
// The strings share one copy of b.
func parseHeaders(b []byte) ([]exchange.Header, error) {
	out := make([]exchange.Header, 0, bytes.Count(b, []byte{'\n'}))
	for rest := string(b); len(rest) > 0; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimSuffix(line, "\r")
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(out) == 0 {
				return nil, fmt.Errorf("%w: folded line before any header", errMalformed)
			}
			last := &out[len(out)-1]
			last.Value = strings.TrimSpace(last.Value + " " + strings.TrimSpace(line))
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) {
			return nil, fmt.Errorf("%w: header line without a valid name", errMalformed)
		}
		out = append(out, exchange.Header{Name: name, Value: strings.TrimSpace(value)})
	}
	return out, nil
}

// isToken reports whether s may be a header name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return len(s) > 0
}

// parseResponse reads the status line and headers of a raw response head.
func parseResponse(head []byte) (exchange.Response, error) {
	line, rest, _ := bytes.Cut(head, []byte{'\n'})
	proto, after, _ := bytes.Cut(bytes.TrimSuffix(line, []byte{'\r'}), []byte{' '})
	code, reason, _ := bytes.Cut(bytes.TrimLeft(after, " "), []byte{' '})
	r := exchange.Response{Proto: string(proto), Reason: string(reason), Head: head}
	status, err := strconv.Atoi(string(code))
	if !bytes.HasPrefix(proto, []byte("HTTP/1.")) || len(code) != 3 || err != nil || status < 100 {
		return r, fmt.Errorf("%w: status line", errMalformed)
	}
	r.Status = status
	r.Headers, err = parseHeaders(rest)
	return r, err
}

// framing is how the end of a body is known.
type framing struct {
	chunked bool
	length  int64 // -1 when the connection's end is the body's end
	persist bool  // the connection may carry another exchange after
}

// frameResponse applies the rules of HTTP/1.1 message framing to a response to method. What could be read in two ways
// is malformed: it is how one response passes for two.
func frameResponse(r *exchange.Response, method string) (framing, error) {
	f := framing{length: -1, persist: r.Proto != "HTTP/1.0"}
	for _, h := range r.Headers {
		switch lower(h.Name) {
		case "content-length":
			n, err := strconv.ParseInt(h.Value, 10, 64)
			if err != nil || n < 0 || h.Value[0] == '+' || f.length >= 0 {
				return f, fmt.Errorf("%w: Content-Length", errMalformed)
			}
			f.length = n
		case "transfer-encoding":
			if r.Proto == "HTTP/1.0" {
				continue // does not exist there
			}
			if f.chunked || !strings.EqualFold(h.Value, "chunked") {
				return f, fmt.Errorf("%w: Transfer-Encoding", errMalformed)
			}
			f.chunked = true
		case "connection":
			if hasToken(h.Value, "close") {
				f.persist = false
			} else if hasToken(h.Value, "keep-alive") {
				f.persist = true
			}
		}
	}
	switch {
	case method == "HEAD" || r.Status < 200 || r.Status == 204 || r.Status == 304:
		f.chunked, f.length = false, 0
	case f.chunked:
		f.length = -1
	case f.length < 0:
		f.persist = false
	}
	return f, nil
}

// hasToken reports whether a comma separated list holds token, which is lower case.
func hasToken(list, token string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if lower(strings.TrimSpace(part)) == token {
			return true
		}
	}
	return false
}

// commonNames are header names in lower case, so that folding a usual name makes no new string.
var commonNames = func() map[string]string {
	m := map[string]string{}
	for _, n := range strings.Fields("accept accept-encoding accept-language authorization cache-control connection " +
		"content-encoding content-length content-type cookie date etag expect host keep-alive openai-organization origin " +
		"proxy-authorization proxy-connection referer server set-cookie te trailer transfer-encoding upgrade user-agent vary " +
		"x-accel-buffering x-api-key x-request-id access-control-allow-origin") {
		m[n] = n
	}
	return m
}()

// lower folds ASCII only: no other letter may turn into a header name.
func lower(s string) string {
	var buf [40]byte
	if len(s) > len(buf) {
		return string(foldASCII([]byte(s)))
	}
	b := foldASCII(buf[:copy(buf[:], s)])
	if n, ok := commonNames[string(b)]; ok {
		return n
	}
	return string(b)
}

func foldASCII(b []byte) []byte {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

// nominated are the header names that Connection headers declare to be for one hop only, in lower case.
func nominated(hs []exchange.Header) []string {
	var out []string
	for _, h := range hs {
		if lower(h.Name) != "connection" {
			continue
		}
		for part := range strings.SplitSeq(h.Value, ",") {
			if n := lower(strings.TrimSpace(part)); n != "" && n != "close" && n != "keep-alive" {
				out = append(out, n)
			}
		}
	}
	return out
}

// hopByHop reports whether a header, named in lower case, is for one connection only.
func hopByHop(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "transfer-encoding",
		"upgrade", "http2-settings":
		return true
	}
	return false
}
