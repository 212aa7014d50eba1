package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/bridge"
)

// Kinds of intervention in a request that a plan changed before it was made. The recorded request is the changed one: it
// is what was asked, and its key is made of it.
const (
	KindFieldSet     = "planned_field_set"     // a field of the body
	KindFieldRemoved = "planned_field_removed" // the same
	KindHeaderSet    = "planned_header_set"
	KindHeaderUnset  = "planned_header_removed"
	KindTargetSet    = "planned_target_set"
	KindNonce        = exchange.KindNonce // a text put before the prompt
)

// shownBytes bounds the old and new values that an intervention repeats.
const shownBytes = 1 << 10

// Changes are what a plan makes of every request before it is sent. The zero value changes nothing that need not be.
type Changes struct {
	Model   string            // "" leaves it
	Headers []exchange.Header // set, replacing those of the same name
	Edits   []Edit            // of the body, in order
	// Bridges are the targets, in their order, as they are spoken to. A request that was recorded in another dialect is
	// said in that of its target, before anything else is changed; what engines spell differently within a dialect is said
	// as the target spells it where that is known. None leave all requests as they are.
	Bridges []bridge.Endpoint
	Lossy   bool // what a target cannot be asked for is left out; else such a plan is refused
}

// Edit changes one field of a JSON body.
type Edit struct {
	path  jsonPath
	value string // JSON text; "" removes the field
}

// ParseSet reads an edit "path=json". A value that is not JSON is taken for a string only when it could be nothing else.
func ParseSet(text string) (Edit, error) {
	path, value, ok := strings.Cut(text, "=")
	if !ok {
		return Edit{}, fmt.Errorf("%q is not PATH=JSON", text)
	}
	p, err := parsePath(path)
	if err != nil {
		return Edit{}, err
	}
	if !json.Valid([]byte(value)) {
		return Edit{}, fmt.Errorf("%s: %q is not JSON; a text needs quotes: %s=%s", path, value, path, quoted(value))
	}
	return Edit{path: p, value: value}, nil
}

// ParseUnset reads the path of a field to remove.
func ParseUnset(text string) (Edit, error) {
	p, err := parsePath(text)
	return Edit{path: p}, err
}

// String is the edit as users write it.
func (e Edit) String() string {
	if e.value == "" {
		return "-" + e.path.String()
	}
	return e.path.String() + "=" + e.value
}

// draft is a request in the making, with what was changed.
type draft struct {
	method, target string
	headers        []exchange.Header
	body           []byte
	notes          []exchange.Intervention
	translated     bool // it was recorded in another dialect
}

func (d *draft) note(kind, name, from, to, reason string) {
	d.notes = append(d.notes, exchange.Intervention{
		Kind: kind, Where: exchange.SideEngine, Name: name, From: shortened(from), To: shortened(to), Reason: reason,
	})
}

func shortened(s string) string {
	if len(s) <= shownBytes {
		return s
	}
	return strings.ToValidUTF8(s[:shownBytes], "") + "…"
}

// draftOf is an item for a target with the changes made. nonce is "" for none, session has no name for none. It is called
// ahead of the send.
func (c *Changes) draftOf(it *Item, target int, nonce string, session exchange.Header) (*draft, error) {
	body, err := it.Payload()
	if err != nil {
		return nil, fmt.Errorf("read request %s: %w", it.ID, err)
	}
	d := &draft{method: it.Method, target: it.Target, headers: append([]exchange.Header(nil), it.Headers...), body: body}
	d.unmask()
	d.translate(c.endpoint(target), c.Model)
	if err := d.respell(c.endpoint(target)); err != nil {
		return nil, fmt.Errorf("respell request %s: %w", it.ID, err)
	}
	for _, h := range c.Headers {
		d.setHeader(h, "header_asked")
	}
	if session.Name != "" {
		d.setHeader(session, "session")
	}
	if c.Model != "" {
		if err := d.setModel(c.Model); err != nil {
			return nil, fmt.Errorf("change model of request %s: %w", it.ID, err)
		}
	}
	for _, e := range c.Edits {
		if err := d.edit(e, "edit_asked"); err != nil {
			return nil, fmt.Errorf("change %s of request %s: %w", e.path, it.ID, err)
		}
	}
	if nonce != "" {
		if err := d.addNonce(nonce); err != nil {
			return nil, fmt.Errorf("put nonce into request %s: %w", it.ID, err)
		}
	}
	return d, nil
}

