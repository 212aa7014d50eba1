package main

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay"
)

// changes are what every request carries beside what its scenario says. An engine that we start is told at its start to
// leave prompts as they are; one that runs already is told so in each request, which its exchanges say. Where that cannot
// be said the run goes on with a warning.
func (s *benchServer) changes() replay.Changes {
	ch := s.s.plan.Changes
	bare := s.profile(0).Requests.Bare
	if s.process != nil || len(bare) == 0 {
		return ch
	}
	var fields map[string]json.RawMessage
	if s.dialect() != wire.DialectChat || json.Unmarshal(bare, &fields) != nil {
		note(s.b.Stderr, "warning: %s may add tools of its own to prompts, and cannot be told not to in the API it is asked in", s.group.Engine)
		return ch
	}
	edits := slices.Clone(ch.Edits)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		e, err := replay.ParseSet(name + "=" + string(fields[name]))
		if err != nil {
			note(s.b.Stderr, "warning: %s is not told %s: %v", s.group.Engine, name, err)
			continue
		}
		edits = append(edits, e)
	}
	ch.Edits = edits
	return ch
}
