package exchange

import (
	"encoding/hex"
	"strings"
)

// TraceID and SpanID are ids of W3C Trace Context. The zero value is no id.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// String is the id in lower-case hex digits.
func (id TraceID) String() string { return hex.EncodeToString(id[:]) }

// String is the id in lower-case hex digits, "" for none.
func (id SpanID) String() string {
	if id == (SpanID{}) {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// SpanContext names a span of a trace, as the header traceparent does.
type SpanContext struct {
	Trace   TraceID
	Span    SpanID
	Sampled bool // its trace is exported
}

// TraceParentHeader is the name of the header that carries a SpanContext.
const TraceParentHeader = "traceparent"

// TraceStateHeader is the name of the header that carries what the systems of a trace have added to it.
const TraceStateHeader = "tracestate"

// Valid reports whether both ids are there.
func (c SpanContext) Valid() bool { return c.Trace != TraceID{} && c.Span != SpanID{} }

// TraceParent is the value of the header traceparent.
func (c SpanContext) TraceParent() string {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.Span[:])
	if c.Sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// ParseTraceParent reads the value of the header traceparent. ok is false for one that is to be taken for absent. A value
// of a later version may have more behind its flags.
func ParseTraceParent(v string) (c SpanContext, ok bool) {
	v = strings.Trim(v, " \t")
	if len(v) < 55 || v[2] != '-' || v[35] != '-' || v[52] != '-' || len(v) > 55 && (v[:2] == "00" || v[55] != '-') {
		return c, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		dst  []byte
		text string
	}{{version[:], v[:2]}, {c.Trace[:], v[3:35]}, {c.Span[:], v[36:52]}, {flags[:], v[53:55]}} {
		if _, err := hex.Decode(part.dst, []byte(part.text)); err != nil || strings.ContainsAny(part.text, "ABCDEF") {
			return SpanContext{}, false
		}
	}
	c.Sampled = flags[0]&1 != 0
	if version[0] == 0xff || !c.Valid() {
		return SpanContext{}, false
	}
	return c, true
}

// SentTrace is the span that the engine got as its parent, by the interventions of an exchange; ok is false when it got
// none from us.
func SentTrace(interventions []Intervention) (c SpanContext, ok bool) {
	for i := range interventions {
		if v := &interventions[i]; v.Where == SideEngine && v.To != "" && equalFold(v.Name, TraceParentHeader) {
			return ParseTraceParent(v.To)
		}
	}
	return c, false
}
