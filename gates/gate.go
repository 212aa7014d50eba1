package gates

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
)

// Level is how thorough a suite is. What a stronger level has in common with a weaker one it asks in the same words, so that
// its pass holds for both.
type Level int

// The levels, weakest first. Which gates a level runs is what its plan says: scenario.GateLevels.
const (
	LevelDev Level = iota + 1
	LevelFast
	LevelQuick
	LevelFull
)

var levelNames = [...]string{LevelDev: "dev", LevelFast: "fast", LevelQuick: "quick", LevelFull: "full"}

// String is the word the command line knows.
func (l Level) String() string { return levelNames[l] }

// ParseLevel reads dev, fast, quick or full.
func ParseLevel(word string) (Level, error) {
	i := slices.Index(levelNames[:], word)
	if i < int(LevelDev) {
		return 0, fmt.Errorf("read level %q: %w: levels are %s", word, exchange.ErrUsage, strings.Join(levelNames[LevelDev:], ", "))
	}
	return Level(i), nil
}

// Gate is one rule. Its fields are what `gate ls` and `gate explain` print.
type Gate struct {
	ID      string
	Version int        // grows when the same evidence can get another verdict
	Family  string     // answer, tool, golden
	Summary string     // one line
	Explain string     // the rule in full, with what each status means
	Params  func() any // a pointer to zero parameters; nil for a gate without any. What has Validate is asked whether it will do

	// auto says whether the gate can judge an answer by what its own request asked for, and with which parameters. nil for
	// a gate that needs to be told what to expect.
	auto func(*Asked) (params json.RawMessage, applies bool)

	judge func(*Evidence) (Finding, exchange.Needs)
}

// Unasked reports whether the gate can judge an exchange of no suite, by what its own request asked for.
func (g *Gate) Unasked() bool { return g.auto != nil }

// Defaults are the parameters of the gate by name, with the values that mean "not said", as a JSON object; null for a gate
// without any.
func (g *Gate) Defaults() json.RawMessage {
	if g.Params == nil {
		return json.RawMessage("null")
	}
	fields := fieldsOf(reflect.ValueOf(g.Params()).Elem())
	return json.RawMessage("{" + strings.Join(fields, ",") + "}")
}

// fieldsOf are the members of a JSON object for the fields of a struct, also of those that are left out when they are empty.
func fieldsOf(v reflect.Value) (out []string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			out = append(out, fieldsOf(v.Field(i))...)
			continue
		case !f.IsExported(): // made of the others
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if b, err := json.Marshal(v.Field(i).Interface()); err == nil { // parameters are read as JSON: they can be written so
			out = append(out, strconv.Quote(name)+":"+string(b))
		}
	}
	return out
}

// Finding is what a rule says, before it is made a Verdict.
type Finding struct {
	Status  exchange.VerdictStatus
	Lenient exchange.VerdictStatus // "" for a gate without a lenient reading
	Reason  string                 // one line, "" only for ok
	Detail  any                    // written as JSON; nil for none
}

// Findings in one word and a line.
func ok() Finding { return Finding{Status: exchange.VerdictOK} }

func fail(format string, args ...any) Finding {
	return Finding{Status: exchange.VerdictFail, Reason: fmt.Sprintf(format, args...)}
}

func incomparable(format string, args ...any) Finding {
	return Finding{Status: exchange.VerdictIncomparable, Reason: fmt.Sprintf(format, args...)}
}

func notRun(format string, args ...any) Finding {
	return Finding{Status: exchange.VerdictNotRun, Reason: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Finding {
	return Finding{Status: exchange.VerdictSkipped, Reason: fmt.Sprintf(format, args...)}
}

// Judge judges e by the gate of the check, or says what it needs first: with needs the verdict is not_run. A check of
// an unknown gate or with parameters that its gate does not know is an error of the caller's.
func Judge(e *Evidence, check exchange.Check) (exchange.Verdict, exchange.Needs, error) {
	g, found := Lookup(check.Gate)
	if !found {
		return exchange.Verdict{}, nil, fmt.Errorf("judge case %s: %w: no gate %q; `gate ls` lists them", e.Case.ID, exchange.ErrUsage, check.Gate)
	}
	params, err := g.params(check.Params)
	if err != nil {
		return exchange.Verdict{}, nil, fmt.Errorf("judge case %s by %s: %w: %w", e.Case.ID, g.ID, exchange.ErrUsage, err)
	}
	view := *e
	view.params = params
	finding, fit := e.unfit()
	var needs exchange.Needs
	if fit {
		finding, needs = g.judge(&view)
	}
	if len(needs) > 0 {
		finding = notRun("%d answers are needed first: %s", len(needs), needs[0].Why)
	}
	v := exchange.Verdict{
		Gate: g.ID, Version: g.Version, Case: e.Case.ID,
		Status: finding.Status, Lenient: finding.Lenient, Reason: plainLine(finding.Reason), Evidence: e.sums(),
	}
	if finding.Detail != nil {
		if v.Detail, err = json.Marshal(finding.Detail); err != nil {
			return exchange.Verdict{}, nil, fmt.Errorf("write detail of %s: %w", g.ID, err)
		}
	}
	return v, needs, nil
}

// reasonRunes bounds a reason: an engine can put anything into what a reason quotes.
const reasonRunes = 600

// plainLine is a reason as one line of sound text.
func plainLine(reason string) string {
	if !utf8.ValidString(reason) || strings.ContainsAny(reason, "\n\r") {
		reason = oneLine(strings.ToValidUTF8(reason, "\ufffd"))
	}
	if short := firstRunes(reason, reasonRunes); len(short) < len(reason) {
		return short + "..."
	}
	return reason
}

// params reads the parameters of a check: a pointer of the type that the gate states, nil for a gate without any.
func (g *Gate) params(text json.RawMessage) (any, error) {
	if g.Params == nil {
		if len(text) > 0 {
			return nil, fmt.Errorf("gate takes no parameters")
		}
		return nil, nil
	}
	p := g.Params()
	if len(text) > 0 {
		if err := strict.Decode(text, p, "params"); err != nil {
			return nil, err
		}
	}
	if v, ok := p.(validator); ok {
		return p, v.Validate()
	}
	return p, nil
}

// validator are parameters that do not go without some of their fields.
type validator interface{ Validate() error }

// Validate says whether a check names a gate and parameters that it takes. The error wraps exchange.ErrUsage.
func Validate(c exchange.Check) error {
	g, found := Lookup(c.Gate)
	if !found {
		return fmt.Errorf("%w: there is no gate %q; gate ls lists them", exchange.ErrUsage, c.Gate)
	}
	if _, err := g.params(c.Params); err != nil {
		return fmt.Errorf("%w: gate %s: %w", exchange.ErrUsage, g.ID, err)
	}
	return nil
}
