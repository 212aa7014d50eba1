package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/bridge"
)

// Kinds of intervention in a request that was said in another dialect than the recorded one.
const (
	KindDialect    = "planned_dialect_set"       // the whole body
	KindNotCarried = "planned_field_not_carried" // what it asked for there is not asked for any more
	KindRecast     = "planned_field_recast"      // it is carried in another form, or the dialect needs it
	KindRespelled  = "planned_field_respelled"   // the target has another name or form for it
)

const reasonDialect = "dialect"

// endpoint is how a target is spoken to; the zero value as recorded.
func (c *Changes) endpoint(target int) bridge.Endpoint {
	if target < len(c.Bridges) {
		return c.Bridges[target]
	}
	return bridge.Endpoint{}
}

// translates reports whether a target is asked for anything in another dialect than the recorded one.
func (p *Plan) translates(target int) bool {
	to := p.o.Changes.endpoint(target)
	for i := range p.jobs {
		for _, it := range p.jobs[i].turns {
			if p.jobs[i].target == target && to.Translates(wire.DialectOf(it.Target)) {
				return true
			}
		}
	}
	return false
}

// goesOn reports whether an answer to an item can be put into the next turn of its conversation.
func (c *Changes) goesOn(it *Item, target int) bool {
	d := wire.DialectOf(it.Target)
	if to := c.endpoint(target); to.Translates(d) {
		return bridge.Talks(to.Dialect)
	}
	path, _, _ := strings.Cut(it.Target, "?")
	return bridge.Talks(d) && !strings.HasSuffix(path, "/generate") // Ollama's, which has no messages
}

// foreignHeaders begin the names of headers that belong to a dialect, and mean nothing in another.
var foreignHeaders = []string{"anthropic-", "openai-", "x-goog-"}

// translate says the request in the dialect of its target. A request that cannot be said in it stays as it is, with a
// note that it is lost.
func (d *draft) translate(to bridge.Endpoint, model string) {
	from := wire.DialectOf(d.target)
	if !to.Translates(from) {
		return
	}
	body, err := d.json()
	var t bridge.Translated
	if err == nil {
		t, err = bridge.Translate(from, d.target, body, to, model)
	}
	if err != nil {
		d.note(KindNotCarried, "request", d.method+" "+d.target, "", err.Error())
		return
	}
	d.translated = true
	d.note(KindDialect, "body", string(from), string(to.Dialect), reasonDialect)
	for _, c := range t.Changes {
		kind := KindRecast
		switch {
		case c.Lost:
			kind = KindNotCarried
		case c.Reason == bridge.ReasonLimit:
			kind = exchange.KindLimitAdded
		}
		d.note(kind, c.Path, c.From, c.To, c.Reason)
	}
	d.setTarget(t.Target, reasonDialect)
	d.body = t.Body
	d.dropHeaders(func(name string) bool {
		return slices.ContainsFunc(foreignHeaders, func(p string) bool { return strings.HasPrefix(strings.ToLower(name), p) })
	}, reasonDialect)
	for _, h := range append(t.Headers, exchange.Header{Name: "Content-Type", Value: "application/json"}) {
		d.setHeader(h, reasonDialect)
	}
}

// respell says what engines spell differently as the target of a request spells it that is not translated. What the target
// has no spelling for is taken out, with a note that it is lost.
func (d *draft) respell(to bridge.Endpoint) error {
	dialect := wire.DialectOf(d.target)
	if d.translated || !to.Respells(dialect) || len(d.body) == 0 {
		return nil
	}
	body, err := d.json()
	if err != nil {
		return nil // what is no JSON, or coded, is sent as it is
	}
	r := to.Respell(dialect, body)
	for _, e := range r.Edits {
		path, err := parsePath(e.Path)
		if err != nil {
			return err
		}
		if e.Value == nil {
			body, _, err = body.unset(path)
		} else {
			body, _, err = body.set(path, string(e.Value))
		}
		if err != nil {
			return err
		}
	}
	d.body = body
	for _, c := range r.Changes {
		kind := KindRespelled
		if c.Lost {
			kind = KindNotCarried
		}
		d.note(kind, c.Path, c.From, c.To, c.Reason)
	}
	return nil
}

