package wiretest

import (
	"bytes"
	"embed"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata
var files embed.FS

// Vector is one written transcript: a response body and what a reader must find in it.
type Vector struct {
	File        string   `json:"file"`
	Engine      string   `json:"engine"`
	Endpoint    string   `json:"endpoint"` // method and path
	Case        string   `json:"case"`
	Status      int      `json:"status"`
	ContentType string   `json:"content_type"`
	Source      string   `json:"source"`
	Note        string   `json:"note"`
	Assumed     bool     `json:"assumed"` // its shape is not fully confirmed
	Expected    Expected `json:"expected"`

	Body []byte `json:"-"` // after de-chunking
}

// Path is the request path of the endpoint.
func (v Vector) Path() string {
	_, p, _ := strings.Cut(v.Endpoint, " ")
	return p
}

// Name is the name of the vector in test output; shapes that are not confirmed say so.
func (v Vector) Name() string {
	n := strings.TrimSuffix(v.File, ".txt")
	if v.Assumed {
		n += "(assumed)"
	}
	return n
}

// Expected are the values of one vector, as its index defines them. A nil pointer stands for null, and for an optional
// key that is not there.
type Expected struct {
	PromptTokens     *int64  `json:"prompt_tokens"`
	CompletionTokens *int64  `json:"completion_tokens"`
	CachedTokens     *int64  `json:"cached_tokens"`
	ReasoningTokens  *int64  `json:"reasoning_tokens"`
	UsagePresent     bool    `json:"usage_present"`
	FinishReason     *string `json:"finish_reason"`
	FinishNorm       *string `json:"finish_reason_norm"`
	OutputText       string  `json:"output_text"`
	ReasoningText    string  `json:"reasoning_text"`
	ToolCalls        []Tool  `json:"tool_calls"`
	Events           int     `json:"n_events"`
	Comments         int     `json:"n_comments"`
	TokenEvents      int     `json:"n_token_events"`
	FirstToken       *int    `json:"first_token_event_index"`
	FirstAnswer      *int    `json:"first_answer_event_index"`
	LastToken        *int    `json:"last_token_event_index"`
	Terminator       string  `json:"terminator"`
	Complete         bool    `json:"complete"`
	Error            *Error  `json:"error"`

	Choices        []Choice           `json:"choices"`
	RefusalText    string             `json:"refusal_text"`
	LogprobEntries int                `json:"logprob_entries"`
	TokenIDs       int                `json:"token_ids_total"`
	UsageEvents    *int               `json:"usage_events"`
	UsagePartial   bool               `json:"usage_partial"`
	CacheCreation  *int64             `json:"cache_creation_tokens"`
	TruncatedTail  bool               `json:"truncated_tail"`
	Timings        map[string]float64 `json:"engine_timings"` // milliseconds and counts
	Device         string             `json:"device"`
	ProgressEvents int                `json:"progress_events"`
	QueueEvents    int                `json:"queue_events"`
	EchoPrefix     string             `json:"echo_prefix"`
	CumulativeText bool               `json:"cumulative_text"`
	Vectors        int                `json:"n_vectors"`
	VectorDims     int                `json:"vector_dims"`
	Suspect        string             `json:"suspect"`
	Derived        *json.RawMessage   `json:"derived"` // what a later reader of inline tags may find
}

// Tool is one tool call.
type Tool struct {
	Index     int     `json:"index"`
	ID        *string `json:"id"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
}

// Choice is one answer of several.
type Choice struct {
	Index        int     `json:"index"`
	OutputText   string  `json:"output_text"`
	FinishReason *string `json:"finish_reason"`
}

// Error is an error inside an answer. Code is a number or a text.
type Error struct {
	Message string  `json:"message"`
	Type    *string `json:"type"`
	Code    any     `json:"code"`
	Where   string  `json:"where"`
}

// Probe is the body of an answer that is no completion: metrics, model lists, health.
type Probe struct {
	File        string         `json:"file"`
	Engine      string         `json:"engine"`
	Request     string         `json:"request"`
	Status      int            `json:"status"`
	ContentType string         `json:"content_type"`
	Facts       map[string]any `json:"facts"`
	Note        string         `json:"note"`
	Assumed     bool           `json:"assumed"`

	Body []byte `json:"-"`
}

// index is the index file of the vectors.
type index struct {
	Semantics map[string]string `json:"semantics"`
	Files     []Vector          `json:"files"`
	Aux       []Probe           `json:"aux"`
}

// Vectors are all written transcripts, in the order of their index.
func Vectors(tb testing.TB) []Vector {
	tb.Helper()
	return loadIndex(tb).Files
}

// Probes are all written answers of probes.
func Probes(tb testing.TB) []Probe {
	tb.Helper()
	return loadIndex(tb).Aux
}

const vectorDir = "testdata/wire"

func loadIndex(tb testing.TB) index {
	tb.Helper()
	ix, err := decodeIndex(read(tb, vectorDir, "index.json"))
	if err != nil {
		tb.Fatalf("read index of vectors: %v", err)
	}
	var listed []string
	for i := range ix.Files {
		ix.Files[i].Body = read(tb, vectorDir, ix.Files[i].File)
		listed = append(listed, ix.Files[i].File)
	}
	for i := range ix.Aux {
		ix.Aux[i].Body = read(tb, vectorDir, ix.Aux[i].File)
		listed = append(listed, ix.Aux[i].File)
	}
	if len(ix.Files) == 0 || len(ix.Aux) == 0 {
		tb.Fatal("the index of vectors is empty: nothing would be tested")
	}
	for _, name := range list(tb, vectorDir) {
		if name != "index.json" && !slices.Contains(listed, name) {
			tb.Fatalf("vector %s is not in the index", name)
		}
	}
	return ix
}

// decodeIndex refuses keys that it does not know: a value nobody looks at would be a test that does not test.
func decodeIndex(b []byte) (ix index, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err = d.Decode(&ix)
	return ix, err
}

func read(tb testing.TB, dir, name string) []byte {
	tb.Helper()
	b, err := files.ReadFile(path.Join(dir, name))
	if err != nil {
		tb.Fatalf("read vector: %v", err)
	}
	return b
}

func list(tb testing.TB, dir string) []string {
	tb.Helper()
	entries, err := files.ReadDir(dir)
	if err != nil {
		tb.Fatalf("list vectors: %v", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
