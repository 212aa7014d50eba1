package exchange

// KindBodyChanged is the Kind of an intervention that changed the request body: Length bytes at Offset of the client's
// body, which From repeats, became To.
const KindBodyChanged = "body_changed"

// KindNonce is the Kind of an intervention that put a text of its own before the prompt, so that no cache of prefixes
// holds it.
const KindNonce = "planned_nonce"

// KindLimitAdded is the Kind of an intervention that gave a planned request an output limit because its dialect asks for
// one. Nobody wanted an answer of that length.
const KindLimitAdded = "planned_limit_added"

// SentRequest is the request of x as the engine got it, as far as its body goes: the client's body with the changes that
// the interventions tell. ok is false when the body passed as it was, and when it cannot be made because the client's
// body was cut or an intervention does not fit it.
func SentRequest(x *Exchange) (sent Request, ok bool) {
	var body []byte
	for i := range x.Interventions {
		v := &x.Interventions[i]
		if v.Kind != KindBodyChanged {
			continue
		}
		if body == nil {
			if !x.Request.Body.Whole() {
				return Request{}, false
			}
			body = x.Request.Body.Bytes()
		}
		if body, ok = v.splice(body); !ok {
			return Request{}, false
		}
	}
	if !ok {
		return Request{}, false
	}
	sent = x.Request
	sent.Body = NewBody(body)
	return sent, true
}

// splice is body with the change of v made. It is a new slice.
func (v *Intervention) splice(body []byte) ([]byte, bool) {
	n := int64(len(body))
	if v.Offset < 0 || v.Length < 0 || v.Offset > n || v.Length > n-v.Offset {
		return nil, false
	}
	out := make([]byte, 0, len(body)-int(v.Length)+len(v.To))
	out = append(out, body[:v.Offset]...)
	out = append(out, v.To...)
	return append(out, body[v.Offset+v.Length:]...), true
}
