package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Where the usage of a stream is reported. A plain answer reports it in its body unless UsageNone is set.
const (
	UsageRequest    = "request"    // a last chunk with choices:[] when stream_options.include_usage asks for it
	UsageAlways     = "always"     // that chunk, asked for or not
	UsageFinish     = "finish"     // on the chunk with the finish reason
	UsageContinuous = "continuous" // running usage on every chunk, and the last chunk
	UsageNone       = "none"       // nowhere
)

// How tool calls are streamed.
const (
	ToolsFragments = "fragments" // id and name first, then pieces of the arguments
	ToolsWhole     = "whole"     // each call in one event
	ToolsOff       = "off"       // tools of the request are ignored
	ToolsRefused   = "refused"   // a request with tools is refused: the model has none
)

// What the server does with the connection after an answer.
const (
	KeepAlive     = "keep"  // keeps it open
	KeepAliveNo   = "close" // says Connection: close, and closes it
	KeepAliveLies = "lie"   // closes it without having said so
)

// Options say how a request is answered. The zero value of a field is what its comment calls the default.
type Options struct {
	TTFT       time.Duration // from the slot to the first token, before the prompt is counted; default 0
	PrefillTPS float64       // uncached prompt tokens read per second, added to TTFT; default 0 = at once
	DecodeTPS  float64       // generated tokens a second; default 0 = all at once
	Jitter     float64       // spread of each event after its instant, as a share of the gap, 0 to 1
	Answer     int           // tokens of an answer that ends by itself; default 64
	PerEvent   int           // tokens an event; default 1
	Usage      string        // UsageRequest by default
	Reasoning  int           // tokens of thinking before the answer
	Thinking   string        // field that carries it: reasoning_content (default) or reasoning
	Tools      string        // ToolsFragments by default
	ToolCalls  int           // calls in an answer with tools; default 1
	Cached     int           // prompt tokens reported and timed as cached
	Timings    bool          // report timings as llama.cpp does
	EarlyRole  bool          // role event when the slot starts, not with the first token
	Ping       time.Duration // > 0: an SSE comment this often until the first token
	Seed       uint64        // of the text; the request takes part as well
	Varied     bool          // equal requests get different answers

	Framing       Framing       // chunked for streams and length for plain answers by default
	Proto         string        // HTTP/1.1 by default
	KeepAlive     string        // KeepAlive by default
	Gzip          bool          // answer in Content-Encoding: gzip
	HeadDelay     time.Duration // from the slot to the head
	HeadGap       time.Duration // > 0: the head line by line
	Informational int           // status code of a 1xx sent first
	Trailer       bool          // end a chunked body with the trailer X-Sim-Trailer: end
	Split         int           // > 0: writes of at most this many bytes
	Merge         int           // > 1: this many steps in one write
	Status        int           // answer this status with an error object and nothing else
	Deaf          bool          // go on to the end of the answer when the client has left
	Fault         Fault
}

// Words that options take, the default first.
var (
	usages     = []string{UsageRequest, UsageAlways, UsageFinish, UsageContinuous, UsageNone}
	thinkings  = []string{"reasoning_content", "reasoning"}
	toolForms  = []string{ToolsFragments, ToolsWhole, ToolsOff, ToolsRefused}
	framings   = []Framing{FramingChunked, FramingLength, FramingClose}
	protos     = []string{"HTTP/1.1", "HTTP/1.0"}
	keepAlives = []string{KeepAlive, KeepAliveNo, KeepAliveLies}
)

// list is words for a person to choose from.
func list[T ~string](words []T) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = string(w)
	}
	return strings.Join(parts, ", ")
}

// option is one key of Set.
type option struct {
	key string
	doc string // a phrase for help
	set func(*Options, string) error
}

