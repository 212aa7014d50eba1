package replay

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// RedactOptions say what is a secret beside the well-known keys, which always are.
type RedactOptions struct {
	Texts    []string // exact texts
	Patterns []string // regular expressions
}

// Redactor masks secrets in whole exchanges on their way out. A secret is replaced by as many asterisks as it takes on
// the wire, so that every size, offset and stamp of the record stays true. It is looked for in the text as a reader of
// the answer sees it: escapes undone, and the pieces that a stream brings joined, so that a secret which comes in
// several events is found and masked in each of them.
type Redactor struct {
	texts    []string
	patterns []*regexp.Regexp
}

// NewRedactor makes a redactor. The error wraps exchange.ErrUsage.
func NewRedactor(o RedactOptions) (*Redactor, error) {
	r := &Redactor{}
	for _, t := range o.Texts {
		if len(t) < 4 {
			return nil, fmt.Errorf("%w: a secret of %d bytes would mask ordinary text; the shortest is 4", exchange.ErrUsage, len(t))
		}
		r.texts = append(r.texts, t)
	}
	for _, p := range o.Patterns {
		re, err := regexp.Compile(p)
		if err == nil && re.MatchString("") {
			err = fmt.Errorf("it matches nothing at all")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: pattern %q: %w", exchange.ErrUsage, p, err)
		}
		r.patterns = append(r.patterns, re)
	}
	return r, nil
}

// span is a piece of a text: its first byte and one past its last.
type span = [2]int

// find gives the secrets in a text, in order and without overlap.
func (r *Redactor) find(text string) []span {
	found := r.findPlain(text)
	for _, re := range r.patterns {
		for _, m := range re.FindAllStringIndex(text, -1) {
			found = append(found, span{m[0], m[1]})
		}
	}
	return merged(found)
}

// findPlain is find without the patterns, which could match what holds a text together.
func (r *Redactor) findPlain(text string) []span {
	found := redact.Keys(text)
	for _, t := range r.texts {
		for from := 0; ; {
			i := strings.Index(text[from:], t)
			if i < 0 {
				break
			}
			from += i + len(t)
			found = append(found, span{from - len(t), from})
		}
	}
	return merged(found)
}

// maxEscapes bounds how often JSON in a string of JSON is looked into.
const maxEscapes = 4

// findDeep is find, also in what a text means where it is JSON itself, as the arguments of a tool call are: there a secret
// may be written with escapes of its own. The places are those in text.
func findDeep(text string, find func(string) []span) []span {
	found := find(text)
	var from, to []int32 // place of each byte of what is looked into; nil while that is text itself
	inner := text
	for range maxEscapes {
		if strings.IndexByte(inner, '\\') < 0 {
			break
		}
		inner, from, to = withoutEscapes(inner, from, to)
		for _, s := range find(inner) {
			found = append(found, span{int(from[s[0]]), int(to[s[1]-1])})
		}
	}
	return merged(found)
}

// withoutEscapes undoes the escapes of a text whose bytes have their places in from and to.
func withoutEscapes(text string, from, to []int32) (inner string, innerFrom, innerTo []int32) {
	var b strings.Builder
	for at := 0; at < len(text); {
		size, means := unit([]byte(text[at:min(len(text), at+maxUnit)]))
		first, last := int32(at), int32(at+size)
		if from != nil {
			first, last = from[at], to[at+size-1]
		}
		for range len(means) {
			innerFrom, innerTo = append(innerFrom, first), append(innerTo, last)
		}
		b.WriteString(means)
		at += size
	}
	return b.String(), innerFrom, innerTo
}

func merged(found []span) []span {
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return a[0] - b[0] })
	out := found[:1]
	for _, s := range found[1:] {
		if last := &out[len(out)-1]; s[0] < last[1] {
			last[1] = max(last[1], s[1])
		} else {
			out = append(out, s)
		}
	}
	return out
}

const star = '*'

