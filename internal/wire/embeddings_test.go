package wire

import (
	"strings"
	"testing"
)

// TestEmbeddings holds the shapes of the endpoints that return vectors. The answer is whole when its JSON is.
func TestEmbeddings(t *testing.T) {
	for _, tc := range []struct {
		name, path, body string
		vectors, dims    int
		prompt           int64
		end              bool
		dialect          Dialect
	}{
		{"list", "/v1/embeddings", `{"object":"list","data":[{"embedding":[1,2,3]},{"embedding":[4,5,6]}],"model":"m","usage":{"prompt_tokens":9,"total_tokens":9}}`, 2, 3, 9, true, DialectEmbeddings},
		{"base64", "/v1/embeddings", `{"data":[{"embedding":"AACAPwAAAEA="}],"usage":{"prompt_tokens":9}}`, 1, 2, 9, true, DialectEmbeddings},
		{"Ollama", "/api/embed", `{"model":"m","embeddings":[[1,2],[3,4]],"total_duration":14143917,"prompt_eval_count":8}`, 2, 2, 8, true, DialectEmbeddings},
		{"Ollama, older", "/api/embeddings", `{"embedding":[1,2]}`, 1, 2, -1, true, DialectEmbeddings},
		{"llama.cpp", "/embedding", `[{"index":0,"embedding":[[1,2,3]]},{"index":1,"embedding":[[1,2,3],[4,5,6]]}]`, 3, 3, -1, true, DialectEmbeddings},
		{"Gemini", "/v1beta/models/e:embedContent", `{"embedding":{"values":[1,2]}}`, 1, 2, -1, true, DialectEmbeddings},
		{"Gemini, several", "/v1beta/models/e:batchEmbedContents", `{"embeddings":[{"values":[1,2]},{"values":[3,4]}]}`, 2, 2, -1, true, DialectEmbeddings},
		{"none asked for", "/v1/embeddings", `{"data":[],"usage":{"prompt_tokens":0}}`, 0, 0, 0, true, DialectEmbeddings},
		{"cut", "/v1/embeddings", `{"data":[{"embedding":[1,2,`, 0, 0, -1, false, DialectEmbeddings},
		{"array that was cut", "/embedding", `[{"index":0,"embedding":[[1,2,3]]},{"ind`, 1, 3, -1, false, DialectEmbeddings},
		{"error inside a 200", "/v1/embeddings", `{"error":{"message":"m"}}`, 0, 0, -1, false, DialectEmbeddings},
		{"junk", "/v1/embeddings", `{"data":[7,null,{"embedding":7},{"embedding":[]},{"embedding":{"embedding":{}}}]}`, 1, 0, -1, true, DialectEmbeddings},
		{"somebody else's", "/embeddings", `{"status":"ok"}`, 0, 0, -1, false, DialectNone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := sayAt(Info{Path: tc.path, ContentType: "application/json"}, tc.body)
			if tr.Vectors != tc.vectors || tr.VectorDims != tc.dims || tr.DialectEnd != tc.end || tr.TokenEvents() != 0 || tr.Dialect != tc.dialect {
				t.Errorf("%d vectors of %d, end %v, %d token events, dialect %q", tr.Vectors, tr.VectorDims, tr.DialectEnd, tr.TokenEvents(), tr.Dialect)
			}
			got := int64(-1)
			if tr.Usage != nil && tr.Usage.Prompt != nil {
				got = *tr.Usage.Prompt
			}
			if got != tc.prompt || (tr.Error != nil) != strings.Contains(tc.name, "error") {
				t.Errorf("prompt %d, want %d; error %v", got, tc.prompt, tr.Error)
			}
		})
	}
}

// TestRequestFactsOfOtherDialects holds where the other dialects say what is asked for.
func TestRequestFactsOfOtherDialects(t *testing.T) {
	for _, tc := range []struct {
		path, body, model string
		stream            bool
		limit, n          int64
	}{
		{"/v1/responses", `{"model":"m","stream":true,"max_output_tokens":7}`, "m", true, 7, 1},
		{"/v1/messages", `{"model":"m","max_tokens":7}`, "m", false, 7, 1},
		{"/v1/p/publishers/anthropic/models/claude:streamRawPredict", `{"stream":true,"max_tokens":7}`, "claude", true, 7, 1},
		{geminiPath + "?alt=sse", `{"generationConfig":{"maxOutputTokens":7,"candidateCount":2}}`, "gemini-3", true, 7, 2},
		{"/v1beta/tunedModels/my%20model%3AgenerateContent", `{"generation_config":{"max_output_tokens":7}}`, "my model", false, 7, 1},
		{"/v1internal:streamGenerateContent", `{"model":"m","request":{"generationConfig":{"maxOutputTokens":7}}}`, "m", true, 7, 1},
		{geminiPath, `{"generationConfig":[]}`, "gemini-3", true, -1, 1},
		{geminiPath, `not JSON`, "gemini-3", true, -1, 1},
		{"/v1/embeddings", `{"model":"m","input":"x"}`, "m", false, -1, 1},
	} {
		f := ReadRequest(tc.path, nil, []byte(tc.body))
		limit := int64(-1)
		if f.MaxTokens != nil {
			limit = *f.MaxTokens
		}
		if f.Model != tc.model || f.Stream != tc.stream || limit != tc.limit || f.N != tc.n {
			t.Errorf("%s %s: %+v, limit %d", tc.path, tc.body, f, limit)
		}
	}
}