// optionTable holds every key of Set.
var optionTable = []option{
	{"ttft", "DURATION from the slot to the first token", func(o *Options, v string) error { return setDuration(&o.TTFT, v) }},
	{"prefill", "uncached prompt tokens read per second, on top of ttft", func(o *Options, v string) error { return setRate(&o.PrefillTPS, v) }},
	{"decode", "generated tokens per second", func(o *Options, v string) error { return setRate(&o.DecodeTPS, v) }},
	{"jitter", "spread of each event, 0 to 1 of the gap between two", func(o *Options, v string) error { return setShare(&o.Jitter, v) }},
	{"answer", "tokens of an answer that ends by itself", func(o *Options, v string) error { return setCount(&o.Answer, v) }},
	{"per_event", "tokens in one event", func(o *Options, v string) error { return setCount(&o.PerEvent, v) }},
	{"usage", "where usage is reported: " + list(usages), func(o *Options, v string) error {
		return setWord(&o.Usage, v, usages)
	}},
	{"reasoning", "tokens of thinking before the answer", func(o *Options, v string) error { return setCount(&o.Reasoning, v) }},
	{"thinking", "field of the thinking: " + list(thinkings), func(o *Options, v string) error { return setWord(&o.Thinking, v, thinkings) }},
	{"tools", "how calls are streamed: " + list(toolForms), func(o *Options, v string) error { return setWord(&o.Tools, v, toolForms) }},
	{"tool_calls", "calls in an answer to a request with tools", func(o *Options, v string) error { return setCount(&o.ToolCalls, v) }},
	{"cached", "prompt tokens reported and timed as cached", func(o *Options, v string) error { return setCount(&o.Cached, v) }},
	{"timings", "1: report timings as llama.cpp does", func(o *Options, v string) error { return setBool(&o.Timings, v) }},
	{"early_role", "1: the role event comes when the slot starts", func(o *Options, v string) error { return setBool(&o.EarlyRole, v) }},
	{"ping", "a comment each DURATION until the first token", func(o *Options, v string) error { return setDuration(&o.Ping, v) }},
	{"seed", "number the text follows from, with the request", func(o *Options, v string) error { return setSeed(&o.Seed, v) }},
	{"varied", "1: equal requests get different answers", func(o *Options, v string) error { return setBool(&o.Varied, v) }},
	{"framing", "framing of the body: " + list(framings), func(o *Options, v string) error {
		return setWord(&o.Framing, v, framings)
	}},
	{"proto", "version of the response: " + list(protos), func(o *Options, v string) error { return setWord(&o.Proto, v, protos) }},
	{"keepalive", "connection after an answer: " + list(keepAlives), func(o *Options, v string) error {
		return setWord(&o.KeepAlive, v, keepAlives)
	}},
	{"gzip", "1: answer in gzip", func(o *Options, v string) error { return setBool(&o.Gzip, v) }},
	{"head_delay", "DURATION from the slot to the response head", func(o *Options, v string) error { return setDuration(&o.HeadDelay, v) }},
	{"head_gap", "DURATION between the lines of the head", func(o *Options, v string) error { return setDuration(&o.HeadGap, v) }},
	{"informational", "a 1xx status sent first", func(o *Options, v string) error { return setStatus(&o.Informational, v, 100, 199) }},
	{"trailer", "1: end a chunked body with a trailer", func(o *Options, v string) error { return setBool(&o.Trailer, v) }},
	{"split", "write at most so many bytes at once", func(o *Options, v string) error { return setCount(&o.Split, v) }},
	{"merge", "put so many steps in one write", func(o *Options, v string) error { return setCount(&o.Merge, v) }},
	{"status", "answer with this error status, 400 to 599", func(o *Options, v string) error { return setStatus(&o.Status, v, 400, 599) }},
	{"deaf", "1: go on when the client has left", func(o *Options, v string) error { return setBool(&o.Deaf, v) }},
	{"fault", "NAME or NAME@STEPS: " + list(faultKinds), func(o *Options, v string) (err error) { o.Fault, err = ParseFault(v); return err }},
}

// Keys are the option names that Set knows, in the order of Options.
func Keys() []string {
	keys := make([]string, len(optionTable))
	for i, o := range optionTable {
		keys[i] = o.key
	}
	return keys
}

// Describe gives each option name that Set knows, in the order of Options, with a phrase that says what it does.
func Describe(each func(key, doc string)) {
	for _, o := range optionTable {
		each(o.key, o.doc)
	}
}

// Set applies options written as "key=value; key=value". Durations are Go durations (200ms), rates are tokens a
// second, switches are 1 or 0, faults are "name" or "name@N". Describe has the keys.
//
// The error wraps exchange.ErrUsage and names the part that is wrong; parts before it have been applied.
func (o *Options) Set(text string) error {
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%w: sim option %q: want key=value", exchange.ErrUsage, part)
		}
		i := slices.IndexFunc(optionTable, func(e option) bool { return e.key == strings.TrimSpace(key) })
		if i < 0 {
			return fmt.Errorf("%w: sim option %q: unknown; known are %s", exchange.ErrUsage, key, strings.Join(Keys(), " "))
		}
		if err := optionTable[i].set(o, strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("%w: sim option %q: %w", exchange.ErrUsage, part, err)
		}
	}
	return nil
}

// withDefaults fills the fields whose default is not their zero value.
func (o Options) withDefaults() Options {
	def := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&o.Answer, 64)
	def(&o.PerEvent, 1)
	def(&o.ToolCalls, 1)
	if o.Usage == "" {
		o.Usage = UsageRequest
	}
	if o.Thinking == "" {
		o.Thinking = "reasoning_content"
	}
	if o.Tools == "" {
		o.Tools = ToolsFragments
	}
	if o.Proto == "" {
		o.Proto = "HTTP/1.1"
	}
	if o.KeepAlive == "" {
		o.KeepAlive = KeepAlive
	}
	return o
}

func setDuration(dst *time.Duration, v string) error {
	d, err := time.ParseDuration(v)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is negative", v)
	}
	*dst = d
	return err
}

func setRate(dst *float64, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err == nil && !(f >= 0 && f <= 1e9) {
		err = fmt.Errorf("%s is not a rate", v)
	}
	*dst = f
	return err
}

func setShare(dst *float64, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err == nil && !(f >= 0 && f <= 1) {
		err = fmt.Errorf("%s is not between 0 and 1", v)
	}
	*dst = f
	return err
}

func setCount(dst *int, v string) error {
	n, err := strconv.Atoi(v)
	if err == nil && (n < 0 || n > 1<<24) {
		err = fmt.Errorf("%s is out of range", v)
	}
	*dst = n
	return err
}

func setStatus(dst *int, v string, lo, hi int) error {
	n, err := strconv.Atoi(v)
	if err == nil && (n < lo || n > hi) {
		err = fmt.Errorf("%s is not a status from %d to %d", v, lo, hi)
	}
	*dst = n
	return err
}

func setSeed(dst *uint64, v string) (err error) {
	*dst, err = strconv.ParseUint(v, 10, 64)
	return err
}

func setBool(dst *bool, v string) (err error) {
	*dst, err = strconv.ParseBool(v)
	return err
}

func setWord[T ~string](dst *T, v string, known []T) error {
	if !slices.Contains(known, T(v)) {
		return fmt.Errorf("want one of %v", known)
	}
	*dst = T(v)
	return nil
}
