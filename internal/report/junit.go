package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"iter"
)

// Suite is a set of verdicts as CI systems read them.
type Suite struct {
	Name       string
	Properties []Fact // what the evidence is
	Counts     Counts // of Cases
	Cases      iter.Seq[TestCase]
}

// Counts say what the cases of a suite come to. A case is in one of them at most.
type Counts struct{ Tests, Failures, Errors, Skipped int }

// TestState is the word that JUnit has for a verdict.
type TestState uint8

// The states of a case.
const (
	TestPassed  TestState = iota
	TestFailed            // judged, and wrong
	TestError             // could not be judged: never a pass
	TestSkipped           // does not apply
)

// TestCase is one verdict.
type TestCase struct {
	Class, Name string
	State       TestState
	Message     string // one line; of every state but a pass
	Detail      string // more, as text
}

type junitCase struct {
	XMLName xml.Name      `xml:"testcase"`
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type junitProperty struct {
	XMLName xml.Name `xml:"property"`
	Name    string   `xml:"name,attr"`
	Value   string   `xml:"value,attr"`
}

// JUnit writes the suite as JUnit XML, one case after the other.
func (s *Suite) JUnit(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	attr := func(name string, value any) xml.Attr {
		return xml.Attr{Name: xml.Name{Local: name}, Value: fmt.Sprint(value)}
	}
	counts := []xml.Attr{attr("name", printable(s.Name)), attr("tests", s.Counts.Tests), attr("failures", s.Counts.Failures),
		attr("errors", s.Counts.Errors), attr("skipped", s.Counts.Skipped)}
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
	for c := range s.Cases {
		if err := enc.Encode(c.junit()); err != nil {
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

func (c *TestCase) junit() junitCase {
	out := junitCase{Class: printable(c.Class), Name: printable(c.Name)}
	m := &junitMessage{Message: printable(c.Message), Text: printable(c.Detail)}
	switch c.State {
	case TestFailed:
		out.Failure = m
	case TestError:
		out.Error = m
	case TestSkipped:
		out.Skipped = m
	}
	return out
}
