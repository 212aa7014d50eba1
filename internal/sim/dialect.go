package sim

import (
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// dialect is one wire format of generated answers: how a request asks, and how the answer or an error is written. What
// lies between, the text, its tokens and their instants, is the same for all of them.
type dialect struct {
	prefix  string // of the id of an answer
	parse   func(req Request, o Options) (ask, error)
	stream  func(p *answerPlan, w *scribe)
	plain   func(p *answerPlan) []byte
	refuse  refusal
	breakup func(sent int) []byte // an error event, after so many steps of a stream

	mime  string // of a stream
	ping  string // what a stream sends to keep a client waiting; "" = nothing
	whole bool   // a call is told in one event
	mute  bool   // it has no channel for thinking
}

// refusal writes the body of an error that is the whole answer. kind is OpenAI's word for it; a dialect with words of
// its own takes them from the status.
type refusal func(status int, kind, message string) []byte

const (
	mimeSSE   = "text/event-stream"
	mimeLines = "application/x-ndjson"
	mimeJSON  = "application/json"
	lostModel = "the scripted engine lost its model" // the message of an error inside an answer
)

// scribe collects the steps of a stream.
type scribe struct {
	steps []Step
}

// add plans a step that carries so many generated tokens.
func (w *scribe) add(at time.Duration, data []byte, tokens int) {
	w.steps = append(w.steps, Step{At: at, Data: data, Token: tokens > 0, Tokens: tokens})
}

// sse is a server-sent event without a name.
func sse(json []byte) []byte {
	data := make([]byte, 0, len(json)+8)
	return append(append(append(data, "data: "...), json...), "\n\n"...)
}

// namedSSE is a server-sent event under a name.
func namedSSE(name string, json []byte) []byte {
	return append([]byte("event: "+name+"\n"), sse(json)...)
}

// line is one line of newline-delimited JSON.
func line(json []byte) []byte { return append(json[:len(json):len(json)], '\n') }

// route is what the engine answers at a path.
type route struct {
	method string
	refuse refusal
	answer func(*Server, Request, Options) *Script
}

// generating is the route of a dialect.
func generating(d *dialect) route {
	return route{"POST", d.refuse, func(s *Server, req Request, o Options) *Script { return s.generate(d, req, o) }}
}

// page is the route of a fixed JSON body.
func page(refuse refusal, body func(*Server) []byte) route {
	return route{"GET", refuse, func(s *Server, _ Request, _ Options) *Script { return jsonScript(200, body(s)) }}
}

// routeOf finds what the engine answers to a request; ok is false for an unknown path.
func routeOf(req Request) (r route, ok bool) {
	switch path := req.Path(); path {
	case "/health", "/":
		return page(errorObject, func(*Server) []byte { return []byte(`{"status":"ok"}`) }), true
	case "/v1/models":
		if _, asked := exchange.HeaderValue(req.Headers, "anthropic-version"); asked {
			return page(refuseMessages, (*Server).messagesModels), true
		}
		return page(errorObject, (*Server).models), true
	case "/v1beta/models":
		return page(refuseGemini, (*Server).geminiModels), true
	case "/api/tags":
		return page(refuseOllama, (*Server).ollamaModels), true
	case "/v1/chat/completions":
		return generating(&chatDialect), true
	case "/v1/completions":
		return generating(&completionsDialect), true
	case "/v1/responses":
		return generating(&responsesDialect), true
	case "/v1/messages":
		return generating(&messagesDialect), true
	case "/api/chat":
		return generating(&ollamaChatDialect), true
	case "/api/generate":
		return generating(&ollamaGenerateDialect), true
	case "/completion", "/completions":
		return generating(&llamaCppDialect), true
	case "/generate":
		return generating(&sglangDialect), true
	case "/v1/embeddings":
		return route{"POST", errorObject, (*Server).embedOpenAI}, true
	case "/api/embed", "/api/embeddings":
		return route{"POST", refuseOllama, (*Server).embedOllama}, true
	default:
		if d := geminiAt(req); d != nil {
			return generating(d), true
		}
		return route{refuse: errorObject}, false
	}
}

// keyOf is the credential of a request, wherever its client puts it.
func keyOf(req Request) string {
	for _, name := range []string{"x-api-key", "x-goog-api-key"} {
		if v, ok := exchange.HeaderValue(req.Headers, name); ok {
			return v
		}
	}
	v, _ := exchange.HeaderValue(req.Headers, "Authorization")
	if key, ok := strings.CutPrefix(v, "Bearer "); ok {
		return key
	}
	return ""
}

// guarded reports whether a path needs the key. The native paths of local engines have none.
func guarded(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1beta/")
}

// streamed is the answer of a dialect as a stream.
func (p *answerPlan) streamed() *Script {
	s := &Script{
		Framing: FramingChunked,
		Headers: []exchange.Header{
			{Name: "Server", Value: "benchproxy-sim"}, {Name: "Content-Type", Value: p.dialect.mime}, {Name: "Cache-Control", Value: "no-cache"},
		},
		Failure: p.dialect.breakup,
	}
	w := &scribe{}
	p.pings(w)
	p.dialect.stream(p, w)
	s.Steps = w.steps
	sortSteps(s.Steps)
	s.Last = s.Steps[len(s.Steps)-1].Data
	return s
}

// opening is when a stream's first event is due, the one before any token.
func (p *answerPlan) opening() time.Duration {
	if p.EarlyRole {
		return 0
	}
	return p.prefill
}

// idOf is an id that follows from the answer's seed.
func (p *answerPlan) idOf(prefix string, n int) string {
	return prefix + strconv.FormatUint(p.seed>>8, 36) + "_" + strconv.Itoa(n)
}

// stampAt is an instant of an answer as a date, in a year that all answers share.
func stampAt(at time.Duration) string {
	return time.Unix(created, 0).UTC().Add(at).Format(time.RFC3339Nano)
}
