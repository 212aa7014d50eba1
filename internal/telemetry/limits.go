package telemetry

import (
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// Limits bound spans, as the variables of the specification say. A negative one is no bound.
type Limits struct {
	Length          int // characters of a text
	Attributes      int // of a span
	Events          int // of a span
	EventAttributes int // of an event
	Links           int // of a span
}

// dropped is what a span had over its limits.
type dropped struct{ attributes, events, links int }

// limits reads them. What a variable of spans does not say, the one of all attributes does.
func (e *environment) limits() Limits {
	length := e.limit("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", e.limit("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", -1))
	return Limits{
		Length:          length,
		Attributes:      e.limit("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", e.limit("OTEL_ATTRIBUTE_COUNT_LIMIT", 128)),
		Events:          e.limit("OTEL_SPAN_EVENT_COUNT_LIMIT", 128),
		EventAttributes: e.limit("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", 128),
		Links:           e.limit("OTEL_SPAN_LINK_COUNT_LIMIT", 128),
	}
}

// limit is a variable with a number; a negative one is no bound.
func (e *environment) limit(name string, otherwise int) int {
	v := e.get(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		e.note("%s %q is not a number; it is %d", name, v, otherwise)
		return otherwise
	}
	return max(n, -1)
}

// apply cuts a span at its limits and counts what it loses. Attributes and links that came first stay, and events that
// came last.
func (l Limits) apply(s *span) (lost dropped) {
	s.attrs, lost.attributes = l.first(s.attrs, l.Attributes)
	if n := len(s.events) - l.Events; l.Events >= 0 && n > 0 {
		s.events, lost.events = s.events[n:], n
	}
	for i := range s.events {
		e := &s.events[i]
		e.Attributes, e.DroppedAttributeCount = l.first(e.Attributes, l.EventAttributes)
	}
	if n := len(s.links) - l.Links; l.Links >= 0 && n > 0 {
		s.links, lost.links = s.links[:l.Links], n
	}
	return lost
}

// first are the first attributes, with their texts cut.
func (l Limits) first(list []attribute.KeyValue, count int) (kept []attribute.KeyValue, lost int) {
	if n := len(list) - count; count >= 0 && n > 0 {
		list, lost = list[:count], n
	}
	if l.Length >= 0 {
		for i := range list {
			list[i].Value = l.shorten(list[i].Value)
		}
	}
	return list, lost
}

// shorten cuts the texts of a value.
func (l Limits) shorten(v attribute.Value) attribute.Value {
	switch v.Type() {
	case attribute.STRING:
		return attribute.StringValue(l.text(v.AsString()))
	case attribute.STRINGSLICE:
		texts := v.AsStringSlice()
		for i := range texts {
			texts[i] = l.text(texts[i])
		}
		return attribute.StringSliceValue(texts)
	}
	return v
}

// text is the first characters of s.
func (l Limits) text(s string) string {
	if len(s) <= l.Length {
		return s
	}
	n := 0
	for i := range s {
		if n == l.Length {
			return s[:i]
		}
		n++
	}
	return s
}
