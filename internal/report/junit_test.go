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

// strictJUnit reads a document as the strictest reader would, and gives what each case came to.
func strictJUnit(t *testing.T, raw []byte) (cases map[string]string, counts Counts) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(raw))
	rules := junitRules()
	cases = map[string]string{}
	var stack []string
	var stated []Counts
	name := ""
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
			rule, known := rules[e.Name.Local]
			if !known || len(stack) > 0 && !slices.Contains(rules[stack[len(stack)-1]].children, e.Name.Local) {
				t.Fatalf("element %s below %v", e.Name.Local, stack)
			}
			attrs := map[string]string{}
			for _, a := range e.Attr {
				if attrs[a.Name.Local] = a.Value; !slices.Contains(rule.attrs, a.Name.Local) && !slices.Contains(rule.attrs, "!"+a.Name.Local) {
					t.Errorf("%s has an attribute %s", e.Name.Local, a.Name.Local)
				}
			}
			for _, a := range rule.attrs {
				if must, there := strings.CutPrefix(a, "!"); there && attrs[must] == "" {
					t.Errorf("%s lacks %s: %v", e.Name.Local, must, attrs)
				}
			}
			stack = append(stack, e.Name.Local)
			switch e.Name.Local {
			case "testsuites", "testsuite":
				stated = append(stated, Counts{number(t, attrs["tests"]), number(t, attrs["failures"]), number(t, attrs["errors"]), number(t, attrs["skipped"])})
			case "testcase":
				name = attrs["classname"] + "/" + attrs["name"]
				if _, twice := cases[name]; twice {
					t.Errorf("two cases are called %s: readers keep one", name)
				}
				cases[name] = "passed"
			case "failure", "error", "skipped":
				if cases[name] != "passed" {
					t.Errorf("%s is %s and %s", name, cases[name], e.Name.Local)
				}
				cases[name] = e.Name.Local
			}
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
	for _, state := range cases {
		counts.Add(map[string]TestState{"passed": TestPassed, "failure": TestFailed, "error": TestError, "skipped": TestSkipped}[state])
	}
	for _, s := range stated {
		if s != counts {
			t.Errorf("it states %+v and holds %+v", s, counts)
		}
	}
	if len(stated) != 2 {
		t.Errorf("%d suites", len(stated))
	}
	return cases, counts
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