// unmask takes out what the recording masked, which would only be refused: the engine's key is given anew. It asks for
// answers without content coding, too: their events could not be told apart on arrival.
func (d *draft) unmask() {
	kept := d.headers[:0]
	for _, h := range d.headers {
		switch {
		case strings.Contains(h.Value, redact.Mask) && redact.SecretHeader(h.Name):
			d.note(KindHeaderUnset, h.Name, h.Value, "", "masked")
			continue
		case strings.EqualFold(h.Name, "Accept-Encoding") && !strings.EqualFold(h.Value, "identity"):
			d.note(KindHeaderSet, h.Name, h.Value, "identity", "identity_coding")
			h.Value = "identity"
		}
		kept = append(kept, h)
	}
	d.headers = kept
	path, query, ok := strings.Cut(d.target, "?")
	if !ok || !strings.Contains(query, redact.Mask) {
		return
	}
	var params []string
	for p := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(p, "="); value != redact.Mask || !redact.SecretQuery(name) {
			params = append(params, p)
		}
	}
	target := path
	if len(params) > 0 {
		target += "?" + strings.Join(params, "&")
	}
	d.setTarget(target, "masked")
}

func (d *draft) setTarget(target, reason string) {
	if target != d.target {
		d.note(KindTargetSet, "target", d.target, target, reason)
		d.target = target
	}
}

// setHeader replaces the headers of that name, or adds one.
func (d *draft) setHeader(h exchange.Header, reason string) {
	old, had := exchange.HeaderValue(d.headers, h.Name)
	if had && old == h.Value {
		return
	}
	kept := d.headers[:0]
	for _, k := range d.headers {
		if !strings.EqualFold(k.Name, h.Name) {
			kept = append(kept, k)
		}
	}
	d.headers = append(kept, h)
	d.note(KindHeaderSet, h.Name, redact.HeaderValue(h.Name, old), redact.HeaderValue(h.Name, h.Value), reason)
}

// setModel names another model: in the path where the dialect names it there, else in the body.
func (d *draft) setModel(model string) error {
	if wire.DialectOf(d.target) == wire.DialectGemini {
		path, query, _ := strings.Cut(d.target, "?")
		start := strings.LastIndex(path, "/") + 1
		colon := strings.LastIndexByte(path[start:], ':') // the model may have one too
		if colon < 0 {
			return fmt.Errorf("the path %s names no model", path)
		}
		target := path[:start] + url.PathEscape(model) + path[start+colon:]
		if query != "" {
			target += "?" + query
		}
		d.setTarget(target, "model_asked")
		return nil
	}
	if len(d.body) == 0 {
		return nil // a request without a body asks for no model
	}
	return d.edit(Edit{path: jsonPath{{name: "model", index: -1}}, value: quoted(model)}, "model_asked")
}

var errCoded = errors.New("the body has a content coding and can only be sent as it is")

// json is the body as a document that can be changed.
func (d *draft) json() (jsonBody, error) {
	if coding, ok := exchange.HeaderValue(d.headers, "Content-Encoding"); ok && !strings.EqualFold(coding, "identity") {
		return nil, errCoded
	}
	return asJSON(d.body)
}

// edit changes one field. A field that has that value already, and one to remove that is not there, need no change.
func (d *draft) edit(e Edit, reason string) error {
	b, err := d.json()
	if err != nil {
		return err
	}
	kind, out, from := KindFieldSet, jsonBody(nil), ""
	if e.value == "" {
		kind = KindFieldRemoved
		out, from, err = b.unset(e.path)
	} else {
		out, from, err = b.set(e.path, e.value)
	}
	if err != nil {
		return err
	}
	if from != e.value {
		d.note(kind, e.path.String(), from, e.value, reason)
	}
	d.body = out
	return nil
}

// noncePlaces are where a prompt can begin, the first one first: engines put a system prompt before the messages, and
// keep their caches by the longest common beginning.
var noncePlaces = []string{
	"system", "system[0].text", "systemInstruction.parts[0].text", "system_instruction.parts[0].text", "instructions",
	"messages[0].content", "messages[0].content[0].text", "contents[0].parts[0].text",
	"input", "input[0].content", "input[0].content[0].text", "input[0]", "prompt", "prompt[0]",
}

var errNoPlace = errors.New("it has no text at the beginning of its prompt")

// addNonce puts a text before the prompt that no earlier request had, so that no cache of prefixes helps.
func (d *draft) addNonce(nonce string) error {
	b, err := d.json()
	if err != nil {
		return err
	}
	text := "[" + nonce + "] "
	for _, at := range noncePlaces {
		path, err := parsePath(at)
		if err != nil {
			return err
		}
		s, ok := b.value(path)
		if !ok || b[s.from] != '"' {
			continue
		}
		d.body = b.splice(stretch{s.from + 1, s.from + 1}, text)
		d.note(KindNonce, at, "", text, "nonce")
		return nil
	}
	return errNoPlace
}
