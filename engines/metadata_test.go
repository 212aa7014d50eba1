package engines

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// facts are the parts of a deployment that a test states; nil is unknown.
type facts map[string]any

func factsOf(d exchange.Deployment) facts {
	f := facts{"engine": d.Engine}
	add := func(name string, v any) {
		if v != nil && v != "" && v != false {
			f[name] = v
		}
	}
	add("version", d.Version)
	add("model", show(d.Model))
	add("root", show(d.ModelRoot))
	add("parameters", show(d.Parameters))
	add("quantization", show(d.Quantization))
	add("window", show(d.Window))
	add("slots", show(d.Slots))
	add("gpus", show(d.GPUs))
	if d.Drafting != nil {
		f["drafting"] = *d.Drafting
	}
	add("method", show(d.DraftMethod))
	add("device", show(d.ObservedDevice))
	add("digest", show(d.WeightsDigest))
	add("fallback", d.CPUFallback)
	if d.Inner != nil {
		f["inner"] = d.Inner.Engine
	}
	return f
}

func TestMetadataOfRealServers(t *testing.T) {
	llama := map[string]played{"/health": captured(t, "llama-server-health-ok"), "/v1/models": captured(t, "llama-server-v1-models"),
		"/props": captured(t, "llama-server-props"), "/metrics": captured(t, "llama-server-conc6-metrics")}
	ollama := map[string]played{"/": captured(t, "ollama-root"), "/api/version": captured(t, "ollama-api-version"),
		"/v1/models": captured(t, "ollama-v1-models"), "/api/ps": captured(t, "ollama-api-ps"), "POST /api/show": captured(t, "ollama-api-show")}
	for name, c := range map[string]struct {
		answers  map[string]played
		options  Options
		want     facts
		evidence string
	}{
		"llama-server": {llama, Options{Requested: "cuda"}, facts{"engine": "llamacpp", "version": "b0-unknown", "model": "lab-tiny", "root": "lab-tiny.gguf",
			"parameters": int64(3338112), "quantization": "FP16", "window": int64(2048), "slots": int64(4), "drafting": false},
			"GET /metrics has names of llamacpp:"},
		"llama-server without a key": {map[string]played{"/health": captured(t, "llama-server-health-ok"),
			"/v1/models": captured(t, "llama-server-auth-models-open"), "/metrics": captured(t, "llama-server-auth-metrics")}, Options{},
			facts{"engine": "llamacpp"}, `GET /health: server is "llama.cpp"`},
		"llama-server that loads": {map[string]played{"/props": captured(t, "llama-server-loading-props"), "/health": captured(t, "llama-server-loading-props")},
			Options{}, facts{"engine": Unknown}, "nothing that it says proves an engine"},
		"ollama on the CPU": {ollama, Options{Requested: "gpu"}, facts{"engine": "ollama", "version": "0.17.4", "model": "lab-tiny:latest",
			"parameters": int64(3338112), "quantization": "FP16", "window": int64(2048), "device": "cpu", "fallback": true,
			"digest": "sha256:3bebf8f9e612c26f20fa839ec5b2b59d6414703887fca5dcac2885b50f8f43a2"},
			`GET / says "Ollama is running"; GET /api/version: version is "0.17.4"`},
		"ollama by the short name": {ollama, Options{Model: "lab-tiny"}, facts{"engine": "ollama", "version": "0.17.4", "model": "lab-tiny",
			"parameters": int64(3338112), "quantization": "FP16", "window": int64(2048), "device": "cpu",
			"digest": "sha256:3bebf8f9e612c26f20fa839ec5b2b59d6414703887fca5dcac2885b50f8f43a2"},
			`GET / says "Ollama is running"; GET /api/version: version is "0.17.4"`},
		"ollama with another model asked for": {map[string]played{"/": captured(t, "ollama-root"), "/api/version": captured(t, "ollama-api-version"),
			"/v1/models": captured(t, "ollama-v1-models"), "/api/ps": captured(t, "ollama-api-ps-unloaded")}, Options{Model: "other"},
			facts{"engine": "ollama", "version": "0.17.4", "model": "other"}, `GET / says "Ollama is running"; GET /api/version: version is "0.17.4"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := identify(t, &server{answers: c.answers}, c.options)
			if diff := cmp.Diff(c.want, factsOf(d)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if d.Evidence != c.evidence {
				t.Errorf("evidence %q, want %q", d.Evidence, c.evidence)
			}
		})
	}
}

func TestMetadataOfWrittenBodies(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]played
		want    facts
	}{
		"vllm": {map[string]played{"/metrics": probeBody(t, "vllm-metrics"), "/v1/models": probeBody(t, "vllm-models"), "/version": jsonBody(`{"version":"0.11.2"}`),
			"/health": probeBody(t, "vllm-health-ok")}, facts{"engine": "vllm", "version": "0.11.2", "model": "Qwen/Qwen3-8B", "root": "Qwen/Qwen3-8B", "window": int64(40960)}},
		"sglang":     {map[string]played{"/metrics": probeBody(t, "sglang-metrics")}, facts{"engine": "sglang"}},
		"tensorfold": {map[string]played{"/metrics": probeBody(t, "tensorfold-metrics")}, facts{"engine": "tensorfold"}},
		"halogen":    {map[string]played{"/metrics": probeBody(t, "halogen-metrics"), "/health": jsonBody(`{"version":"0.16.2"}`)}, facts{"engine": "halogen", "version": "0.16.2"}},
		"llamacpp":   {map[string]played{"/metrics": probeBody(t, "llamacpp-metrics"), "/health": probeBody(t, "llamacpp-health-ok")}, facts{"engine": "llamacpp"}},
		"strata": {map[string]played{"/metrics": probeBody(t, "strata-metrics-json"), "/props": probeBody(t, "strata-props")},
			facts{"engine": "strata", "version": "0.9.1", "window": int64(32768), "slots": int64(1)}},
		"ollama's root alone":              {map[string]played{"/": probeBody(t, "ollama-root")}, facts{"engine": Unknown}},
		"a loading answer with status 200": {map[string]played{"/health": probeBody(t, "llamacpp-health-loading-503")}, facts{"engine": Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, factsOf(identify(t, &server{answers: c.answers}, Options{}))); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHTMLIdentifiesNothing(t *testing.T) {
	html := probeBody(t, "tensorsharp-html-200")
	html.header = http.Header{"Content-Type": {"text/html"}}
	named := html
	named.header = http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Server": {"llama.cpp"}}
	for name, page := range map[string]played{
		"a page of an engine":        html,
		"under a head with its name": named,
		"metrics in its text":        {status: 200, body: "<!doctype html>\n<pre>\nvllm:num_requests_running 1\n</pre>"},
		"text alone":                 {status: 200, header: http.Header{"Content-Type": {"text/html"}}, body: "Ollama is running\nsglang:num_running_reqs 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answers: map[string]played{}, other: &page}
			if d := identify(t, s, Options{}); d.Engine != Unknown || d.Model != nil || len(d.Models) != 0 {
				t.Errorf("got %+v", factsOf(d))
			}
		})
	}
}

func TestServedModel(t *testing.T) {
	two := jsonBody(`{"object":"list","data":[{"id":"alias","owned_by":"tabbyAPI"},{"id":"real-exl3-4.0bpw","owned_by":"tabbyAPI"}]}`)
	tabby := map[string]played{"/v1/models": two, "/v1/model": jsonBody(`{"id":"real-exl3-4.0bpw"}`),
		"/props": jsonBody(`{"total_slots":8,"default_generation_settings":{"n_ctx":32768}}`)}
	keyless := map[string]played{"/v1/models": {status: 401}, "/.well-known/serviceinfo": jsonBody(`{"software":{"name":"TabbyAPI"}}`)}
	plain := map[string]played{"/v1/models": jsonBody(`{"object":"list","data":[{"id":"a"},{"id":"b","max_model_len":10}]}`)}
	one := map[string]played{"/v1/models": jsonBody(`{"object":"list","data":[{"id":"a","max_model_len":10}]}`)}
	for name, c := range map[string]struct {
		answers map[string]played
		asked   string
		want    facts
		models  int
	}{
		"the loaded model before the listing": {tabby, "", facts{"engine": "tabbyapi", "model": "real-exl3-4.0bpw", "quantization": "EXL3", "window": int64(32768), "slots": int64(8)}, 2},
		"identified without a key":            {keyless, "", facts{"engine": "tabbyapi"}, 0},
		"several, none said to be loaded":     {plain, "", facts{"engine": Unknown}, 2},
		"one of several asked for":            {plain, "b", facts{"engine": Unknown, "model": "b", "window": int64(10)}, 2},
		"none of several asked for":           {plain, "c", facts{"engine": Unknown, "model": "c"}, 2},
		"a single one under another id":       {one, "alias", facts{"engine": Unknown, "model": "alias", "window": int64(10)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := identify(t, &server{answers: c.answers}, Options{Model: c.asked})
			if diff := cmp.Diff(c.want, factsOf(d)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if len(d.Models) != c.models {
				t.Errorf("models %q, want %d", d.Models, c.models)
			}
		})
	}
}

func TestFronts(t *testing.T) {
	health := jsonBody(`{"status":"ok","active_model":"phi-4-mini","active_device":"cpu"}`)
	models := jsonBody(`{"object":"list","data":[{"id":"phi-4-mini","owned_by":"onnxruntime-genai"},{"id":"ollama:qwen","owned_by":"ollama"}]}`)
	lite := played{status: 200, header: http.Header{"X-Litellm-Version": {"1.80.0"}}, body: `{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}`}
	for name, c := range map[string]struct {
		answers map[string]played
		model   string
		want    facts
	}{
		"prism's own model":      {map[string]played{"/health": health, "/v1/models": models}, "", facts{"engine": "prism", "inner": "onnx", "model": "phi-4-mini", "device": "cpu", "fallback": true}},
		"prism to ollama":        {map[string]played{"/health": health, "/v1/models": models}, "ollama:qwen", facts{"engine": "prism", "inner": "ollama", "model": "ollama:qwen"}},
		"prism by the name":      {map[string]played{"/health": health}, "ollama:qwen", facts{"engine": "prism", "inner": "ollama", "model": "ollama:qwen"}},
		"litellm":                {map[string]played{"/v1/models": lite}, "", facts{"engine": "litellm", "version": "1.80.0", "inner": "vllm", "model": "m"}},
		"litellm shows on a 404": {map[string]played{"/metrics": {status: 404, header: http.Header{"X-Litellm-Call-Id": {"1"}}}}, "", facts{"engine": "litellm"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answers: c.answers}
			d := identify(t, s, Options{Model: c.model, Requested: "gpu"})
			if diff := cmp.Diff(c.want, factsOf(d)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if d.Engine == "litellm" && slices.Contains(s.asked, "/health") {
				t.Error("LiteLLM's /health was asked: it makes the models work")
			}
		})
	}
}

func TestTensorFoldOnMLX(t *testing.T) {
	for backend, want := range map[string]facts{
		"mlx":  {"engine": "tensorfold"},
		"cuda": {"engine": "tensorfold", "window": int64(65536), "slots": int64(4)},
	} {
		s := &server{answers: map[string]played{"/v1/models": jsonBody(`{"data":[{"owned_by":"tensorfold"}]}`),
			"/health": jsonBody(`{"backend":"` + backend + `","context_window":65536,"max_streams":4,"max_batch":32}`)}}
		if diff := cmp.Diff(want, factsOf(identify(t, s, Options{}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", backend, diff)
		}
	}
}

func TestStrataDraftsOnceItHasOffered(t *testing.T) {
	for counter, want := range map[string]any{"0": nil, "1.5e+02": true} {
		s := &server{answers: map[string]played{"/metrics": {status: 200, body: "strata:requests_total 1\nvllm:spec_decode_num_draft_tokens_total{engine=\"0\"} " + counter + "\n"}}}
		d := identify(t, s, Options{})
		if got := show(d.Drafting); got != want {
			t.Errorf("with %s drafted tokens drafting is %v, want %v", counter, got, want)
		}
	}
}

// TestCredentialsAndBodies holds what is sent: the given headers and an Accept for Prometheus text.
func TestProbesCarryTheHeaders(t *testing.T) {
	s := &server{answers: map[string]played{"/v1/models": captured(t, "ollama-v1-models"), "/": captured(t, "ollama-root"),
		"/api/version": captured(t, "ollama-api-version"), "/api/ps": captured(t, "ollama-api-ps")}}
	identify(t, s, Options{Headers: []exchange.Header{{Name: "Authorization", Value: "Bearer k"}}})
	for i, h := range s.headers {
		if h.Get("Authorization") != "Bearer k" {
			t.Errorf("%s was asked without the key", s.asked[i])
		}
		if s.asked[i] == "/metrics" && !strings.HasPrefix(h.Get("Accept"), "text/plain") {
			t.Errorf("/metrics was asked for %q", h.Get("Accept"))
		}
	}
	if i := slices.Index(s.asked, "POST /api/show"); i < 0 || s.bodies[i] != `{"model":"lab-tiny:latest"}` {
		t.Errorf("show was asked with %q", s.bodies)
	}
}

func TestHostedAPIsAreNotProbed(t *testing.T) {
	for url, want := range map[string]string{
		"https://api.openai.com/v1":                 "openai",
		"https://api.anthropic.com":                 "anthropic",
		"https://generativelanguage.googleapis.com": "gemini",
		"https://opencode.ai/zen/v1":                "opencode",
	} {
		s := &server{}
		d, err := builtin(t).Identify(t.Context(), s, url, Options{})
		if err != nil || d.Engine != want || d.Basis != BasisHost || len(s.asked) != 0 {
			t.Errorf("%s is %q by %q after %q, %v; want %q without a probe", url, d.Engine, d.Basis, s.asked, err, want)
		}
	}
	if d := identify(t, &server{}, Options{}); d.Engine == "openai" {
		t.Error("a compatible server is not the OpenAI API")
	}
}

func TestBaseURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://h:1": "/metrics", "http://h:1/": "/metrics", "http://h:1/v1": "/metrics", "http://h:1/v1/": "/metrics", "http://h:1/p/v1": "/p/metrics",
	} {
		s := &server{}
		if _, err := builtin(t).Identify(t.Context(), s, url, Options{}); err != nil || s.asked[0] != want {
			t.Errorf("%s asks %q, %v; want %q first", url, s.asked, err, want)
		}
	}
	for _, url := range []string{"", "h:1", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h#x", "http://%zz"} {
		_, err := builtin(t).Identify(t.Context(), &server{}, url, Options{})
		if err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q gives %v, want a usage error without the password", url, err)
		}
	}
}
