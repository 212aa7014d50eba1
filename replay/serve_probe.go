package replay

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// Clients, and this program's own proxy, ask a server what it is and whether it runs before they ask it for anything. These
// questions are part of no workload: where they are not recorded, what the recording names answers them, or else a plain
// 404, and neither is a miss.

// alive are the paths that ask whether a server runs.
var alive = map[string]bool{
	"/": true, "/health": true, "/healthz": true, "/livez": true, "/readyz": true, "/live": true, "/ready": true, "/ping": true,
	"/v1/health": true, "/health/readiness": true, "/health/liveliness": true, "/health/liveness": true,
}

// questions are the paths that ask what a server is, to which the recording has no answer.
var questions = map[string]bool{
	"/props": true, "/slots": true, "/version": true, "/metrics": true, "/server_info": true, "/get_server_info": true,
	"/model_info": true, "/get_model_info": true, "/v1/model": true, "/status": true, "/models/loaded": true,
	"/api/version": true, "/api/ps": true, "/api/show": true, "/api/v0/models": true, "/api/v1/models": true,
	"/.well-known/serviceinfo": true, "/favicon.ico": true, "/robots.txt": true, "/openapi.json": true,
}

// probe answers a question what this server is; nil for anything else.
func (s *StandIn) probe(req sim.Request) *sim.Script {
	path := strings.TrimSuffix(req.Path(), "/")
	if path == "" {
		path = "/"
	}
	unknown := func() *sim.Script {
		return sim.ErrorScript(req, 404, "not_found_error", "the recording does not answer "+req.Method+" "+path)
	}
	switch {
	case req.Method == "OPTIONS", req.Method == "POST" && path == "/api/show":
		return unknown()
	case req.Method != "GET" && req.Method != "HEAD":
		return nil
	case alive[path]:
		return stated(map[string]any{"status": "ok"})
	case questions[path]:
		return unknown()
	}
	models := s.index.named()
	switch head, name, _ := strings.Cut(path, "/models/"); {
	case path == "/api/tags":
		return stated(map[string]any{"models": each(models, ollamaModel)})
	case strings.HasSuffix(path, "/v1beta/models"):
		return stated(map[string]any{"models": each(models, geminiModel)})
	case strings.HasSuffix(path, "/models"):
		return stated(listing(req, models))
	case name == "":
		return nil
	case slices.Contains(models, name):
		return stated(oneModel(req, head, name))
	default:
		return unknown()
	}
}

// named are the models that recorded requests named.
func (ix *index) named() []string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return slices.Clone(ix.models)
}

// listing is the list of models in the form of the client that asks.
func listing(req sim.Request, models []string) any {
	if _, asked := exchange.HeaderValue(req.Headers, "anthropic-version"); asked {
		first, last := any(nil), any(nil)
		if n := len(models); n > 0 {
			first, last = models[0], models[n-1]
		}
		return map[string]any{"data": each(models, anthropicModel), "has_more": false, "first_id": first, "last_id": last}
	}
	return map[string]any{"object": "list", "data": each(models, openAIModel)}
}

// oneModel is what is said of one model below head.
func oneModel(req sim.Request, head, name string) any {
	if _, asked := exchange.HeaderValue(req.Headers, "anthropic-version"); asked {
		return anthropicModel(name)
	}
	if strings.HasSuffix(head, "/v1beta") {
		return geminiModel(name)
	}
	return openAIModel(name)
}

func openAIModel(name string) any {
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "recording"}
}

func anthropicModel(name string) any {
	return map[string]any{"id": name, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
}

func geminiModel(name string) any {
	return map[string]any{"name": "models/" + name, "displayName": name, "supportedGenerationMethods": []string{"generateContent"}}
}

func ollamaModel(name string) any {
	return map[string]any{"name": name, "model": name, "modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": "", "details": map[string]any{}}
}

func each(models []string, form func(string) any) []any {
	out := make([]any, 0, len(models))
	for _, m := range models {
		out = append(out, form(m))
	}
	return out
}

// stated answers with a JSON document that is ours.
func stated(v any) *sim.Script {
	body, err := json.Marshal(v)
	if err != nil { // texts and numbers always marshal
		body = []byte("{}")
	}
	return &sim.Script{Framing: sim.FramingLength, JoinHead: true, Steps: []sim.Step{{Data: body}},
		Headers: []exchange.Header{{Name: "Server", Value: "benchproxy-stand-in"}, {Name: "Content-Type", Value: "application/json"}}}
}
