package engines

import "encoding/json"

// ProfileVersion is the schema version of profile files.
const ProfileVersion = 1

// Unknown is the engine id of a server that was asked and could not be recognized.
const Unknown = "unknown"

// Profile is what is known of one engine.
type Profile struct {
	Schema  int      `json:"schema"`
	ID      string   `json:"id"`                // lower case letters and digits; the name in records
	Name    string   `json:"name"`              // for people
	Aliases []string `json:"aliases,omitempty"` // other ids that users may write
	Kind    string   `json:"kind"`              // server, front (passes requests on to an engine), hosted (a vendor's API)

	Recognize Recognize     `json:"recognize"`
	Ready     *Ready        `json:"ready,omitempty"`    // nil: no document says it
	Metadata  []Read        `json:"metadata,omitempty"` // in order of preference; the first value of a field counts
	Avoid     []string      `json:"avoid,omitempty"`    // paths that make it work when they are asked
	Speaks    []string      `json:"speaks,omitempty"`   // dialects of its endpoints, the one to use first; none where that is not known
	Requests  Requests      `json:"requests"`
	Counters  *CounterNames `json:"counters,omitempty"` // of drafts; nil where no document counts them
	Devices   []Visible     `json:"devices,omitempty"`  // environment variables that choose devices
	Load      *Call         `json:"load,omitempty"`     // loads a model; nil: it is loaded at the start, or by the first request
	Unload    *Call         `json:"unload,omitempty"`   // frees the model's memory
	Daemon    *Daemon       `json:"daemon,omitempty"`   // nil: it notes nowhere where it listens
	Launch    *Launch       `json:"launch,omitempty"`   // nil: it is not launched by us
	Notes     []string      `json:"notes,omitempty"`    // what a reader of its numbers should know
}

// Kinds of profile.
const (
	KindServer = "server"
	KindFront  = "front"
	KindHosted = "hosted"
)

// Recognize says what proves an engine.
type Recognize struct {
	Hosts     []string   `json:"hosts,omitempty"`      // host names of a hosted API, exact or below
	Namespace []string   `json:"namespaces,omitempty"` // of its own metrics
	Rank      int        `json:"rank,omitempty"`       // among profiles whose namespaces a scrape shows together; the lowest wins
	Version   *Document  `json:"version,omitempty"`    // a version document; it proves the engine with a name of it in the listing of models
	Declared  []Declared `json:"declared,omitempty"`   // names it gives itself
	Headers   []string   `json:"headers,omitempty"`    // response headers that only it sends
	Shapes    []Shape    `json:"shapes,omitempty"`     // documents that only it serves
	Native    []Document `json:"native,omitempty"`     // all of them must match; asked only of servers that list models
	Behind    []string   `json:"behind,omitempty"`     // what fronts call it in owned_by
	Prefixes  []string   `json:"prefixes,omitempty"`   // what fronts put before the ids of its models
}

// Where a server can give its name.
const (
	InOwnedBy   = "owned_by"   // /v1/models, the first entry
	InServer    = "server"     // the Server header, before the slash
	InService   = "service"    // /health
	InSoftware  = "software"   // /.well-known/serviceinfo, software.name
	InBuildInfo = "build_info" // /props
)

// Declared is a name, compared without case with the leading word of what a server says.
type Declared struct {
	In   string `json:"in"`
	Name string `json:"name"`
}

// Document is a GET whose answer is recognized: all that is set must hold.
type Document struct {
	Path  string `json:"path"`
	Text  string `json:"text,omitempty"`  // the whole text, without surrounding blanks and quotes
	Key   string `json:"key,omitempty"`   // dotted path of a value that is there and not null
	Value string `json:"value,omitempty"` // what the value at Key must be
	Only  bool   `json:"only,omitempty"`  // the value at Key is a text, and all that the document holds
	Array bool   `json:"array,omitempty"` // it is a JSON array of strings
}

// Shape is a set of documents that only one engine gives; one of AnyOf must hold in the document at one of Paths.
type Shape struct {
	Paths []string `json:"paths"`
	AnyOf [][]Want `json:"any_of"`
}

// Want is one value of a shape.
type Want struct {
	Key  string `json:"key"` // dotted path
	Type string `json:"type"`
}

