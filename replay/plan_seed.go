package replay

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// seedReason is why a repeat has another seed than the workload's request.
const seedReason = "repeat_seed"

// sampling is where a dialect says how tokens are drawn. Dialects without a seed (Anthropic's, Responses) are not in it.
var sampling = []struct {
	dialect           wire.Dialect
	temperature, seed string
}{
	{wire.DialectChat, "temperature", "seed"},
	{wire.DialectCompletions, "temperature", "seed"},
	{wire.DialectLlamaCpp, "temperature", "seed"},
	{wire.DialectOllama, "options.temperature", "options.seed"},
	{wire.DialectGemini, "generationConfig.temperature", "generationConfig.seed"},
	{wire.DialectSGLang, "sampling_params.temperature", "sampling_params.sampling_seed"},
}

// reseed gives a request of a workload that is repeated a seed of its own, so that repeats are draws of their own that can
// be drawn again. It is for requests that say that they sample: with a temperature above 0, or with a seed and no
// temperature. A greedy one stays as it is, and so does one that leaves both to the engine: it draws anew anyway. A seed of
// the workload stands in the first repeat and is counted up in later ones; a seed of --set stands in all.
func (p *Plan) reseed(q *draft, j *job, turn int) error {
	if p.o.Repeats < 2 || p.o.KeepSeed {
		return nil
	}
	i := slices.IndexFunc(sampling, func(s struct {
		dialect           wire.Dialect
		temperature, seed string
	}) bool {
		return s.dialect == wire.DialectOf(q.target)
	})
	if i < 0 || p.o.Changes.edits(sampling[i].seed) {
		return nil
	}
	b, err := q.json()
	if err != nil {
		return nil // a body that is no JSON says nothing of sampling
	}
	temperature, drawn := b.numberAt(sampling[i].temperature)
	own, seeded := b.numberAt(sampling[i].seed)
	if drawn && temperature <= 0 || !drawn && !seeded {
		return nil
	}
	seed := p.seedOf(j, turn)
	if whole := int64(own); seeded && float64(whole) == own && whole >= 0 && whole < 1<<53 {
		seed = whole + int64(j.repeat)
	}
	path, err := parsePath(sampling[i].seed)
	if err != nil {
		return err
	}
	return q.edit(Edit{path: path, value: strconv.FormatInt(seed, 10)}, seedReason)
}

// seedOf is the seed of a turn in its repeat: of the plan's seed, so that the same plan draws the same, whatever the target.
func (p *Plan) seedOf(j *job, turn int) int64 {
	sum, _ := hex.DecodeString(tokenOf(strconv.FormatUint(p.o.Seed, 10), "seed "+j.turns[turn].ID+" "+strconv.Itoa(j.repeat))) // it is hex
	return int64(binary.BigEndian.Uint32(sum) >> 1)
}

// EditsModel reports whether the edits name the model to ask for, or leave it out.
func (c *Changes) EditsModel() bool { return c.edits("model") }

// edits reports whether the changes set or remove the field at a path.
func (c *Changes) edits(path string) bool {
	return slices.ContainsFunc(c.Edits, func(e Edit) bool { return e.path.String() == path })
}

// numberAt is the number at a path; ok is false for anything else.
func (b jsonBody) numberAt(path string) (v float64, ok bool) {
	p, err := parsePath(path)
	if err != nil {
		return 0, false
	}
	s, ok := b.value(p)
	if !ok {
		return 0, false
	}
	v, err = strconv.ParseFloat(string(b[s.from:s.to]), 64)
	return v, err == nil
}
