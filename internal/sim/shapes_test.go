package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustBeObject(t *testing.T, text string) {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil || len(o) == 0 {
		t.Errorf("%q is no object: %v", text, err)
	}
}

// TestDialectBytes holds the exact bytes of one stream and one plain answer of each dialect, as files to be read beside
// the engines' own. A change of them is a change of recorded fixtures.
func TestDialectBytes(t *testing.T) {
	_, addr := start(t, Config{Model: "m", Options: Options{Answer: 2}})
	for _, s := range dialectsSpoken() {
		t.Run(s.name, func(t *testing.T) {
			var got strings.Builder
			for _, body := range []string{s.text, s.tools} {
				if body == "" {
					continue
				}
				for _, stream := range []bool{true, false} {
					raw := s.ask(body, stream, "X-Sim: ttft=1ms; decode=10000; reasoning=1; cached=2")
					_, answer := fetch(t, addr, raw)
					got.WriteString(answer + "\n--\n")
				}
			}
			file := "testdata/dialects/" + strings.ReplaceAll(s.name, " ", "-") + ".txt"
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("%s (-file +got):\n%s", file, d)
			}
		})
	}
}

func TestOllamaLoads(t *testing.T) {
	s, addr := start(t, Config{Model: "m"})
	for _, c := range []struct{ path, body, want string }{
		{"/api/generate", `{"model":"x"}`, `{"model":"x","created_at":"2026-01-01T00:00:00Z","response":"","done":true,"done_reason":"load"}`},
		{"/api/generate", `{"keep_alive":0}`, `{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"","done":true,"done_reason":"unload"}`},
		{"/api/chat", `{"messages":[],"keep_alive":"0s"}`, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"unload"}`},
	} {
		s.Reset()
		if _, got := fetch(t, addr, post(c.path, c.body)); got != c.want {
			t.Errorf("%s %s:\n%s\n%s", c.path, c.body, got, c.want)
		}
		if r := await(t, s, Ended(1)).Requests[0]; r.Usage != (Usage{}) || r.Writes[0].Token {
			t.Errorf("a load has no tokens: %+v", r)
		}
	}
}

// TestCutCall holds that a call cut by the limit still is a value where calls are objects.
func TestCutCall(t *testing.T) {
	_, addr := start(t, Config{})
	body := `{` + chatUser + `,` + chatTools + `,"stream":false,"options":{"num_predict":2}}`
	if _, got := fetch(t, addr, post("/api/chat", body)); !strings.Contains(got, `"name":"get_weather","arguments":{}`) || !strings.Contains(got, `"done_reason":"length"`) {
		t.Error(got)
	}
}

func TestGeminiCandidates(t *testing.T) {
	s, addr := start(t, Config{Options: Options{Answer: 3}})
	body := `{` + gemUser + `,"generationConfig":{"candidateCount":2}}`
	_, got := fetch(t, addr, post("/v1beta/models/m:streamGenerateContent?alt=sse", body))
	texts := map[int]string{}
	for _, e := range events(strings.ReplaceAll(got, "\r", "")) {
		var v struct {
			Candidates []struct {
				Index   int
				Content struct{ Parts []struct{ Text string } }
			}
		}
		if err := json.Unmarshal([]byte(e), &v); err != nil {
			t.Fatal(err)
		}
		texts[v.Candidates[0].Index] += v.Candidates[0].Content.Parts[0].Text
	}
	if len(texts) != 2 || texts[0] == texts[1] || len(strings.Fields(texts[1])) != 3 {
		t.Errorf("%v", texts)
	}
	if u := await(t, s, Ended(1)).Requests[0].Usage; u.Completion != 6 {
		t.Errorf("%+v", u)
	}
}

func TestListings(t *testing.T) {
	_, addr := start(t, Config{Model: "tiny"})
	for path, want := range map[string]string{
		"/v1/models HTTP/1.1": `{"object":"list","data":[{"id":"tiny",`,
		"/v1/models HTTP/1.1\r\nanthropic-version: 2023-06-01": `{"data":[{"type":"model","id":"tiny"`,
		"/v1beta/models HTTP/1.1":                              `{"models":[{"name":"models/tiny"`,
		"/api/tags HTTP/1.1":                                   `{"models":[{"name":"tiny","model":"tiny"`,
	} {
		resp, body := fetch(t, addr, "GET "+path+"\r\nHost: sim\r\n\r\n")
		if resp.StatusCode != 200 || !strings.HasPrefix(body, want) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// embeddings is an answer with vectors, of any of the paths.
type embeddings struct {
	Model string
	Data  []struct {
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	Embeddings [][]float32
	Embedding  []float32
	Count      int `json:"prompt_eval_count"`
}

// vectorsOf asks for vectors and holds that they are no generated tokens.
func vectorsOf(t *testing.T, s *Server, addr, path, body string) (a embeddings) {
	t.Helper()
	s.Reset()
	_, got := fetch(t, addr, post(path, body))
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if r := await(t, s, Ended(1)).Requests[0]; r.Usage.Prompt == 0 || r.Usage.Completion != 0 || r.Writes[0].Token {
		t.Errorf("truth of %s: %+v", path, r)
	}
	return a
}

func TestEmbeddingForms(t *testing.T) {
	s, addr := start(t, Config{Model: "tiny"})
	floats := vectorsOf(t, s, addr, "/v1/embeddings", `{"input":["one two","three"],"dimensions":4}`)
	coded := vectorsOf(t, s, addr, "/v1/embeddings", `{"model":"x","input":"one two","dimensions":4,"encoding_format":"base64"}`)
	if floats.Model != "tiny" || coded.Model != "x" || len(floats.Data) != 2 || floats.Data[1].Index != 1 {
		t.Fatalf("%+v %+v", floats, coded)
	}
	var v []float32
	var text string
	if json.Unmarshal(floats.Data[0].Embedding, &v) != nil || json.Unmarshal(coded.Data[0].Embedding, &text) != nil || len(v) != 4 {
		t.Fatalf("%s %s", floats.Data[0].Embedding, coded.Data[0].Embedding)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 16 {
		t.Fatalf("%q: %v", text, err)
	}
	length := 0.0
	for i, f := range v {
		if math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])) != f {
			t.Errorf("number %d differs between the two forms", i)
		}
		length += float64(f) * float64(f)
	}
	if math.Abs(length-1) > 1e-3 {
		t.Errorf("a vector of length %v", math.Sqrt(length))
	}
	if o := vectorsOf(t, s, addr, "/api/embed", `{"input":["one two","three"],"dimensions":4}`); cmp.Diff(v, o.Embeddings[0]) != "" {
		t.Errorf("Ollama's vector differs from OpenAI's: %v, %v", o.Embeddings[0], v)
	}
}

func TestEmbeddingCounts(t *testing.T) {
	s, addr := start(t, Config{Options: Options{PrefillTPS: 1e6}})
	for body, vectors := range map[string]int{
		`{"input":["one two","three"]}`: 2, `{"input":"one two three"}`: 1, `{"input":[1,2,3]}`: 1, `{"input":[[1,2],[3]]}`: 2,
	} {
		a := vectorsOf(t, s, addr, "/v1/embeddings", body)
		if a.Usage.Prompt != 3 || a.Usage.Total != 3 || len(a.Data) != vectors {
			t.Errorf("%s: %+v", body, a)
		}
		if o := vectorsOf(t, s, addr, "/api/embed", body); o.Count != 3 || len(o.Embeddings) != vectors {
			t.Errorf("%s: %+v", body, o)
		}
	}
	if o := vectorsOf(t, s, addr, "/api/embeddings", `{"prompt":"one two"}`); len(o.Embedding) != defaultDimensions {
		t.Errorf("%+v", o)
	}
}

// TestPings holds what keeps a client of each dialect waiting, and that it is no token.
func TestPings(t *testing.T) {
	s, addr := start(t, Config{Options: Options{Answer: 2}})
	for _, d := range dialectsSpoken() {
		a := d.say(t, s, addr, d.ask(d.text, true, "X-Sim: ping=1ms; ttft=5ms; early_role=1"))
		n := strings.Count(a.body, "ping\n") + strings.Count(a.body, ":\n\n")
		if silent := d.dialect == "ollama" || d.name == "gemini array" || d.name == "sglang"; silent != (n == 0) {
			t.Errorf("%s: %d pings in\n%s", d.name, n, a.body)
		}
		d.mustAgree(t, a)
	}
}
