package wire

import "encoding/json"

// Version of the rules that make a Transcript. It changes when the same bytes can give another one, and is part of
// everything derived.
const Version = 3

// Dialect is the language of an endpoint.
type Dialect string

const (
	DialectNone        Dialect = ""            // no dialect is known for the path: bytes and reads are the record
	DialectChat        Dialect = "chat"        // /v1/chat/completions
	DialectCompletions Dialect = "completions" // /v1/completions
	DialectOllama      Dialect = "ollama"      // /api/chat and /api/generate of Ollama
	DialectLlamaCpp    Dialect = "llamacpp"    // /completion of llama.cpp
	DialectSGLang      Dialect = "sglang"      // /generate of SGLang
	DialectTensorSharp Dialect = "tensorsharp" // /api/chat of TensorSharp's web page
	DialectLMStudio    Dialect = "lmstudio"    // /api/v1/chat of LM Studio
	DialectResponses   Dialect = "responses"   // /v1/responses of OpenAI
	DialectAnthropic   Dialect = "anthropic"   // /v1/messages
	DialectGemini      Dialect = "gemini"      // models/{model}:streamGenerateContent and :generateContent
	DialectEmbeddings  Dialect = "embeddings"  // /v1/embeddings and what other engines have in its place
)

// Framing is how events are laid out in a body.
type Framing string

const (
	FramingNone      Framing = ""           // nothing came
	FramingSSE       Framing = "sse"        // server-sent events
	FramingNDJSON    Framing = "ndjson"     // one JSON value a line
	FramingJSONArray Framing = "json_array" // one JSON array streamed element by element
	FramingJSON      Framing = "json"       // one JSON value
	FramingOpaque    Framing = "opaque"     // anything else
)

// Kind is a set of the kinds of generated content that an event adds, in any choice.
type Kind uint8

const (
	KindText Kind = 1 << iota
	KindReasoning
	KindRefusal
	KindTool  // tool call id, name or argument text
	KindMedia // sound or pictures; they stand in no text of the Transcript
)

// KindAnswer are the kinds that are the answer itself, not thinking about it.
const KindAnswer = KindText | KindRefusal | KindTool | KindMedia

// Phase is what an event says the engine was at before its first token.
type Phase uint8

// The phases that engines show.
const (
	PhaseNone   Phase = iota
	PhaseQueue        // waiting for a place (TensorSharp)
	PhaseLoad         // loading the model (LM Studio)
	PhasePrompt       // reading the prompt (llama.cpp, LM Studio)
)

// Progress is what one event says of how far the prompt is read. What an engine does not tell is nil.
type Progress struct {
	Event    int      // index in Events
	Tokens   *int64   // prompt tokens read so far, cached ones included
	Total    *int64   // tokens of the prompt
	Cached   *int64   // of them from a cache
	Share    *float64 // the part that is read, 0 to 1, of an engine that tells no counts
	EngineMS *float64 // time spent so far, by the engine's own clock
}

// Event is one event of the body. Whether it is a token event is Kinds != 0.
type Event struct {
	Read    int   // index in Timeline.Reads of the read that completed its dispatching line
	Start   int64 // first byte of the event in the decoded body
	End     int64 // one past its last byte; an SSE event ends with the first LF or CR of its blank line
	Kinds   Kind  // generated content it adds; 0 = none
	Phase   Phase // what the engine was at, where the event says so
	Done    bool  // the [DONE] marker
	Tokens  int   // tokens it brought, counted by token ids or log-probability entries; -1 when the wire does not say
	Running int64 // completion tokens of the running usage it carries; -1 when it carries none
}

// Usage is the last non-null usage of the answer, normalized: prompt includes cached, completion includes reasoning.
// A nil count was not reported; a reported 0 is 0.
type Usage struct {
	Prompt        *int64
	Completion    *int64
	Cached        *int64 // prompt tokens that came from a cache
	CacheCreation *int64 // prompt tokens written to a cache
	Reasoning     *int64
	Events        int  // events that carried a non-null usage
	Partial       bool // a running count whose final one never came
	Opening       bool // the completion was told before the answer began: it holds a place and counts nothing
	PerChoice     bool // each choice sent its own usage: the counts are those of one choice, not of the answer
}

// Timings are the engine's own numbers, on the engine's own clock. They are never mixed with ours.
type Timings struct {
	Source        string   // where they were found: timings, usage, telemetry, metrics ...
	QueueMS       *float64 // waiting before the work began
	LoadMS        *float64 // loading the model
	PrefillMS     *float64 // reading the uncached part of the prompt
	PrefillN      *int64   // uncached prompt tokens it covers; see PrefillCounts
	CachedN       *int64   // prompt tokens that came from the cache
	DecodeMS      *float64
	DecodeN       *int64
	TotalMS       *float64
	TTFTMS        *float64
	PrefillTPS    *float64 // as the engine states it
	DecodeTPS     *float64 // as the engine states it
	DraftN        *int64   // drafted tokens
	DraftAccepted *int64   // of them accepted
	DraftSteps    *int64   // verification steps
	DraftSource   string   // what carried the draft counts: response, or timings
	Device        string   // cpu, cuda ...: placement as the engine states it

	// PrefillCounts says that PrefillN counts cached tokens too, while PrefillMS covers the others only (Ollama): their
	// quotient is no rate.
	PrefillCounts bool
}

