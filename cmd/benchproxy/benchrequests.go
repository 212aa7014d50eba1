package main

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/bench"
	"github.com/benchproxy/benchproxy/replay/bridge"
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

// native is how the cells of the tool_use suite are asked of an engine whose own API says more of tools than the one it shares
// with others, in which all other cells are asked; nil for other engines.
func (s *benchServer) native() *bench.Manner {
	if !s.hasOwnAPI() {
		return nil
	}
	b, ch := s.s.bridge, s.s.plan.Changes
	b.to = ollamaID
	ch.Bridges = []bridge.Endpoint{b.endpoint(s.s.targets[0], s.profile(0))}
	return &bench.Manner{Spelling: translatedSpelling(), Changes: ch}
}
