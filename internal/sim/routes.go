package sim

import (
	"encoding/json"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Reserved paths are answered by the server itself, are not slowed by slots and leave no record:
//
//	GET /sim/records          the Truth as JSON; request bodies and bytes sent only with ?bytes=1
//	DELETE /sim/records       forgets it
const recordsPath = "/sim/records"

// created is the creation time in every answer: a fixed one, so that equal requests get equal bytes.
const created = 1767225600

// reserved answers a request on a reserved path; false leaves it to exchange.
func (c *conn) reserved(req Request) bool {
	if req.Path() != recordsPath || c.srv.cfg.Bare {
		return false
	}
	s := errorScript(405, "invalid_request_error", "use GET or DELETE")
	switch req.Method {
	case "GET":
		s = jsonScript(200, recordsJSON(c.srv.Truth(), strings.Contains(req.Target, "bytes=1")))
	case "DELETE":
		c.srv.Reset()
		s = &Script{Status: 204, Framing: FramingLength}
	}
	// A failed write is found by the next read.
	_, _ = c.nc.Write(plainResponse(s, req.wantsClose()))
	return true
}

// recordsJSON is the truth as JSON.
func recordsJSON(t Truth, withBytes bool) []byte {
	if !withBytes {
		for i := range t.Requests {
			t.Requests[i].Body, t.Requests[i].Sent = nil, nil
		}
	}
	b, err := json.Marshal(t)
	if err != nil { // no type in Truth can fail
		return errorObject(500, "server_error", err.Error())
	}
	return b
}

// plainResponse is a Script without instants as one piece of wire bytes.
func plainResponse(s *Script, closes bool) []byte {
	o := Options{KeepAlive: KeepAlive}
	if closes {
		o.KeepAlive = KeepAliveNo
	}
	var b []byte
	for _, w := range compile(s, Request{Proto: "HTTP/1.1"}, o).writes {
		b = append(b, w.data...)
	}
	return b
}

// Bytes are all that a Script would send in answer to a request, for one whose connection is written to by hand and ends
// with it.
func (s *Script) Bytes(req Request) []byte {
	var b []byte
	for _, w := range compile(s, req, Options{KeepAlive: KeepAliveNo}).writes {
		b = append(b, w.data...)
	}
	return b
}

// script chooses the answer to a request, and the options it is given under.
func (s *Server) script(req Request) (Options, *Script) {
	if s.cfg.Bare {
		if script := s.cfg.Handler(req); script != nil {
			return Options{}.withDefaults(), script
		}
		return Options{}.withDefaults(), ErrorScript(req, 404, "not_found_error", "nothing answers this")
	}
	o := s.cfg.Options
	changed := false
	for _, h := range req.Headers {
		if !strings.EqualFold(h.Name, "X-Sim") {
			continue
		}
		if err := o.Set(h.Value); err != nil {
			r, _ := routeOf(req)
			return Options{}.withDefaults(), refuse(r.refuse, 400, "invalid_request_error", err.Error())
		}
		changed = true
	}
	o = o.withDefaults()
	if s.cfg.Handler != nil {
		if played := s.cfg.Handler(req); played != nil {
			if changed {
				played = played.under(o)
			}
			return o, played
		}
	}
	script := s.answer(req, o)
	return o, script.under(o).dressed(o)
}

// under is a copy of a Script with what the options of one request change about any Script.
func (s *Script) under(o Options) *Script {
	c := *s
	if o.Fault.Kind != "" {
		c.Fault = o.Fault
	}
	if o.Split > 0 {
		c.Split = o.Split
	}
	if o.Merge > 0 {
		c.Merge = o.Merge
	}
	return &c
}

// dressed is a copy of a generated Script with the head and framing that the options ask for.
func (s *Script) dressed(o Options) *Script {
	c := *s
	c.Proto = o.Proto
	if o.Framing != "" {
		c.Framing = o.Framing
	}
	if o.Proto == "HTTP/1.0" && c.Framing == FramingChunked {
		c.Framing = FramingClose
	}
	if o.KeepAlive == KeepAliveLies {
		c.Headers = append(c.Headers[:len(c.Headers):len(c.Headers)], exchange.Header{Name: "Keep-Alive", Value: "timeout=5, max=100"})
	}
	if o.HeadDelay > 0 {
		c.HeadAt = o.HeadDelay
	}
	c.HeadGap = o.HeadGap
	if o.HeadGap > 0 || o.HeadDelay > 0 {
		c.JoinHead = false
	}
	if o.Informational > 0 {
		c.Informational = []int{o.Informational}
	}
	if o.Trailer && c.Framing == FramingChunked {
		c.Trailers = []exchange.Header{{Name: "X-Sim-Trailer", Value: "end"}}
	}
	if o.Gzip {
		c.compress()
	}
	return &c
}

// answer is what the engine answers.
func (s *Server) answer(req Request, o Options) *Script {
	r, known := routeOf(req)
	if o.Status != 0 {
		return refuse(r.refuse, o.Status, "scripted_error", "scripted status")
	}
	path := req.Path()
	if s.cfg.APIKey != "" && guarded(path) && keyOf(req) != s.cfg.APIKey {
		return refuse(r.refuse, 401, "authentication_error", "missing or wrong API key")
	}
	if !known {
		return refuse(r.refuse, 404, "not_found_error", "no such path: "+path)
	}
	if req.Method != r.method && (req.Method != "HEAD" || r.method != "GET") {
		return refuse(r.refuse, 405, "invalid_request_error", "use "+r.method)
	}
	return r.answer(s, req, o)
}

// jsonScript answers with one JSON body in one write.
func jsonScript(status int, body []byte) *Script {
	return &Script{
		Status: status, Framing: FramingLength, JoinHead: true,
		Headers: []exchange.Header{{Name: "Server", Value: "benchproxy-sim"}, {Name: "Content-Type", Value: mimeJSON}},
		Steps:   []Step{{Data: body}},
	}
}

// refuse answers with an error in the form of a dialect.
func refuse(form refusal, status int, kind, message string) *Script {
	return jsonScript(status, form(status, kind, message))
}

func errorScript(status int, kind, message string) *Script {
	return refuse(errorObject, status, kind, message)
}

// ErrorScript answers a request with an error in the form that clients of its path know, also where something stands
// before a known path. kind is OpenAI's word for the error; a dialect with words of its own takes them from the status.
func ErrorScript(req Request, status int, kind, message string) *Script {
	form := refusal(errorObject)
	for path := req.Path(); path != ""; {
		if r, known := routeOf(Request{Target: path, Headers: req.Headers}); known {
			form = r.refuse
			break
		}
		if strings.HasPrefix(path, "/api/") {
			form = refuseOllama
			break
		}
		next := strings.IndexByte(path[1:], '/')
		if next < 0 {
			break
		}
		path = path[1+next:]
	}
	return refuse(form, status, kind, message)
}

// errorObject is an error in the OpenAI form.
func errorObject(code int, kind, message string) []byte {
	b, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}})
	if err != nil { // strings and numbers always marshal
		return []byte(err.Error())
	}
	return b
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return append(b, `""`...)
	}
	return append(b, q...)
}