// dropHeaders takes headers out by their names.
func (d *draft) dropHeaders(drop func(name string) bool, reason string) {
	kept := d.headers[:0]
	for _, h := range d.headers {
		if drop(h.Name) {
			d.note(KindHeaderUnset, h.Name, redact.HeaderValue(h.Name, h.Value), "", reason)
			continue
		}
		kept = append(kept, h)
	}
	d.headers = kept
}

// ErrLossy is wrapped by the error about a plan whose requests ask for something that a target cannot be asked for.
var ErrLossy = errors.New("not all that is asked for can be said to the target")

// Loss is something that requests ask for and that a target cannot be asked for.
type Loss struct {
	Target   string // name
	Path     string // in the recorded requests, "request" for all of it; places in lists are written []
	Reason   string
	Requests int    // that have it
	First    string // item that has it first
}

func (l Loss) String() string {
	text := fmt.Sprintf("%s: %s, for %s (item %s", l.Path, l.Reason, l.Target, l.First)
	if l.Requests > 1 {
		text += fmt.Sprintf(" and %d more", l.Requests-1)
	}
	return text + ")"
}

// Losses are what the translation of the plan leaves out, each kind once, in the order in which they come. It makes every
// request once, without sending it.
func (p *Plan) Losses() ([]Loss, error) {
	var out []Loss
	type kind struct {
		target       int
		path, reason string
	}
	known := map[kind]int{}
	p.respelled = make([]int, len(p.o.Targets))
	err := p.eachDraft(func(it *Item, target int, d *draft) {
		seen := map[kind]bool{}
		if slices.ContainsFunc(d.notes, func(n exchange.Intervention) bool { return n.Kind == KindRespelled }) {
			p.respelled[target]++
		}
		for _, n := range d.notes {
			k := kind{target, anyPlace(n.Name), n.Reason}
			if n.Kind != KindNotCarried || seen[k] {
				continue
			}
			seen[k] = true
			i, ok := known[k]
			if !ok {
				i = len(out)
				known[k] = i
				out = append(out, Loss{Target: p.o.Targets[target], Path: k.path, Reason: k.reason, First: it.ID})
			}
			out[i].Requests++
		}
	})
	return out, err
}

// Respelled is how many requests say something otherwise to a target than recorded, within their dialect, as the last
// Check or Losses found them.
func (p *Plan) Respelled(target int) int {
	if target >= len(p.respelled) {
		return 0
	}
	return p.respelled[target]
}

// anyPlace is a path with the places in lists left open.
func anyPlace(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		b.WriteByte(path[i])
		if path[i] == '[' && (i == 0 || path[i-1] != '\\') {
			end := strings.IndexByte(path[i:], ']')
			i += max(end, 1) - 1
		}
	}
	return b.String()
}

// eachDraft makes every request once for each target that has one of its own, without sending it.
func (p *Plan) eachDraft(do func(it *Item, target int, d *draft)) error {
	type made struct {
		it     *Item
		target int
	}
	seen := map[made]bool{}
	for i := range p.jobs {
		j := &p.jobs[i]
		for _, it := range j.turns {
			m := made{it, j.target}
			if len(p.o.Changes.Bridges) == 0 {
				m.target = 0 // all targets get the same
			}
			if seen[m] {
				continue
			}
			seen[m] = true
			d, err := p.o.Changes.draftOf(it, j.target, p.nonceOf("check"), exchange.Header{})
			if err != nil {
				return fmt.Errorf("%w: %w", exchange.ErrUsage, err)
			}
			do(it, j.target, d)
		}
	}
	return nil
}

// checkLosses refuses a plan that loses something which nobody said may be lost.
func (p *Plan) checkLosses() error {
	losses, err := p.Losses()
	if err != nil || len(losses) == 0 || p.o.Changes.Lossy {
		return err
	}
	var b strings.Builder
	for _, l := range losses {
		b.WriteString("\n  " + l.String())
	}
	return badPlan("%w:%s", ErrLossy, b.String())
}
