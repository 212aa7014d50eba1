package gates

import (
	"encoding/json"
	"net/http"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Asked is a request as the gates read it that judge an answer by what was asked for.
type Asked struct {
	Target  string
	Dialect wire.Dialect
	Facts   wire.RequestFacts
	Fields  map[string]json.RawMessage // of the body, as the client sent it; nil for one that is no JSON object
}

// AskedOf reads the request of an exchange.
func AskedOf(x *exchange.Exchange) *Asked {
	a := &Asked{Target: x.Request.Target, Dialect: wire.Dialect(x.Dialect), Facts: wire.RequestOf(x)}
	if a.Dialect == wire.DialectNone {
		a.Dialect = wire.DialectOf(x.Request.Target)
	}
	if a.Facts.JSON && json.Unmarshal(x.Request.Body.Bytes(), &a.Fields) != nil {
		a.Fields = nil // one that is coded
	}
	return a
}

// Field is the value at a path of object keys, nil when there is none or it is null.
func (a *Asked) Field(path ...string) json.RawMessage {
	fields := a.Fields
	for i, key := range path {
		v := fields[key]
		if len(v) == 0 || string(v) == "null" {
			return nil
		}
		if i == len(path)-1 {
			return v
		}
		fields = nil
		if json.Unmarshal(v, &fields) != nil {
			return nil
		}
	}
	return nil
}

// Word is the string at a path of object keys, "" when there is none.
func (a *Asked) Word(path ...string) string {
	var s string
	if v := a.Field(path...); v == nil || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// loads reports whether a request has an engine load or unload a model, and asks for nothing: so Ollama takes one that holds
// neither a prompt nor a message nor a picture, and wants no format.
func (a *Asked) loads() bool {
	var messages []json.RawMessage
	if v := a.Field("messages"); v != nil && json.Unmarshal(v, &messages) != nil {
		return false
	}
	return a.Dialect == wire.DialectOllama && a.Fields != nil && len(messages) == 0 && a.Field("images") == nil && a.Field("format") == nil &&
		(a.Field("prompt") == nil || string(a.Field("prompt")) == `""`)
}

// Auto lists the checks that an exchange of no suite can be judged by: its own request says what to expect. It is nil
// for a request that asks for no generated answer.
func Auto(x *exchange.Exchange) []exchange.Check {
	a := AskedOf(x)
	if x.Request.Method != http.MethodPost || x.Tunnel != nil || a.Dialect == wire.DialectNone || a.Dialect == wire.DialectEmbeddings || a.loads() {
		return nil
	}
	var out []exchange.Check
	for _, g := range registry() {
		if g.auto == nil {
			continue
		}
		if params, applies := g.auto(a); applies {
			out = append(out, exchange.Check{Gate: g.ID, Params: params})
		}
	}
	return out
}