// Types of a wanted value.
const (
	WantPresent = "present"  // the key is there, null too
	WantInteger = "integer"  // a whole number
	WantCount   = "count"    // a whole number above 0
	WantObject  = "object"   // a JSON object
	WantBuild   = "build_id" // a build of llama.cpp: b and digits, perhaps with a commit
)

// Ready says how to tell that an engine can answer requests.
type Ready struct {
	Path    string `json:"path"`
	Key     string `json:"key,omitempty"`     // dotted path of a value that must be true besides a status 200
	Loading []int  `json:"loading,omitempty"` // statuses that mean: not yet
	Note    string `json:"note,omitempty"`
}

// Read says where one field of a deployment stands.
type Read struct {
	Field  string          `json:"field"`            // JSON name of the Deployment's field, or version
	Path   string          `json:"path,omitempty"`   // of the document
	Header string          `json:"header,omitempty"` // take this header of the document's answer instead
	At     string          `json:"at,omitempty"`     // dotted path of the value
	Entry  *Entry          `json:"entry,omitempty"`  // At is below the entry of the served model
	As     string          `json:"as,omitempty"`     // how the value is read; "" = as it stands
	Value  string          `json:"value,omitempty"`  // what As counter_method comes to
	Inner  string          `json:"inner,omitempty"`  // it is only true while this engine is the one behind a front
	Body   json.RawMessage `json:"body,omitempty"`   // POST this; the string "$model" in it is the served model
	Unless *Unless         `json:"unless,omitempty"` // the document says nothing when this holds
}

// Entry finds the entry of the served model in a list.
type Entry struct {
	List  string `json:"list"`            // dotted path of the array
	ID    string `json:"id"`              // key of the id in an entry
	State string `json:"state,omitempty"` // "key=value" that marks an entry as loaded
	Only  bool   `json:"only,omitempty"`  // a single entry is taken only when its id matches
}

// Unless names a value that makes a document useless.
type Unless struct {
	Key      string `json:"key"`
	Contains string `json:"contains"` // without case
}

// Requests say how an engine spells the options of a request. Objects are merged into the body.
type Requests struct {
	Limit    []string        `json:"limit,omitempty"`     // fields that bound the output, the one to use first
	Usage    string          `json:"usage,omitempty"`     // how a stream comes to report usage; "" = not known
	Thinking *Switch         `json:"thinking,omitempty"`  // reasoning on and off
	Drafts   *Switch         `json:"drafts,omitempty"`    // speculative decoding on and off
	Logprobs json.RawMessage `json:"logprobs,omitempty"`  // asks for the log-probabilities of the sampled tokens
	Top      string          `json:"top,omitempty"`       // field with the number of alternatives
	TokenIDs json.RawMessage `json:"token_ids,omitempty"` // asks for token ids
	NoCache  json.RawMessage `json:"no_cache,omitempty"`  // computes the whole prompt
	Timings  json.RawMessage `json:"timings,omitempty"`   // asks for the engine's own timings
	Bare     json.RawMessage `json:"bare,omitempty"`      // of chat: keeps it from adding tools of its own to the prompt

	// Of chat alone; a dot leads into an object.
	ThinkingAlso []Switch `json:"thinking_also,omitempty"` // other spellings of Thinking that it takes
	Effort       []string `json:"effort,omitempty"`        // fields that say in a word how much to think, the one to use first
	Budget       []string `json:"budget,omitempty"`        // fields that bound the tokens of thinking, the one to use first
	Repetition   string   `json:"repetition,omitempty"`    // field for the penalty of repetitions, or RepetitionNone; "" = not known
}

// RepetitionNone says that an engine takes no penalty of repetitions in chat.
const RepetitionNone = "none"

// How a stream comes to report usage.
const (
	UsageRequested = "requested" // with stream_options.include_usage
	UsageAlways    = "always"
)

// Switch holds the objects that turn something on and off; null where there is no spelling.
type Switch struct {
	On  json.RawMessage `json:"on"`
	Off json.RawMessage `json:"off"`
}

// Visible is an environment variable that limits the devices of a backend.
type Visible struct {
	Backend  string `json:"backend"` // cuda, vulkan, rocm ...
	Variable string `json:"variable"`
}

// Call is a request that controls an engine. "$model" in path and body is the served model.
type Call struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
}
