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

// option is one key of Set.
type option struct {
	key string
	set func(*Options, string) error
}

// optionTable holds every key of Set.
var optionTable = []option{
	{"ttft", func(o *Options, v string) error { return setDuration(&o.TTFT, v) }},
	{"prefill", func(o *Options, v string) error { return setRate(&o.PrefillTPS, v) }},
	{"decode", func(o *Options, v string) error { return setRate(&o.DecodeTPS, v) }},
	{"jitter", func(o *Options, v string) error { return setShare(&o.Jitter, v) }},
	{"answer", func(o *Options, v string) error { return setCount(&o.Answer, v) }},
	{"per_event", func(o *Options, v string) error { return setCount(&o.PerEvent, v) }},
	{"usage", func(o *Options, v string) error {
		return setWord(&o.Usage, v, UsageRequest, UsageAlways, UsageFinish, UsageContinuous, UsageNone)
	}},
	{"reasoning", func(o *Options, v string) error { return setCount(&o.Reasoning, v) }},
	{"thinking", func(o *Options, v string) error { return setWord(&o.Thinking, v, "reasoning_content", "reasoning") }},
	{"tools", func(o *Options, v string) error { return setWord(&o.Tools, v, ToolsFragments, ToolsWhole, ToolsOff) }},
	{"tool_calls", func(o *Options, v string) error { return setCount(&o.ToolCalls, v) }},
	{"cached", func(o *Options, v string) error { return setCount(&o.Cached, v) }},
	{"timings", func(o *Options, v string) error { return setBool(&o.Timings, v) }},
	{"early_role", func(o *Options, v string) error { return setBool(&o.EarlyRole, v) }},
	{"ping", func(o *Options, v string) error { return setDuration(&o.Ping, v) }},
	{"seed", func(o *Options, v string) error { return setSeed(&o.Seed, v) }},
	{"varied", func(o *Options, v string) error { return setBool(&o.Varied, v) }},
	{"framing", func(o *Options, v string) error {
		return setWord(&o.Framing, v, FramingChunked, FramingLength, FramingClose)
	}},
	{"proto", func(o *Options, v string) error { return setWord(&o.Proto, v, "HTTP/1.1", "HTTP/1.0") }},
	{"keepalive", func(o *Options, v string) error {
		return setWord(&o.KeepAlive, v, KeepAlive, KeepAliveNo, KeepAliveLies)
	}},
	{"gzip", func(o *Options, v string) error { return setBool(&o.Gzip, v) }},
	{"head_delay", func(o *Options, v string) error { return setDuration(&o.HeadDelay, v) }},
	{"head_gap", func(o *Options, v string) error { return setDuration(&o.HeadGap, v) }},
	{"informational", func(o *Options, v string) error { return setStatus(&o.Informational, v, 100, 199) }},
	{"trailer", func(o *Options, v string) error { return setBool(&o.Trailer, v) }},
	{"split", func(o *Options, v string) error { return setCount(&o.Split, v) }},
	{"merge", func(o *Options, v string) error { return setCount(&o.Merge, v) }},
	{"status", func(o *Options, v string) error { return setStatus(&o.Status, v, 400, 599) }},
	{"deaf", func(o *Options, v string) error { return setBool(&o.Deaf, v) }},
	{"fault", func(o *Options, v string) (err error) { o.Fault, err = ParseFault(v); return err }},
}

// Keys are the option names that Set knows, in the order of Options.
func Keys() []string {
	keys := make([]string, len(optionTable))
	for i, o := range optionTable {
		keys[i] = o.key
	}
	return keys
}

// Set applies options written as "key=value; key=value". Durations are Go durations (200ms), rates are tokens a
// second, switches are 1 or 0, faults are "name" or "name@N". The keys are:
//
//	ttft prefill decode jitter answer per_event usage reasoning thinking tools tool_calls cached timings early_role
//	ping seed varied framing proto keepalive gzip head_delay head_gap informational trailer split merge status deaf fault
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
			return fmt.Errorf("sim option %q: want key=value: %w", part, exchange.ErrUsage)
		}
		i := slices.IndexFunc(optionTable, func(e option) bool { return e.key == strings.TrimSpace(key) })
		if i < 0 {
			return fmt.Errorf("sim option %q: unknown; known are %s: %w", key, strings.Join(Keys(), " "), exchange.ErrUsage)
		}
		if err := optionTable[i].set(o, strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("sim option %q: %w: %w", part, err, exchange.ErrUsage)
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

func setWord[T ~string](dst *T, v string, known ...T) error {
	if !slices.Contains(known, T(v)) {
		return fmt.Errorf("want one of %v", known)
	}
	*dst = T(v)
	return nil
}
