package bridge

import "encoding/json"

// Request is what a generating request asks for, in no dialect. Paths are those of the request it was read from.
type Request struct {
	Model    string
	Stream   bool
	Usage    bool // a stream is to report its usage
	Messages []Message
	Tools    []Tool
	Choice   Choice
	Serial   Value // one call at a time was asked for; its value is that of the recorded field
	Format   Format
	Limit    Value // of output tokens, above 0
	Sampling map[Option]Value
	Stop     Stop
	Thinking Thinking
}

// Value is the JSON text of a field and where it stood. Without Raw there was none.
type Value struct {
	Raw  json.RawMessage
	Path string
}

// Role is who says a message.
type Role string

// The roles. Results of tool calls are said by RoleTool, several in a row in one message.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation.
type Message struct {
	Role  Role
	Parts []Part
	Path  string
}

// PartKind says which field of a Part is set.
type PartKind int

// The kinds of parts.
const (
	PartText     PartKind = iota // Text
	PartImage                    // Media
	PartThinking                 // Text, and Signature where the engine gave one
	PartCall                     // Call
	PartResult                   // Result
)

// Part is a piece of a message.
type Part struct {
	Kind      PartKind
	Text      string
	Signature string // of thinking, or of a call: the engine's own, of no use to another
	Media     Media
	Call      Call
	Result    Result
	Path      string
}

// Media is an image: its data in base64 with its type, or its address.
type Media struct {
	Type string // image/png ...; "" for an address
	Data string
	URL  string
}

// Call is a call of a tool.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // an object, compact
}

// Result is what a call came to.
type Result struct {
	ID    string // of the call
	Name  string // of the tool; "" when no call has that id
	Parts []Part // text and images
	Error bool   // the tool failed
}

// Tool is a function that may be called.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema, compact; nil for none
	Strict      bool            // arguments are held to the schema
	Path        string
}

// ChoiceMode is which tools the model may call.
type ChoiceMode string

// The modes; "" leaves it to the engine.
const (
	ChoiceAuto     ChoiceMode = "auto"
	ChoiceNone     ChoiceMode = "none"
	ChoiceRequired ChoiceMode = "required"
	ChoiceNamed    ChoiceMode = "named"
)

// Choice is which tool the model may call.
type Choice struct {
	Mode ChoiceMode
	Name string // of ChoiceNamed
	Path string
}

// Format is the form of the output.
type Format struct {
	JSON   bool            // it is to be JSON
	Schema json.RawMessage // by this schema, compact; nil for any
	Name   string          // of the schema
	Strict bool            // output is held to the schema
	Path   string
}

// defaultFormatName is the name of a schema in dialects that give it one, when it has none.
const defaultFormatName = "answer"

// Stop are the texts that end an answer.
type Stop struct {
	Texts []string
	Path  string
}

// Thinking is whether to think before the answer, and how much.
type Thinking struct {
	Mode   Switch
	Effort string // low, medium, high ...; "" when not said
	Budget Value  // in tokens
	Path   string
}

// Switch is on, off or left to the engine.
type Switch string

// The positions of a switch; "" leaves it to the engine.
const (
	On  Switch = "on"
	Off Switch = "off"
)

// Option is a sampling option, by its name in chat.
type Option string

// The sampling options that more than one dialect has.
const (
	OptionTemperature Option = "temperature"
	OptionTopP        Option = "top_p"
	OptionTopK        Option = "top_k"
	OptionMinP        Option = "min_p"
	OptionSeed        Option = "seed"
	OptionFrequency   Option = "frequency_penalty"
	OptionPresence    Option = "presence_penalty"
	OptionRepetition  Option = "repetition_penalty"
	OptionN           Option = "n"
	OptionLogprobs    Option = "logprobs" // true
	OptionTopLogprobs Option = "top_logprobs"
)

// options are all options in the order in which they are written.
var options = [...]Option{
	OptionTemperature, OptionTopP, OptionTopK, OptionMinP, OptionSeed, OptionFrequency, OptionPresence, OptionRepetition,
	OptionN, OptionLogprobs, OptionTopLogprobs,
}

// idle are the values of options that ask for nothing.
var idle = map[Option][]string{
	OptionFrequency: {"0", "0.0"}, OptionPresence: {"0", "0.0"}, OptionRepetition: {"1", "1.0"}, OptionMinP: {"0", "0.0"},
	OptionN: {"1"}, OptionLogprobs: {"false"}, OptionTopLogprobs: {"0"},
}
