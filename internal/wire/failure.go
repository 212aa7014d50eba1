package wire

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fastjson"
)

// The places an error can be found in.
const (
	whereEvent      = "event"
	whereEmbedded   = "embedded"
	whereBody       = "body"
	whereHTTPStatus = "http_status"
)

// maxErrorText bounds the message that is made of text that is not an error object.
const maxErrorText = 2000

// fail keeps the first error; where defaults to the place the current event stands in.
func (a *answer) fail(e Error, where string) {
	if a.failure != nil {
		return
	}
	if where == "" || a.where == whereHTTPStatus {
		where = a.where
	}
	e.Where = where
	a.failure = &e
}

// readError reads the value of an error key: an object, or its text alone. Values that say "no error" (null, false, an
// empty text) are none.
func (a *answer) readError(v *fastjson.Value, where string) {
	switch {
	case v == nil:
		return
	case v.Type() == fastjson.TypeString:
		if len(text(v)) > 0 {
			a.fail(Error{Message: string(text(v))}, where)
		}
	case v.Type() == fastjson.TypeObject:
		a.fail(errorObject(v), where)
	}
}

// errorObject reads {message, type, code}; an object without a message is its own message.
func errorObject(v *fastjson.Value) Error {
	e := Error{Message: word(v.Get("message")), Type: word(v.Get("type")), Code: word(v.Get("code"))}
	if e.Message == "" {
		e.Message = clip(v.MarshalTo(nil))
	}
	return e
}

// readFlatError reads an error that is the whole value: {"object":"error", ...} of older vLLM, the data of an
// `event: error`, or FastAPI's {"detail": ...} under an error status.
func (a *answer) readFlatError(v *fastjson.Value, named bool) {
	if a.failure != nil || v.Type() != fastjson.TypeObject {
		return
	}
	switch {
	case string(text(v.Get("object"))) == "error" && present(v.Get("message")):
		a.fail(errorObject(v), "")
	case named:
		a.fail(errorObject(v), "")
	case a.where == whereHTTPStatus && present(v.Get("detail")):
		d := v.Get("detail")
		msg := word(d)
		if msg == "" {
			msg = clip(d.MarshalTo(nil))
		}
		a.fail(Error{Message: msg}, "")
	}
}

// readPlain looks for the error of a value whose dialect is not known. Most such values are large and hold none, so the
// value is searched, not parsed, until an error key is found.
func (a *answer) readPlain(data []byte, named bool) {
	if len(data) == 0 || data[0] != '{' {
		return
	}
	var found json.RawMessage
	eachField(data, func(key, value []byte) {
		if string(key) == "error" {
			found = value
		}
	})
	small := len(data) <= maxErrorText
	if found == nil && !small {
		return
	}
	var p fastjson.Parser
	if found != nil {
		if v, err := p.ParseBytes(found); err == nil {
			a.readError(v, "")
		}
	}
	if small && (named || a.where == whereHTTPStatus) {
		if v, err := p.ParseBytes(data); err == nil {
			a.readFlatError(v, named)
		}
	}
}

// errorText is how TensorSharp begins the ordinary content that it sends in place of an error.
const errorText = "Error: "

// saysError reports whether the last piece of the answer is an error message in the place of content. The words alone
// prove nothing, since a model may write them. With them goes that no token was generated, or that the piece came in one
// chunk with the finish reason and without the usage that follows every real answer.
func (a *answer) saysError() bool {
	if len(a.choices) != 1 {
		return false
	}
	c := a.choices[0]
	if !strings.HasPrefix(c.text.String()[c.lastText:], errorText) {
		return false
	}
	if a.usage.events > 0 {
		n := a.usage.last.completion
		return n.ok && n.n == 0
	}
	return c.atOnce
}

func clip(b []byte) string { return string(b[:min(len(b), maxErrorText)]) }
