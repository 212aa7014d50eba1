package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// fields are the fields of a deployment that a profile can read.
var fields = []string{
	"version", "model", "model_root", "parameters", "quantization", "window", "slots", "gpus", "drafting", "draft_method",
	"observed_device", "weights_digest",
}

// reader fills a deployment by what its profile says.
type reader struct {
	catalog *Catalog
	profile Profile
	p       *prober
	d       *exchange.Deployment
	entry   map[string]any // of the served model in the listing, nil when there is none
}

// read takes the served model first: what else is read may be about one model of several.
func (r *reader) read(ctx context.Context) {
	if r.p.dead != nil {
		return
	}
	r.served(ctx)
	r.inner()
	for _, rd := range r.profile.Metadata {
		if rd.Field != "model" && !r.known(rd.Field) {
			r.take(ctx, rd)
		}
	}
	r.nameQuantization()
}

// served settles which model requests are for: the one that was asked for; else the one the engine says is loaded; else
// the only one of its listing. With several and no such word it stays unknown.
func (r *reader) served(ctx context.Context) {
	listing := r.p.get(ctx, modelsPath)
	entries := entriesOf(listing, Entry{List: "data"})
	for _, e := range entries {
		if id := text(e["id"]); id != nil {
			r.d.Models = append(r.d.Models, *id)
		}
	}
	if r.p.o.Model != "" {
		r.d.Model = pointer(r.p.o.Model)
	}
	for _, rd := range r.profile.Metadata {
		if rd.Field == "model" && r.d.Model == nil {
			r.take(ctx, rd)
		}
	}
	r.entry = Entry{List: "data", ID: "id"}.find(listing, r.d.Model)
	if r.d.Model == nil && r.entry != nil {
		r.d.Model = text(r.entry["id"])
	}
}

// entriesOf are the objects of a list in a document.
func entriesOf(a *answer, e Entry) []map[string]any {
	if !a.ok() {
		return nil
	}
	v, _ := at(a.doc, e.List)
	list, _ := v.([]any)
	var out []map[string]any
	for _, item := range list {
		if o, ok := item.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// find is the entry of a model: the one with its id; else, unless Only, a single one under any id.
func (e Entry) find(a *answer, model *string) map[string]any {
	entries := entriesOf(a, e)
	if key, want, ok := strings.Cut(e.State, "="); ok {
		var marked []map[string]any
		for _, o := range entries {
			if s := text(o[key]); s != nil && *s == want {
				marked = append(marked, o)
			}
		}
		entries = marked
	}
	for _, o := range entries {
		if id := text(o[e.ID]); model != nil && id != nil && SameModel(*id, *model) {
			return o
		}
	}
	if len(entries) == 1 && !e.Only {
		return entries[0]
	}
	return nil
}

// SameModel reports whether two ids name one model: they are equal, or differ only by the tag that Ollama means when
// none is given.
func SameModel(a, b string) bool {
	return a == b || a == b+":latest" || b == a+":latest"
}

// inner finds the engine behind a front: by what its listing says of the served model, else by the model's name.
func (r *reader) inner() {
	if r.profile.Kind != KindFront {
		return
	}
	owner := ""
	if s := text(r.entry["owned_by"]); s != nil {
		owner = leadingName(*s)
	}
	for _, p := range r.catalog.profiles {
		for _, name := range p.Recognize.Behind {
			if name == owner {
				r.d.Inner = &exchange.Identity{Engine: p.ID, Basis: BasisProbe}
				return
			}
		}
	}
	for _, p := range r.catalog.profiles {
		for _, prefix := range p.Recognize.Prefixes {
			if r.d.Model != nil && strings.HasPrefix(*r.d.Model, prefix) {
				r.d.Inner = &exchange.Identity{Engine: p.ID, Basis: BasisProbe}
				return
			}
		}
	}
}

// known reports whether a field has its value already.
func (r *reader) known(field string) bool {
	d := r.d
	switch field {
	case "version":
		return d.Version != ""
	case "drafting":
		return d.Drafting != nil
	}
	if p := r.number(field); p != nil {
		return *p != nil
	}
	p := r.text(field)
	return p != nil && *p != nil
}

func (r *reader) number(field string) **int64 {
	return map[string]**int64{"parameters": &r.d.Parameters, "window": &r.d.Window, "slots": &r.d.Slots, "gpus": &r.d.GPUs}[field]
}

func (r *reader) text(field string) **string {
	return map[string]**string{
		"model": &r.d.Model, "model_root": &r.d.ModelRoot, "quantization": &r.d.Quantization, "draft_method": &r.d.DraftMethod,
		"observed_device": &r.d.ObservedDevice, "weights_digest": &r.d.WeightsDigest,
	}[field]
}

// take reads one field, when its document is there and tells it.
func (r *reader) take(ctx context.Context, rd Read) {
	if rd.Inner != "" && (r.d.Inner == nil || r.d.Inner.Engine != rd.Inner) {
		return
	}
	body, ok := r.body(rd)
	if !ok {
		return
	}
	a := r.p.ask(ctx, rd.Path, body)
	if !a.ok() || r.catalog.names(a, r.profile) || rd.Unless.holds(a) {
		return
	}
	v, ok := rd.value(a, r.d.Model)
	if !ok {
		return
	}
	switch got := convert(rd, v).(type) {
	case *int64:
		if p := r.number(rd.Field); p != nil && got != nil {
			*p = got
		}
	case *bool:
		if rd.Field == "drafting" && got != nil {
			r.d.Drafting = got
		}
	case *string:
		switch p := r.text(rd.Field); {
		case got == nil:
		case p != nil:
			*p = got
		case rd.Field == "version":
			r.d.Version = *got
		}
	}
}

// body is what a read posts, with the model in it; nil for a GET. ok is false when it needs a model and none is known.
func (r *reader) body(rd Read) (body []byte, ok bool) {
	if rd.Body == nil {
		return nil, true
	}
	if r.d.Model == nil {
		return nil, !bytes.Contains(rd.Body, []byte("$model"))
	}
	quoted, err := json.Marshal(*r.d.Model)
	if err != nil { // a string always marshals
		return nil, false
	}
	var b bytes.Buffer
	if err := json.Compact(&b, bytes.ReplaceAll(rd.Body, []byte(`"$model"`), quoted)); err != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// holds reports whether a document is useless.
func (u *Unless) holds(a *answer) bool {
	if u == nil {
		return false
	}
	s, ok := textAt(a.doc, u.Key)
	return ok && strings.Contains(strings.ToLower(s), u.Contains)
}

// value is what a read points at in an answer.
func (rd Read) value(a *answer, model *string) (any, bool) {
	switch {
	case rd.Header != "":
		s := a.header.Get(rd.Header)
		return s, s != ""
	case rd.Path == metricsPath:
		return counter(string(a.body), rd.At)
	case rd.Entry != nil:
		entry := rd.Entry.find(a, model)
		if entry == nil {
			return nil, false
		}
		return at(entry, rd.At)
	}
	return at(a.doc, rd.At)
}

// nameQuantization takes the quantization that the model's name tells before what the server says of the file: several
// kinds of file declare the same type.
func (r *reader) nameQuantization() {
	for _, name := range []*string{r.d.ModelRoot, r.d.Model} {
		if name == nil {
			continue
		}
		if q, ok := NameQuantization(*name); ok {
			r.d.Quantization = &q
			return
		}
	}
}
