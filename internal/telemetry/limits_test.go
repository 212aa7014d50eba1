package telemetry

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestLimits holds that spans keep to the limits of the variables, and say what they lost.
func TestLimits(t *testing.T) {
	r := newRig(t, nil, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "3", "OTEL_SPAN_EVENT_COUNT_LIMIT", "2", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "1",
		"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "4", "OTEL_SPAN_LINK_COUNT_LIMIT", "0")
	run := r.NewRun()
	run.Served(Served{Method: "GET", Target: "/é😀xyz", Trace: theirs("01"), Start: wall()})
	r.pass(wholeAnswer(), false)
	spans := r.byName(t)
	s := spans["chat asked"]
	a := attrsOf(s.Attributes)
	if len(a) != 3 || s.DroppedAttributes < 20 || len(s.Events) != 2 || s.DroppedEvents != 6 || s.Events[1].Name != eventEnd {
		t.Errorf("attributes %v and %d lost, events %d and %d lost", a, s.DroppedAttributes, len(s.Events), s.DroppedEvents)
	}
	if last := s.Events[1]; len(last.Attributes) != 1 || last.DroppedAttributeCount != 2 {
		t.Errorf("the last event has %v, and lost %d", last.Attributes, last.DroppedAttributeCount)
	}
	for name, v := range a {
		if utf8.RuneCountInString(v) > 4 {
			t.Errorf("%s is %q", name, v)
		}
	}
	if answer := spans["GET"]; len(answer.Links) != 0 || answer.DroppedLinks != 1 {
		t.Errorf("links are %v, and %d lost", answer.Links, answer.DroppedLinks)
	}
}

// TestTextsAreCutAtCharacters holds where texts of values are cut.
func TestTextsAreCutAtCharacters(t *testing.T) {
	var list attributes
	list.str("short", "ab")
	list.str("long", "é😀x"+strings.Repeat("y", 10))
	list.strs("several", []string{"abcd", "é"})
	list.int("n", 123456)
	kept, lost := Limits{Length: 3}.first(list, -1)
	if d := cmp.Diff(map[string]string{"short": "ab", "long": "é😀x", "several": `["abc","é"]`, "n": "123456"}, attrsOf(kept)); d != "" || lost != 0 {
		t.Errorf("%d lost (-want +got)\n%s", lost, d)
	}
}

// TestNoAttributeIsToldTwice holds what the SDK would mend: the names of a span's attributes, and of an event's, are its own.
func TestNoAttributeIsToldTwice(t *testing.T) {
	r := newRig(t, nil, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT")
	run := r.NewRun()
	run.Miss(Miss{Method: "odd", Target: "/v1/models?a=1", Nearest: "N", Differs: []string{"$"}})
	run.Served(Served{Method: "POST", Target: "/x", Status: 500, Recorded: "X", Cut: true})
	r.pass(wholeAnswer(), true)
	plain := streamed("")
	plain.Request.Method, plain.Request.Target, plain.Response.Status = "GET", "/v1/models", 502
	r.pass(plain, true)
	run.End(&exchange.Run{Mode: "serve"})
	r.Close()
	spans := r.to.GetSpans()
	if len(spans) != 7 {
		t.Fatalf("%d spans", len(spans))
	}
	for _, s := range spans {
		lists := [][]attribute.KeyValue{s.Attributes}
		for _, e := range s.Events {
			lists = append(lists, e.Attributes)
		}
		for _, list := range lists {
			if len(attrsOf(list)) != len(list) {
				t.Errorf("%s has an attribute twice: %v", s.Name, list)
			}
		}
	}
}
