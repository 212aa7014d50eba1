package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TraceOptions say how requests are made of a trace, which has lengths and arrivals but no texts.
type TraceOptions struct {
	Unit        string // of the instants where the format leaves it open: ms or s
	Model       string // of the requests; "" leaves the field out
	Target      string // where they go; "" = /v1/chat/completions
	BlockSize   int    // tokens of a prefix block; 0 = 512
	Seed        uint64 // of the texts: two seeds share no block
	ForceLength bool   // ask for exactly the output length of the trace, in the words of vLLM and SGLang
}

const (
	defaultBlock = 512
	maxBlock     = 1 << 16
	maxTokens    = 1 << 24 // of a prompt or an answer: beyond it the number is a mistake
)

func (o *TraceOptions) target() string {
	if o.Target == "" {
		return "/v1/chat/completions"
	}
	return o.Target
}

func (o *TraceOptions) block() int {
	if o.BlockSize == 0 {
		return defaultBlock
	}
	return o.BlockSize
}

// check holds that the options can be used. The error wraps exchange.ErrUsage.
func (o *TraceOptions) check() error {
	if b := o.block(); b < 1 || b > maxBlock {
		return fmt.Errorf("%w: a block of %d tokens; want 1 to %d", exchange.ErrUsage, b, maxBlock)
	}
	if _, value, why := requestProblem("POST", o.target(), nil); why != "" {
		return fmt.Errorf("%w: target %q: %s", exchange.ErrUsage, value, why)
	}
	return nil
}

// unit is the unit of instants that a format leaves open. The error wraps exchange.ErrUsage.
func (o *TraceOptions) unit(format Format) (time.Duration, error) {
	switch o.Unit {
	case "ms":
		return time.Millisecond, nil
	case "s":
		return time.Second, nil
	case "":
		return 0, fmt.Errorf("%w: files of the format %s are written with timestamps in ms and in s; say which", exchange.ErrUsage, format)
	}
	return 0, fmt.Errorf("%w: unit %q; want ms or s", exchange.ErrUsage, o.Unit)
}

// traced is one line of a trace.
type traced struct {
	id             string
	at             time.Duration
	session        string // "" for none
	prompt, output int64
	blocks         []uint64 // names of the prefix blocks, nil for none
}

// tracer makes items of the lines of a trace.
type tracer struct {
	lines  *lineReader
	o      *TraceOptions
	info   fileInfo
	n      uint64         // requests so far
	turns  map[string]int // of each session
	failed int            // lines that tell of a request without an answer
}

func newTracer(l *lineReader, o *TraceOptions) (*tracer, error) {
	return &tracer{lines: l, o: o, turns: map[string]int{}}, o.check()
}

func (t *tracer) about() *fileInfo {
	notes := []string{"prompts are made up, one common word for a token: lengths are those of the trace but for what a tokenizer and a chat template make of them"}
	if t.failed > 0 {
		notes = append(notes, count(t.failed, "line tells", "lines tell")+" of a request without an answer and was left out")
	}
	if t.o.Model == "" {
		notes = append(notes, "requests name no model")
	}
	t.info.notes = notes
	return &t.info
}

// entry makes the item of a line. Its body is made up whenever it is asked for: a trace of a day has more text than
// memory.
func (t *tracer) entry(l *traced) (*entry, error) {
	it := Item{
		ID: l.id, Conversation: l.session, At: l.at, Method: "POST", Target: t.o.target(),
		Headers:      []exchange.Header{{Name: "Content-Type", Value: "application/json"}},
		PromptTokens: &l.prompt, OutputTokens: &l.output,
	}
	if it.Conversation == "" {
		it.Conversation = it.ID
	} else {
		it.Turn = t.turns[l.session]
		t.turns[l.session]++
	}
	p := prompt{own: t.n, tokens: l.prompt, output: l.output, blocks: slices.Clone(l.blocks), o: *t.o}
	t.n++
	body, err := p.body()
	if err != nil {
		return nil, t.lines.bad("", "", err.Error())
	}
	it.identify(body)
	it.payload = p.body
	return &entry{Item: it}, nil
}

// prompt is what the text of a request is made of.
type prompt struct {
	own    uint64 // number of the request, for text that it shares with none
	tokens int64
	output int64
	blocks []uint64
	o      TraceOptions
}