// ToolCall is one tool call of a choice, its fragments joined.
type ToolCall struct {
	Index     int
	ID        string
	Type      string
	Name      string
	Arguments string // joined as sent; an object argument as compact JSON
}

// Choice is one answer of the response.
type Choice struct {
	Index        int
	Text         string
	Reasoning    string
	Refusal      string
	ToolCalls    []ToolCall
	FinishReason *string // raw, as sent
}

// Error is an error the engine sent inside its answer.
type Error struct {
	Message string
	Type    string
	Code    string // as text: engines send numbers and strings
	Where   string // event (in the stream), embedded (inside a normal chunk), body (2xx JSON body), http_status (body of a non-2xx)
}

// Transcript is what an answer said, free of its framing.
type Transcript struct {
	Version int
	Dialect Dialect
	Framing Framing

	Events      []Event
	Comments    int // SSE comment lines
	ParseErrors int // events that were dispatched but are not JSON
	Oversized   int // events too large to be read beyond their being JSON

	ID      string // id of the response, as sent
	Model   string // model the response names
	Choices []Choice
	Usage   *Usage                     // nil when none was reported
	Timings *Timings                   // nil when the engine sent none
	Extras  map[string]json.RawMessage // top-level keys outside the dialect, last non-null value of each, verbatim

	Fingerprint   string // system_fingerprint: the engine's word for its build and settings
	ExtrasOmitted int    // values that were left out of Extras for their number or size

	FinishReason     *string // raw, of choice 0
	FinishNorm       string  // stop, length, tool_calls, content_filter, error; "" when none
	Terminator       string  // what ended the body: [DONE], done:true, json, eof ...
	DialectEnd       bool    // the dialect's own end (finish reason or terminal event) was seen
	Error            *Error  // first error seen anywhere; it wins over any later end
	LogprobEntries   int     // log-probability entries of generated tokens
	TokenIDs         int     // generated token ids
	ProgressEvents   int     // events that told how far the prompt is read
	QueueEvents      int     // events that told a place in the engine's queue
	AfterDone        int     // events after [DONE]: their usage, finish reason and error count, their content does not
	Vectors          int     // embeddings in the answer
	VectorDims       int     // numbers in each of them: the most, where they differ; 0 when that cannot be told
	TruncatedTail    bool    // the body ended inside an event
	UnterminatedLast bool    // the last block lacked its end but was whole JSON, and gave its usage, finish reason and error
	Coding           string  // content coding that was undone to read the body; "" for none
	CodingError      string  // why decoding stopped early; "" when it did not
	Undecoded        bool    // it stopped at a limit of ours, or at a coding we do not know: the body may be in order

	Progress []Progress // how far the prompt was read, event by event
	// EngineClock are the moments the engine itself wrote on its events (Ollama's created_at), in ns since 1970 by the
	// engine's clock, one for each event and 0 for an event without; nil when no event has one. It is not our clock: only
	// differences within it mean anything.
	EngineClock []int64
	// Suspect is a sign that the answer hides an error the wire does not call one; "" when there is none.
	Suspect Suspect
}

// Suspect is a sign of an error that is not called one.
type Suspect string

// The signs.
const (
	SuspectErrorAsContent Suspect = "error_as_content" // the generated text is an error message (TensorSharp)
	SuspectSwallowed      Suspect = "swallowed_error"  // an empty chunk that names no model ends the stream (Ollama under /v1)
	SuspectNoAPI          Suspect = "no_api_answer"    // a 2xx answer that is no JSON and no stream of it, such as a web page
)

// TokenEvents is the number of events that add generated content.
func (t *Transcript) TokenEvents() int {
	n := 0
	for i := range t.Events {
		if t.Events[i].Kinds != 0 {
			n++
		}
	}
	return n
}

// Choice0 is the first choice by index, or an empty one.
func (t *Transcript) Choice0() Choice {
	for _, c := range t.Choices {
		if c.Index == 0 {
			return c
		}
	}
	return Choice{}
}

// RequestFacts are the fields of a request body that change how its answer is read or measured.
type RequestFacts struct {
	JSON         bool   // the body is a JSON object
	Model        string // "" when not named
	Stream       bool   // asked for; only a wish
	MaxTokens    *int64 // output limit by whichever name the dialect gives it
	N            int64  // choices asked for, 1 when not said
	Prompts      int64  // prompts of a request with a list of them, 0 for one that is not a list
	IncludeUsage bool   // stream_options.include_usage
	Echo         bool   // the answer repeats the prompt
}
