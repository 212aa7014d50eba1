package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Materials are what scenarios are made of besides this package.
type Materials struct {
	// Window is the number of tokens that a prompt and its answer may have together, of one request; 0 where it is not
	// known. Scenarios that are sized by it are refused then.
	Window int
	// CharsPerToken is what the prose of this package came to with the model at hand, as the engine counted it; 0 = about
	// what present vocabularies come to. Only what is sized by the window is made longer or shorter by it.
	CharsPerToken float64
	// Image, Audio and Frames (pictures of a video, in order) stand in the place of those that the package makes. Their
	// kinds are told by their bytes.
	Image, Audio []byte
	Frames       [][]byte
	// Broken says of a modality why what the user gave for it is of no use. Its scenario is refused then: ours in its place
	// would be another measurement.
	Broken map[string]error
	Own    []Scenario // of the user, see ReadOwn
}

func (m Materials) charsPerToken() float64 {
	if m.CharsPerToken > 0 {
		return m.CharsPerToken
	}
	return charsPerToken
}

// Pressures are the parts of a window, in percent, that pressure_sweep fills.
func Pressures() []int { return []int{10, 25, 50, 75, 90} }

// Entry is a name that people may write, and what it stands for.
type Entry struct {
	Name    string // a form where it holds <N>
	Summary string // one line
	Group   bool   // it stands for several scenarios: see Expand
}

// groups are the names that stand for several.
func groups() map[string][]string {
	sweep := make([]string, 0, len(Pressures()))
	for _, p := range Pressures() {
		sweep = append(sweep, fmt.Sprintf("context_pressure_%d", p))
	}
	var loom []string
	for _, s := range loomScenarios() {
		loom = append(loom, s.ID)
	}
	return map[string][]string{"pressure_sweep": sweep, "loom": loom}
}

// List is what can be named, in the order in which people should read it: the scenarios of the run matrix, the forms that
// hold a size, groups, and those of the validation suites.
func List() []Entry {
	var out []Entry
	for _, s := range matrix(Materials{}) {
		out = append(out, Entry{Name: s.TagName(), Summary: s.Summary})
	}
	for _, f := range sizedForms() {
		out = append(out, Entry{Name: f.form, Summary: f.summary})
	}
	out = append(out, Entry{"loom", "all of loom_*", true}, Entry{"pressure_sweep", "context_pressure_<P> for growing parts of the window", true})
	for _, s := range slices.Concat(Suite(SuiteValidation), Suite(SuitePolicies), Suite(SuiteToolUse)) {
		if !slices.ContainsFunc(out, func(e Entry) bool { return e.Name == s.ID }) { // a name is that of the matrix first
			out = append(out, Entry{Name: s.ID, Summary: s.Summary})
		}
	}
	return out
}

// matrix are the scenarios of the run matrix whose names hold no size.
func matrix(m Materials) []Scenario {
	out := slices.Concat(textScenarios(), mediaScenarios(m))
	for _, s := range slices.Concat(workflowScenarios(), codeScenarios()) {
		if s.Suite == SuiteMatrix {
			out = append(out, s)
		}
	}
	return append(out, loomScenarios()...)
}

// Named is the scenario of a name: one of the user's, one of the run matrix (by the name that stands in its tags), one
// of a form that holds a size, or any other by its id. The error wraps exchange.ErrUsage for a name that is none, with
// those that are; ErrNoWindow where it is sized by a window that is not known; and ErrMaterial where the user's image,
// audio or video is of no use.
func Named(name string, m Materials) (Scenario, error) {
	if i := slices.IndexFunc(m.Own, func(s Scenario) bool { return s.ID == name }); i >= 0 {
		return m.Own[i], nil
	}
	for _, s := range matrix(m) {
		if s.TagName() == name {
			return s, s.usable(m)
		}
	}
	if s, known := Lookup(name); known && s.Modality == "" {
		return s, nil
	}
	for _, f := range sizedForms() {
		if size, ok := f.size(name); ok {
			return f.make(name, size, m)
		}
	}
	if members, group := groups()[name]; group {
		return Scenario{}, fmt.Errorf("%w: %s stands for several scenarios: %s", exchange.ErrUsage, name, strings.Join(members, " "))
	}
	return Scenario{}, fmt.Errorf("%w: unknown scenario %q; there are %s", exchange.ErrUsage, name, strings.Join(validNames(m), " "))
}

// validNames are those that an error lists: of the run matrix, the forms, groups, and the user's.
func validNames(m Materials) (out []string) {
	for _, s := range slices.Concat(m.Own, matrix(m)) {
		if s.Suite != SuiteMatrix || !strings.HasPrefix(s.ID, "loom_") {
			out = append(out, s.TagName())
		}
	}
	for _, f := range sizedForms() {
		out = append(out, f.form)
	}
	return append(out, "loom", "pressure_sweep", "and those of the validation suites")
}

// Expand puts in the place of each name that stands for several what it stands for, and leaves out what comes again.
// Other names are not looked at.
func Expand(all []string) []string {
	var out []string
	known := groups()
	for _, name := range all {
		members, group := known[name]
		if !group {
			members = []string{name}
		}
		for _, member := range members {
			if !slices.Contains(out, member) {
				out = append(out, member)
			}
		}
	}
	return out
}
