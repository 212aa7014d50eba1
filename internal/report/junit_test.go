package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// junitRules are what readers of JUnit XML allow: of each element its attributes, those that must be there marked with !,
// and its children.
func junitRules() map[string]struct{ attrs, children []string } {
	return map[string]struct{ attrs, children []string }{
		"testsuites": {strings.Fields("name tests failures errors skipped time"), []string{"testsuite"}},
		"testsuite":  {strings.Fields("!name !tests !failures !errors skipped time timestamp hostname id package"), strings.Fields("properties testcase system-out system-err")},
		"properties": {nil, []string{"property"}},
		"property":   {strings.Fields("!name !value"), nil},
		"testcase":   {strings.Fields("!name !classname time assertions status"), strings.Fields("skipped error failure system-out system-err")},
		"skipped":    {[]string{"message"}, nil},
		"error":      {strings.Fields("!type message"), nil},
		"failure":    {strings.Fields("!type message"), nil},
	}
}

// junitReader reads a document as the strictest reader would.
type junitReader struct {
	t      *testing.T
	rules  map[string]struct{ attrs, children []string }
	stack  []string
	name   string            // of the case
	cases  map[string]string // what each came to
	stated []Counts
}

// strictJUnit reads a document, and gives what each case came to.
func strictJUnit(t *testing.T, raw []byte) (cases map[string]string, counts Counts) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(raw))
	r := &junitReader{t: t, rules: junitRules(), cases: map[string]string{}}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			r.begin(e.Name.Local, r.attributes(e))
		case xml.EndElement:
			r.stack = r.stack[:len(r.stack)-1]
		}
	}
	for _, state := range r.cases {
		counts.Add(map[string]TestState{"passed": TestPassed, "failure": TestFailed, "error": TestError, "skipped": TestSkipped}[state])
	}
	for _, s := range r.stated {
		if s != counts {
			t.Errorf("it states %+v and holds %+v", s, counts)
		}
	}
	if len(r.stated) != 2 {
		t.Errorf("%d suites", len(r.stated))
	}
	return r.cases, counts
}

// attributes are those of an element, which must be allowed where it stands.
func (r *junitReader) attributes(e xml.StartElement) map[string]string {
	r.t.Helper()
	rule, known := r.rules[e.Name.Local]
	if !known || len(r.stack) > 0 && !slices.Contains(r.rules[r.stack[len(r.stack)-1]].children, e.Name.Local) {
		r.t.Fatalf("element %s below %v", e.Name.Local, r.stack)
	}
	attrs := map[string]string{}
	for _, a := range e.Attr {
		if attrs[a.Name.Local] = a.Value; !slices.Contains(rule.attrs, a.Name.Local) && !slices.Contains(rule.attrs, "!"+a.Name.Local) {
			r.t.Errorf("%s has an attribute %s", e.Name.Local, a.Name.Local)
		}
	}
	for _, a := range rule.attrs {
		if must, there := strings.CutPrefix(a, "!"); there && attrs[must] == "" {
			r.t.Errorf("%s lacks %s: %v", e.Name.Local, must, attrs)
		}
	}
	return attrs
}

// begin takes an element in.
func (r *junitReader) begin(element string, attrs map[string]string) {
	r.t.Helper()
	r.stack = append(r.stack, element)
	switch element {
	case "testsuites", "testsuite":
		r.stated = append(r.stated, Counts{number(r.t, attrs["tests"]), number(r.t, attrs["failures"]), number(r.t, attrs["errors"]), number(r.t, attrs["skipped"])})
	case "testcase":
		r.name = attrs["classname"] + "/" + attrs["name"]
		if _, twice := r.cases[r.name]; twice {
			r.t.Errorf("two cases are called %s: readers keep one", r.name)
		}
		r.cases[r.name] = "passed"
	case "failure", "error", "skipped":
		if r.cases[r.name] != "passed" {
			r.t.Errorf("%s is %s and %s", r.name, r.cases[r.name], element)
		}
		r.cases[r.name] = element
	}
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestJUnitOfVerdicts holds that a document is red exactly when something failed or is not known, whatever names and
// reasons are, and that no case is lost for its name.
func TestJUnitOfVerdicts(t *testing.T) {
	all := map[exchange.VerdictStatus]string{
		exchange.VerdictOK: "passed", exchange.VerdictFail: "failure", exchange.VerdictSkipped: "skipped", exchange.VerdictUnsupported: "skipped",
		exchange.VerdictNotRun: "error", exchange.VerdictIncomparable: "error", exchange.VerdictPartial: "error", "": "error", "a word of tomorrow": "error",
	}
	s := &Suite{Name: "all \x00 of <it>"}
	want := map[string]string{}
	var list []TestCase
	for status, state := range all {
		for i := range 2 {
			list = append(list, TestCase{Class: "gate", Name: string("case " + status), State: StateOf(status), Status: status, Message: "why\x1b\n\"<&>", Detail: "]]>"})
			name := strings.TrimSpace("gate/case " + string(status))
			if i > 0 {
				name += " (2)"
			}
			want[name] = state
		}
		s.Counts.Add(StateOf(status))
		s.Counts.Add(StateOf(status))
	}
	s.Cases = slices.Values(list)
	var b bytes.Buffer
	if err := s.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	got, _ := strictJUnit(t, b.Bytes())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, kind := range []string{`type="fail"`, `type="incomparable"`, `type="partial"`, `message="unsupported: `} {
		if !strings.Contains(b.String(), kind) {
			t.Errorf("no %s in %s", kind, b.String())
		}
	}
}

// TestJUnitOfTheWhole holds that what is no pass as a whole is red though each of its cases passed.
func TestJUnitOfTheWhole(t *testing.T) {
	for verdict, c := range map[error]struct {
		state TestState
		want  string
	}{
		nil:                                   {TestPassed, "0 0"},
		fmt.Errorf("the run is incomplete"):   {TestPassed, "0 1"},
		fmt.Errorf("nothing could be judged"): {TestSkipped, "0 1"},
		exchange.ErrGate:                      {TestFailed, "1 0"},
		exchange.ErrMiss:                      {TestError, "0 1"},
	} {
		s := &Suite{Name: "s", Verdict: verdict, Cases: slices.Values([]TestCase{{Class: "a", Name: "b", State: c.state}})}
		s.Counts.Add(c.state)
		var b bytes.Buffer
		if err := s.JUnit(&b); err != nil {
			t.Fatal(err)
		}
		if _, n := strictJUnit(t, b.Bytes()); fmt.Sprint(n.Failures, " ", n.Errors) != c.want {
			t.Errorf("%v with a case of state %d: %+v", verdict, c.state, n)
		}
		if verdict != nil && c.state != TestFailed && c.state != TestError && !strings.Contains(b.String(), verdict.Error()) {
			t.Errorf("%v is not told: %s", verdict, b.String())
		}
	}
	var b bytes.Buffer
	if err := suite().JUnit(&b); err != nil {
		t.Fatal(err)
	}
	strictJUnit(t, b.Bytes())
}
