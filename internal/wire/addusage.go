package wire

import (
	"bytes"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	usageField  = "stream_options.include_usage"
	usageReason = "usage_requested"
)

// UsageAsk is what AddUsage makes of a request.
type UsageAsk struct {
	Body  []byte                  // what the engine is to get; nil: the client's own
	Notes []exchange.Intervention // what was changed, or why a request that could have been was not
}

// AddUsage asks the engine of a streamed request that is spoken in d, chat or completions, to report usage, where the client does not say
// whether it should. All of the client's bytes stay as they are: the field is spliced in. A request that is out of the
// ordinary is left alone, and the note says why; one that the question does not arise for is left alone without a note.
// body is not changed.
func AddUsage(d Dialect, headers []exchange.Header, body []byte) UsageAsk {
	if d != DialectChat && d != DialectCompletions {
		return UsageAsk{}
	}
	if coding, _ := exchange.HeaderValue(headers, "Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return leftAlone("content_coding")
	}
	if !bytes.Contains(body, []byte(`"stream"`)) {
		return UsageAsk{}
	}
	if len(body) > maxValue {
		return leftAlone("body_too_large")
	}
	open, ok := objectIn(body)
	if !ok {
		return leftAlone("not_a_json_object")
	}
	var w usageWish
	if !w.read(body, open) {
		return UsageAsk{}
	}
	if w.odd == "" && isSigned(headers) {
		w.odd = "signed"
	}
	if w.odd != "" {
		return leftAlone(w.odd)
	}
	note := w.splice
	note.Kind, note.Where, note.Name, note.Reason = exchange.KindBodyChanged, exchange.SideEngine, usageField, usageReason
	note.From = string(body[note.Offset : note.Offset+note.Length])
	out := make([]byte, 0, len(body)+len(note.To))
	out = append(append(out, body[:note.Offset]...), note.To...)
	return UsageAsk{Body: append(out, body[note.Offset+note.Length:]...), Notes: []exchange.Intervention{note}}
}

func leftAlone(why string) UsageAsk {
	return UsageAsk{Notes: []exchange.Intervention{UsageNotAsked(why)}}
}

// UsageNotAsked is the note of a request that was not asked for its usage although --add-usage is set.
func UsageNotAsked(why string) exchange.Intervention {
	return exchange.Intervention{Kind: "body_kept", Where: exchange.SideEngine, Name: usageField, Reason: why}
}

// isSigned reports whether a header vouches for the bytes of the body.
func isSigned(headers []exchange.Header) bool {
	for _, h := range headers {
		switch strings.ToLower(h.Name) {
		case "content-md5", "digest", "content-digest", "repr-digest", "signature", "x-amz-content-sha256":
			return true
		case "authorization":
			if scheme, _, _ := strings.Cut(h.Value, " "); strings.HasPrefix(strings.ToUpper(scheme), "AWS4-") {
				return true
			}
		}
	}
	return false
}

// usageWish is what a request says of streaming and usage, and the change that asks for usage.
type usageWish struct {
	odd    string                // why the request is left alone although it streams
	splice exchange.Intervention // Offset, Length and To
}

// read looks at the fields of the object that begins at open. It reports whether the answer is streamed and its client
// leaves open whether usage is reported; null leaves it open.
func (w *usageWish) read(body []byte, open int) bool {
	streams, options := 0, 0
	asked, streamed := false, false
	last := open + 1 // behind the last value
	eachMember(body, open, func(m member) {
		last = m.to
		value := string(body[m.from])
		switch {
		case bytes.IndexByte(m.key, '\\') >= 0:
			w.odd = "escaped_field_name"
		case string(m.key) == "stream":
			streams++
			streamed = value == "t"
		case string(m.key) == "stream_options":
			options++
			asked = w.options(body, m)
		}
	})
	if options == 0 {
		w.splice = exchange.Intervention{Offset: int64(last), To: `,"stream_options":{"include_usage":true}`}
	}
	if streams > 1 || options > 1 {
		w.odd = "repeated_field"
		return true
	}
	return streamed && !asked
}

// options reads stream_options and reports whether the client decides about usage itself.
func (w *usageWish) options(body []byte, m member) (asked bool) {
	switch body[m.from] {
	case 'n':
		w.splice = exchange.Intervention{Offset: int64(m.from), Length: int64(m.to - m.from), To: `{"include_usage":true}`}
		return false
	case '{':
	default:
		w.odd = "stream_options_is_no_object"
		return false
	}
	seen := 0
	w.splice = exchange.Intervention{Offset: int64(m.from + 1), To: `"include_usage":true`}
	place := w.splice // behind the last option, unless include_usage is there as null
	eachMember(body, m.from, func(o member) {
		place = exchange.Intervention{Offset: int64(o.to), To: `,"include_usage":true`}
		switch {
		case bytes.IndexByte(o.key, '\\') >= 0:
			w.odd = "escaped_field_name"
		case string(o.key) == "continuous_usage_stats" && body[o.from] == 't':
			w.odd = "continuous_usage" // with our field it would put usage into every event
		case string(o.key) == "include_usage":
			seen++
			asked = body[o.from] != 'n'
			w.splice = exchange.Intervention{Offset: int64(o.from), Length: int64(o.to - o.from), To: "true"}
		}
	})
	if seen == 0 {
		w.splice = place
	}
	if seen > 1 {
		w.odd = "repeated_field"
		return false
	}
	return asked
}

// member is one field of a JSON object in a text: its name as spelled, and where its value begins and ends.
type member struct {
	key      []byte
	from, to int
}

// objectIn is where the one JSON object begins that b is; ok is false when b is anything else.
func objectIn(b []byte) (open int, ok bool) {
	open = skipSpace(b, 0)
	return open, open < len(b) && b[open] == '{' && valid(b)
}

// eachMember calls fn for each field of the object that begins at open.
func eachMember(b []byte, open int, fn func(member)) {
	object := b[open:]
	eachField(object, func(key, value []byte) {
		from := open + cap(object) - cap(value) // both end with the memory of b
		fn(member{key, from, from + len(value)})
	})
}