// text is a text outside of bodies with its secrets masked.
func (r *Redactor) text(s string, masked *int) string {
	found := r.find(s)
	if len(found) == 0 {
		return s
	}
	*masked += len(found)
	b := []byte(s)
	for _, f := range found {
		stars(b[f[0]:f[1]])
	}
	return string(b)
}

func stars(b []byte) {
	for i := range b {
		b[i] = star
	}
}

func (r *Redactor) headers(hs []exchange.Header, masked *int) []exchange.Header {
	out := slices.Clone(hs)
	for i := range out {
		out[i].Value = r.text(out[i].Value, masked)
	}
	return out
}

// exchange is x with its secrets masked: a copy. masked counts them, withheld the bodies that were left out because
// what is in them is hidden from the masking, by a content coding or by the way in which a stream joins its pieces.
func (r *Redactor) exchange(in *exchange.Exchange) (x *exchange.Exchange, masked, withheld int) {
	copied := *in
	x = &copied
	heads := 0 // a head repeats what its headers say
	x.Request.Target = r.text(x.Request.Target, &masked)
	x.Request.Headers = r.headers(x.Request.Headers, &masked)
	x.Response.Headers = r.headers(x.Response.Headers, &masked)
	x.Response.Trailers = r.headers(x.Response.Trailers, &masked)
	x.Response.Reason = r.text(x.Response.Reason, &masked)
	x.Request.Head = []byte(r.text(string(x.Request.Head), &heads))
	x.Response.Head = []byte(r.text(string(x.Response.Head), &heads))
	x.UpstreamURL = r.text(x.UpstreamURL, &masked)
	x.Interventions = slices.Clone(x.Interventions)
	for i := range x.Interventions {
		v := &x.Interventions[i]
		v.From, v.To = r.text(v.From, &heads), r.text(v.To, &heads)
	}
	if x.Cause != nil {
		cause := *x.Cause
		cause.Text = r.text(cause.Text, &masked)
		x.Cause = &cause
	}
	for _, side := range []struct {
		body    *exchange.Body
		headers []exchange.Header
	}{{&x.Request.Body, x.Request.Headers}, {&x.Response.Body, x.Response.Headers}} {
		if coding, _ := exchange.HeaderValue(side.headers, "Content-Encoding"); isCoded(coding) && side.body.Kept > 0 {
			withhold(x, side.body)
			withheld++
			continue
		}
		contentType, _ := exchange.HeaderValue(side.headers, "Content-Type")
		masked += r.body(side.body, contentType)
	}
	if x.Response.Body.Kept > 0 && r.tells(x) {
		withhold(x, &x.Response.Body)
		withheld++
	}
	return x, masked, withheld
}

// withhold leaves a body of x out.
func withhold(x *exchange.Exchange, b *exchange.Body) {
	*b = exchange.Body{Size: b.Size, Digest: b.Sum()}
	x.State = exchange.StateTruncated
}

// tells reports whether the answer still has a secret for whoever reads it as its dialect is read. Masking joins strings of
// one place in the events, which every known dialect does too; this does not rest on it.
func (r *Redactor) tells(x *exchange.Exchange) bool {
	for _, c := range wire.Parse(x).Choices {
		texts := []string{c.Text, c.Reasoning, c.Refusal}
		for _, call := range c.ToolCalls {
			texts = append(texts, call.ID, call.Name, call.Arguments)
		}
		for _, text := range texts {
			if len(findDeep(text, r.find)) > 0 {
				return true
			}
		}
	}
	return false
}

func isCoded(coding string) bool {
	coding = strings.TrimSpace(coding)
	return coding != "" && !strings.EqualFold(coding, "identity")
}

// body masks the secrets of a body, which is replaced and not written into, and counts them.
func (r *Redactor) body(b *exchange.Body, contentType string) int {
	if b.Kept == 0 {
		return 0
	}
	raw := slices.Clone(b.Bytes())
	masked := r.mask(raw, contentType)
	if masked == 0 {
		return 0
	}
	digest := b.Digest
	*b = exchange.Body{Size: b.Size, Kept: b.Kept, Chunks: [][]byte{raw}}
	if b.Whole() {
		digest = b.Sum()
	}
	b.Digest = digest
	return masked
}

