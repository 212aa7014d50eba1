package telemetry

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
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
