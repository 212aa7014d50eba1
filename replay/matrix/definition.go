package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
)

// definition is everything that a plan knows of what changes the numbers of a cell.
type definition struct {
	Axes        Axes                `json:"axes"`
	Scenario    string              `json:"scenario"`
	Version     int                 `json:"version"`
	Asks        string              `json:"asks,omitempty"` // digest of what is asked, where the user states it
	Concurrency int                 `json:"concurrency"`
	Thinking    bool                `json:"thinking"`
	MaxTokens   int                 `json:"max_tokens"`
	Stream      bool                `json:"stream"`
	Repeats     int                 `json:"repeats"`
	Warmup      int                 `json:"warmup"`
	Profile     string              `json:"profile"`
	Override    json.RawMessage     `json:"override,omitempty"` // of the profile
	Transport   string              `json:"transport"`
	Model       ModelFiles          `json:"model"` // without directories
	Steps       int                 `json:"steps"`
	Values      map[string]string   `json:"values,omitempty"`
	Args        []string            `json:"args,omitempty"`
	Env         map[string]string   `json:"env,omitempty"`
	Spelling    []engines.LaunchArg `json:"spelling,omitempty"`
	Split       string              `json:"split,omitempty"`
	Devices     []string            `json:"devices,omitempty"`
	Slots       int                 `json:"slots,omitempty"`   // as the config states them: what follows from the other cells
	Context     int                 `json:"context,omitempty"` // of a sitting has no part, so that partial runs add up
	Asset       string              `json:"asset,omitempty"`   // of the user, without directory
}

// place is what a result of this machine rests on besides: another build of an engine is another cell.
type place struct {
	Program string `json:"program,omitempty"`
	File    string `json:"file,omitempty"`
	URL     string `json:"url,omitempty"`
}

// seal gives every cell its definition, and the plan its hash.
func (b *builder) seal() {
	type sealed struct {
		Cell string   `json:"cell"`
		Is   string   `json:"is"`
		Skip SkipKind `json:"skip,omitempty"`
	}
	type sealedGroup struct {
		Slots  int      `json:"slots"`
		Window int      `json:"window"`
		Cells  []sealed `json:"cells"`
	}
	var all []sealedGroup
	for i := range b.plan.Groups {
		g := &b.plan.Groups[i]
		sg := sealedGroup{Slots: g.Launch.Slots, Window: g.Launch.Window}
		for j := range g.Cells {
			c := &g.Cells[j]
			d := b.define(g, c)
			s := sealed{Cell: c.Name, Is: digest(d)}
			if c.Skip != nil {
				s.Skip = c.Skip.Kind
			}
			sg.Cells = append(sg.Cells, s)
			c.Definition = DefinitionScheme + digest(struct {
				Is    definition `json:"is"`
				Place place      `json:"place"`
			}{d, place{g.Launch.Program, g.Launch.File, g.Launch.URL}})[:16]
		}
		all = append(all, sg)
	}
	b.plan.Hash = PlanScheme + digest(struct {
		Groups []sealedGroup `json:"groups"`
		Order  string        `json:"order"`
	}{all, b.c.Defaults.Order})
}

func (b *builder) define(g *Group, c *Cell) definition {
	e, s, l := b.c.engine(g.Engine), b.c.scenario(c.Scenario), &g.Launch
	model := ModelFiles{
		Name: l.Model.Name, Weights: base(l.Model.Weights), Projector: base(l.Model.Projector), MTPDraft: base(l.Model.MTPDraft), Drafter: base(l.Model.Drafter),
	}
	return definition{
		Axes: c.Axes, Scenario: or(c.Build, c.Scenario), Version: c.Version, Asks: s.Digest, Concurrency: c.Concurrency, Thinking: c.Thinking, MaxTokens: c.MaxTokens,
		Stream: c.Stream, Repeats: c.Repeats, Warmup: c.Warmup, Profile: l.Profile, Override: b.c.Profiles[l.Profile], Transport: l.Transport,
		Model: model, Steps: l.Steps, Values: l.Registry.Values, Args: l.Registry.Args, Env: l.Registry.Env, Spelling: l.Spelling, Split: l.SplitMode,
		Devices: l.Devices, Slots: e.Slots, Context: or(b.c.Defaults.Context, e.Context),
		Asset: base(map[string]string{"image": b.c.Paths.Image, "audio": b.c.Paths.Audio, "video": b.c.Paths.Video}[s.Modality]),
	}
}

// base is the name of a file, of this system or another.
func base(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(strings.ReplaceAll(file, `\`, "/"))
}

// digest is the SHA-256 of a value's JSON, whose keys encoding/json sorts.
func digest(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("matrix: a definition cannot be written: " + err.Error()) // it holds texts and numbers
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
