package telemetry

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Wire types of protocol buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// Bits of the flags of a span above the eight of W3C: it is known whether its parent came from elsewhere, and it did.
const (
	flagRemoteKnown = 0x100
	flagRemote      = 0x200
)

// protobuf is a message of OTLP that grows (opentelemetry/proto/trace/v1). It is written straight from spans: by way of the
// structures of the protocol's library it would cost several times as much. Fields of their type's zero value are left out,
// as the form wants it.
type protobuf []byte

func (p *protobuf) tag(field, kind int) { *p = binary.AppendUvarint(*p, uint64(field<<3|kind)) }

func (p *protobuf) varint(field int, v uint64) {
	if v != 0 {
		p.tag(field, wireVarint)
		*p = binary.AppendUvarint(*p, v)
	}
}

func (p *protobuf) count(field, n int) { p.varint(field, uint64(min(max(n, 0), math.MaxUint32))) }

func (p *protobuf) fixed64(field int, v uint64) {
	if v != 0 {
		p.tag(field, wireFixed64)
		*p = binary.LittleEndian.AppendUint64(*p, v)
	}
}

func (p *protobuf) instant(field int, at time.Time) { p.fixed64(field, uint64(max(0, at.UnixNano()))) }

func (p *protobuf) flags(field int, own, remote trace.SpanContext) {
	v := uint32(own.TraceFlags()) | flagRemoteKnown
	if remote.IsRemote() {
		v |= flagRemote
	}
	p.tag(field, wireFixed32)
	*p = binary.LittleEndian.AppendUint32(*p, v)
}

func (p *protobuf) bytes(field int, v []byte) {
	p.tag(field, wireBytes)
	*p = binary.AppendUvarint(*p, uint64(len(v)))
	*p = append(*p, v...)
}

func (p *protobuf) text(field int, v string) {
	if v != "" {
		p.present(field, v)
	}
}

// present adds a text that is there also when it is empty: one of several that a field may be.
func (p *protobuf) present(field int, v string) {
	p.tag(field, wireBytes)
	*p = binary.AppendUvarint(*p, uint64(len(v)))
	*p = append(*p, v...)
}

// open begins a message within the message; close ends the one that open gave. Most are so short that their length takes
// the one byte that is left for it.
func (p *protobuf) open(field int) (from int) {
	p.tag(field, wireBytes)
	*p = append(*p, 0)
	return len(*p)
}

// close puts the length before what was added since open.
func (p *protobuf) close(from int) {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(*p)-from))
	if n > 1 {
		*p = slices.Insert(*p, from, length[1:n]...)
	}
	(*p)[from-1] = length[0]
}

// spans adds the request that exports spans of one origin: ExportTraceServiceRequest.
func (p *protobuf) spans(list []sdktrace.ReadOnlySpan) {
	about, scope := list[0].Resource(), list[0].InstrumentationScope()
	of := p.open(1) // ResourceSpans
	at := p.open(1) // Resource
	p.attributes(1, about.Attributes())
	p.close(at)
	within := p.open(2) // ScopeSpans
	at = p.open(1)      // InstrumentationScope
	p.text(1, scope.Name)
	p.text(2, scope.Version)
	p.close(at)
	for _, s := range list {
		at = p.open(2)
		p.span(s)
		p.close(at)
		runtime.Gosched() // a batch takes milliseconds, and what moves streams goes first
	}
	p.close(within)
	p.text(3, about.SchemaURL())
	p.close(of)
}

// span adds the fields of a Span.
func (p *protobuf) span(s sdktrace.ReadOnlySpan) {
	own, parent := s.SpanContext(), s.Parent()
	id, span := own.TraceID(), own.SpanID()
	p.bytes(1, id[:])
	p.bytes(2, span[:])
	p.text(3, own.TraceState().String())
	if above := parent.SpanID(); above.IsValid() {
		p.bytes(4, above[:])
	}
	p.text(5, s.Name())
	p.varint(6, uint64(kindNumber(s.SpanKind())))
	p.instant(7, s.StartTime())
	p.instant(8, s.EndTime())
	p.attributes(9, s.Attributes())
	p.count(10, s.DroppedAttributes())
	p.events(s.Events())
	p.count(12, s.DroppedEvents())
	p.links(s.Links())
	p.count(14, s.DroppedLinks())
	at := p.open(15)
	status := s.Status()
	p.text(2, status.Description)
	p.varint(3, statusNumber(status.Code))
	p.close(at)
	p.flags(16, own, parent)
}