// body is the request in the form of chat completions.
func (p *prompt) body() ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	request := struct {
		Model     string    `json:"model,omitempty"`
		Messages  []message `json:"messages"`
		MaxTokens int64     `json:"max_tokens"`
		MinTokens int64     `json:"min_tokens,omitempty"`
		IgnoreEOS bool      `json:"ignore_eos,omitempty"`
		Stream    bool      `json:"stream"`
		Options   any       `json:"stream_options"`
	}{
		Model: p.o.Model, Messages: []message{{"user", p.text()}}, MaxTokens: p.output, Stream: true,
		Options: map[string]bool{"include_usage": true},
	}
	if p.o.ForceLength {
		request.MinTokens, request.IgnoreEOS = p.output, true
	}
	return json.Marshal(request)
}

// text is the prompt: a word for each token. Blocks of one name have the same words, so that prompts share the prefixes
// that the trace says; what no block covers is shared with none.
func (p *prompt) text() string {
	var b strings.Builder
	b.Grow(int(p.tokens) * 6)
	size := int64(p.o.block())
	for at := int64(0); at < p.tokens; at += size {
		n := min(size, p.tokens-at)
		if i := at / size; i < int64(len(p.blocks)) {
			p.words(&b, n, mix(p.blocks[i], 1))
		} else {
			p.words(&b, n, mix(p.own<<24|uint64(i), 2))
		}
	}
	return b.String()
}

// words appends n words that follow from the block.
func (p *prompt) words(b *strings.Builder, n int64, block uint64) {
	state := mix(p.o.Seed, block)
	for range n {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		state = mix(state, 0)
		b.WriteString(vocabulary[state>>32%uint64(len(vocabulary))])
	}
}

// mix is a step of splitmix64 over two numbers.
func mix(a, b uint64) uint64 {
	z := a + b*0xbf58476d1ce4e5b9 + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// vocabulary are short common words, each of which is one token to nearly every tokenizer when a blank is before it.
var vocabulary = strings.Fields(`the of and to in is was for on that by this with from at are as be or an it not have
	one had but what all were when we there can your which said use each she how their will up other about out many then
	them these so some her would make like him into time has look two more write go see number no way could people my than
	first water been call who its now find long down day did get come made may part over new sound take only little work
	know place year live me back give most very after thing our just name good sentence man think say great where help
	through much before line right too mean old any same tell boy follow came want show also around form three small set
	put end does another well large must big even such because turn here why ask went men read need land different home us
	move try kind hand picture again change off play spell air away animal house point page letter mother answer found
	study still learn should world high every near add food between own below country plant last school father keep tree
	never start city earth eye light thought head under story saw left few while along might close something seem next
	hard open example begin life always those both paper together got group often run important until children side feet
	car mile night walk white sea began grow took river four carry state once book hear stop without second later miss idea
	enough eat face watch far really almost let above girl sometimes mountain cut young talk soon list song being leave`)

// lengths holds that the lengths of a line can be those of a request.
func (t *tracer) lengths(promptField, outputField string, prompt, output int64) error {
	switch {
	case prompt < 1 || prompt > maxTokens:
		return t.lines.bad(promptField, strconv.FormatInt(prompt, 10), fmt.Sprintf("want a number of tokens from 1 to %d", maxTokens))
	case output < 1 || output > maxTokens:
		return t.lines.bad(outputField, strconv.FormatInt(output, 10), fmt.Sprintf("want a number of tokens from 1 to %d", maxTokens))
	}
	return nil
}

// instant is an instant of a trace in a unit.
func (t *tracer) instant(field, text string, unit time.Duration) (time.Duration, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || f != f:
		return 0, t.lines.bad(field, text, "want a number")
	case f < 0:
		return 0, t.lines.bad(field, text, "want a number that is not negative")
	case f > float64(maxTraceSpan/unit):
		return 0, t.lines.bad(field, text, fmt.Sprintf("is more than a year in units of %v; is it another unit?", unit))
	}
	return time.Duration(f*float64(unit)/float64(time.Microsecond)+0.5) * time.Microsecond, nil
}

const maxTraceSpan = 366 * 24 * time.Hour
