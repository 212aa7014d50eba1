package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"iter"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Suite is a set of verdicts as CI systems read them.
type Suite struct {
	Name       string
	Properties []Fact // what the evidence is
	Counts     Counts // of Cases
	Cases      iter.Seq[TestCase]
	// Verdict is what all of it amounts to for a script. Where it is an error and no case is one, such as when a run is
	// incomplete though all that is there passed, it becomes a case of its own: what exits with an error is never green.
	Verdict error
}

// Counts say what the cases of a suite come to. A case is in one of them at most.
type Counts struct{ Tests, Failures, Errors, Skipped int }

// TestState is the word that JUnit has for a verdict.
type TestState uint8

// The states of a case. CI systems are red at a failure and at an error, and take what is skipped for neither good nor bad:
// so they are as red as the command's exit code.
const (
	TestPassed  TestState = iota
	TestFailed            // judged, and wrong
	TestError             // could not be judged: never a pass
	TestSkipped           // does not apply
)

// StateOf is the word that JUnit has for a verdict. What an engine lacks does not apply to it; incomparable, partial and
// not_run are errors, since nothing is known of what they were to tell.
func StateOf(s exchange.VerdictStatus) TestState {
	switch s {
	case exchange.VerdictOK:
		return TestPassed
	case exchange.VerdictFail:
		return TestFailed
	case exchange.VerdictSkipped, exchange.VerdictUnsupported:
		return TestSkipped
	}
	return TestError
}

// Add counts a case.
func (c *Counts) Add(s TestState) {
	c.Tests++
	switch s {
	case TestPassed:
	case TestFailed:
		c.Failures++
	case TestSkipped:
		c.Skipped++
	default:
		c.Errors++
	}
}

// TestCase is one verdict.
type TestCase struct {
	Class, Name string
	State       TestState
	Status      exchange.VerdictStatus // the verdict behind the state; "" where there is none
	Message     string                 // one line; of every state but a pass
	Detail      string                 // more, as text
}

type junitCase struct {
	XMLName xml.Name      `xml:"testcase"`
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitSkipped `xml:"skipped"`
}

type junitMessage struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitSkipped has no type.
type junitSkipped struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type junitProperty struct {
	XMLName xml.Name `xml:"property"`
	Name    string   `xml:"name,attr"`
	Value   string   `xml:"value,attr"`
}

// JUnit writes the suite as JUnit XML, one case after the other. Cases of one name are numbered: readers keep one of each.
func (s *Suite) JUnit(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	attr := func(name string, value any) xml.Attr {
		return xml.Attr{Name: xml.Name{Local: name}, Value: fmt.Sprint(value)}
	}
	n := s.Counts
	whole := s.whole()
	if whole != nil {
		n.Add(whole.State)
	}
	counts := []xml.Attr{attr("name", printable(s.Name)), attr("tests", n.Tests), attr("failures", n.Failures), attr("errors", n.Errors), attr("skipped", n.Skipped)}
	all := xml.StartElement{Name: xml.Name{Local: "testsuites"}, Attr: counts}
	suite := xml.StartElement{Name: xml.Name{Local: "testsuite"}, Attr: counts}
	if err := enc.EncodeToken(all); err != nil {
		return err
	}
	if err := enc.EncodeToken(suite); err != nil {
		return err
	}
	properties := struct {
		XMLName xml.Name `xml:"properties"`
		List    []junitProperty
	}{}
	for _, f := range s.Properties {
		properties.List = append(properties.List, junitProperty{Name: printable(f.Name), Value: printable(f.Value)})
	}
	if len(properties.List) > 0 {
		if err := enc.Encode(properties); err != nil {
			return err
		}
	}
	names := map[[2]string]int{}
	for c := range s.Cases {
		if err := enc.Encode(c.junit(names)); err != nil {
			return err
		}
	}
	if whole != nil {
		if err := enc.Encode(whole.junit(names)); err != nil {
			return err
		}
	}
	if err := enc.EncodeToken(suite.End()); err != nil {
		return err
	}
	if err := enc.EncodeToken(all.End()); err != nil {
		return err
	}
	if err := enc.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// whole is the case that stands for the verdict on all of them; nil where another one tells that it is no pass.
func (s *Suite) whole() *TestCase {
	if s.Verdict == nil || s.Counts.Failures+s.Counts.Errors > 0 {
		return nil
	}
	return &TestCase{Class: "benchproxy", Name: "all of it", State: TestError, Message: s.Verdict.Error()}
}

// junit is a case. names counts those of its name.
func (c *TestCase) junit(names map[[2]string]int) junitCase {
	out := junitCase{Class: printable(c.Class), Name: printable(c.Name)}
	key := [2]string{out.Class, out.Name}
	if names[key]++; names[key] > 1 {
		out.Name += fmt.Sprintf(" (%d)", names[key])
	}
	kind, message, text := string(c.Status), printable(c.Message), printable(c.Detail)
	switch c.State {
	case TestFailed:
		if kind == "" {
			kind = string(exchange.VerdictFail)
		}
		out.Failure = &junitMessage{kind, message, text}
	case TestError:
		if kind == "" {
			kind = string(exchange.VerdictNotRun)
		}
		out.Error = &junitMessage{kind, message, text}
	case TestSkipped:
		if kind != "" {
			message = kind + ": " + message
		}
		out.Skipped = &junitSkipped{message, text}
	}
	return out
}