func (p *protobuf) events(list []sdktrace.Event) {
	for i := range list {
		e := &list[i]
		at := p.open(11)
		p.instant(1, e.Time)
		p.text(2, e.Name)
		p.attributes(3, e.Attributes)
		p.count(4, e.DroppedAttributeCount)
		p.close(at)
	}
}

func (p *protobuf) links(list []sdktrace.Link) {
	for i := range list {
		c := list[i].SpanContext
		id, span := c.TraceID(), c.SpanID()
		at := p.open(13)
		p.bytes(1, id[:])
		p.bytes(2, span[:])
		p.attributes(4, list[i].Attributes)
		p.count(5, list[i].DroppedAttributeCount)
		p.flags(6, c, c)
		p.close(at)
	}
}

// attributes adds each as a KeyValue.
func (p *protobuf) attributes(field int, list []attribute.KeyValue) {
	for i := range list {
		at := p.open(field)
		p.text(1, string(list[i].Key))
		value := p.open(2)
		p.value(list[i].Value)
		p.close(value)
		p.close(at)
	}
}

// value adds the field of an AnyValue. Kinds that no span of ours has are told as text.
func (p *protobuf) value(v attribute.Value) {
	switch v.Type() {
	case attribute.STRING:
		p.present(1, v.AsString())
	case attribute.BOOL:
		p.tag(2, wireVarint)
		n := byte(0)
		if v.AsBool() {
			n = 1
		}
		*p = append(*p, n)
	case attribute.INT64:
		p.tag(3, wireVarint)
		*p = binary.AppendUvarint(*p, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		p.tag(4, wireFixed64)
		*p = binary.LittleEndian.AppendUint64(*p, math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		list := p.open(5)
		for _, text := range v.AsStringSlice() {
			at := p.open(1)
			p.present(1, text)
			p.close(at)
		}
		p.close(list)
	default:
		p.present(1, v.String())
	}
}

// kindNumber is the number of a kind in OTLP.
func kindNumber(k trace.SpanKind) int {
	switch k {
	case trace.SpanKindInternal:
		return 1
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	case trace.SpanKindProducer:
		return 4
	case trace.SpanKindConsumer:
		return 5
	}
	return 0
}

func statusNumber(c codes.Code) uint64 {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}

// partial is what a collector did not take of a request, and why: the answer ExportTraceServiceResponse.
type partial struct {
	rejected int64
	why      string
}

// fields calls f with each field of a message: with the bytes of one that has a length, else with its number. It reports
// whether the message is whole.
func fields(b []byte, f func(field int, v uint64, data []byte)) bool {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return false
		}
		b = b[n:]
		var v uint64
		var data []byte
		size := 0
		switch tag & 7 {
		case wireVarint:
			if v, size = binary.Uvarint(b); size <= 0 {
				return false
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return false
			}
			size = n + int(length)
			data = b[n:size]
		default:
			return false
		}
		if size > len(b) {
			return false
		}
		f(int(tag>>3), v, data)
		b = b[size:]
	}
	return true
}

// readPartial reads an ExportTraceServiceResponse; ok is false for what is none.
func readPartial(b []byte) (p partial, ok bool) {
	whole := true
	ok = fields(b, func(field int, _ uint64, data []byte) {
		if field != 1 || data == nil {
			return
		}
		whole = fields(data, func(field int, v uint64, data []byte) {
			switch field {
			case 1:
				p.rejected = int64(v)
			case 2:
				p.why = string(data)
			}
		}) && whole
	})
	return p, ok && whole
}

// readPartialJSON is readPartial for the form of JSON, in which a number of 64 bits is a text.
func readPartialJSON(b []byte) (p partial, ok bool) {
	var doc struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if len(b) > 0 && json.Unmarshal(b, &doc) != nil {
		return p, false
	}
	p.why = doc.PartialSuccess.ErrorMessage
	if n := doc.PartialSuccess.RejectedSpans; n != "" {
		var err error
		if p.rejected, err = n.Int64(); err != nil {
			return p, false
		}
	}
	return p, true
}

// readStatus is the text of a google.rpc.Status, with which a collector says why it took nothing; "" for what is none.
func readStatus(b []byte) (text string) {
	if !fields(b, func(field int, _ uint64, data []byte) {
		if field == 2 {
			text = string(data)
		}
	}) {
		return ""
	}
	return text
}