// mask masks the secrets of a body in place and counts them.
func (r *Redactor) mask(raw []byte, contentType string) int {
	f := wire.NewFramer(contentType, func(wire.Frame) {})
	f.Feed(raw, 0)
	f.Finish(false)
	masked, find := 0, r.findPlain
	switch f.Framing() {
	case wire.FramingSSE:
		masked = r.maskEvents(raw, sseTexts(raw))
	case wire.FramingOpaque, wire.FramingNone:
		find = r.find // nothing holds it together
	default:
		masked = r.maskEvents(raw, jsonTexts(raw))
	}
	for _, s := range findDeep(string(raw), find) { // what stands outside of strings: comments, names, other forms
		stars(raw[s[0]:s[1]])
		masked++
	}
	return masked
}

// maskEvents masks what is found in the strings of a body, each joined with those that continue it.
func (r *Redactor) maskEvents(raw []byte, events []*jsonNode) int {
	channels := map[string]*channel{}
	var order []*channel
	for n, root := range events {
		root.strings(raw, "", func(name string, leaf *jsonNode) {
			c := channels[name]
			if c == nil {
				c = &channel{}
				channels[name] = c
				order = append(order, c)
			}
			c.add(raw, leaf, n)
		})
	}
	masked, touched := 0, map[int]bool{}
	for _, c := range order {
		for _, s := range findDeep(c.text.String(), r.find) {
			masked++
			c.mask(raw, s, touched)
		}
	}
	for n := range touched {
		events[n].maskTokens(raw, false)
	}
	return masked
}

// channel is the text that strings of one name bring, event by event.
type channel struct {
	text   strings.Builder
	pieces []piece
}

// piece is one string of a channel.
type piece struct {
	at    int // where its text begins in that of the channel
	leaf  *jsonNode
	event int
}

func (c *channel) add(raw []byte, leaf *jsonNode, event int) {
	c.pieces = append(c.pieces, piece{c.text.Len(), leaf, event})
	leaf.units(raw, func(_, _ int, text string) { c.text.WriteString(text) })
}

// mask masks a span of the channel's text in every string that holds a part of it.
func (c *channel) mask(raw []byte, s span, touched map[int]bool) {
	first, _ := slices.BinarySearchFunc(c.pieces, s[0]+1, func(p piece, at int) int { return p.at - at })
	for _, p := range c.pieces[max(first-1, 0):] {
		if p.at >= s[1] {
			return
		}
		at := p.at
		var hit []span // found first: units are read from what is masked
		p.leaf.units(raw, func(from, to int, text string) {
			if at < s[1] && at+len(text) > s[0] {
				hit = append(hit, span{from, to})
			}
			at += len(text)
		})
		for _, h := range hit {
			stars(raw[h[0]:h[1]])
			touched[p.event] = true
		}
	}
}

// suspect reports whether a body holds what looks like a key.
func suspect(x *exchange.Exchange) bool {
	return len(redact.Keys(x.Request.Body.Bytes())) > 0 || len(redact.Keys(x.Response.Body.Bytes())) > 0
}

// run is a run with its secrets masked: a copy.
func (r *Redactor) run(in *exchange.Run) *exchange.Run {
	run, n := *in, 0
	run.Name = r.text(run.Name, &n)
	run.Command = slices.Clone(run.Command)
	for i := range run.Command {
		run.Command[i] = r.text(run.Command[i], &n)
	}
	run.Labels, run.Upstreams = r.values(in.Labels), r.values(in.Upstreams)
	return &run
}

func (r *Redactor) values(in map[string]string) map[string]string {
	if in == nil {
		return nil
	}
	out, n := make(map[string]string, len(in)), 0
	for k, v := range in {
		out[k] = r.text(v, &n)
	}
	return out
}
