package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func sample() *Document {
	t := Table{Columns: []Column{{Name: "exchange"}, {Name: "rate", Unit: "tok/s", Number: true, Digits: 1}, {Name: "n", Number: true}}, Omitted: 3}
	t.Add(Text("plain"), Number(12.345), Count(7))
	t.Add(Text("hos|tile <b>*x*</b>\n`y` \x1b[31m\u202e"), Figure(exchange.Figure{Value: 3.21, Basis: exchange.BasisEstimated}), Absent("not_reported"))
	t.Add(Text(""), Figure(exchange.Absent("tok/s", "buffered")), Number(math.NaN()))
	return &Document{
		Title: "Revalidation of a_run", Summary: []string{"1 of 3 failed.", "The source was not changed."},
		Facts:    []Fact{{"run", "a_run"}, {"rules", "wire 3 < 4"}},
		Sections: []Section{{ID: "failures", Title: "What failed", Table: t, Notes: []string{"A note."}}},
	}
}

func suite() *Suite {
	return &Suite{
		Name: "a run", Properties: []Fact{{"harness", "1.2"}}, Counts: Counts{Tests: 4, Failures: 1, Errors: 1, Skipped: 1},
		Cases: slices.Values([]TestCase{
			{Class: "exchange", Name: "1"}, {Class: "exchange", Name: "2", State: TestFailed, Message: "json: it is no JSON", Detail: "got \"<x>\"\x00]]>"},
			{Class: "exchange", Name: "3", State: TestError, Message: "cut"}, {Class: "exchange", Name: "4", State: TestSkipped, Message: "left"},
		}),
	}
}

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got\n%s", name, diff)
	}
}

func TestRenderers(t *testing.T) {
	var md, js, xm bytes.Buffer
	if err := sample().Markdown(&md); err != nil {
		t.Fatal(err)
	}
	if err := sample().JSON(&js); err != nil {
		t.Fatal(err)
	}
	if err := suite().JUnit(&xm); err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.md", md.Bytes())
	golden(t, "sample.json", js.Bytes())
	golden(t, "sample.xml", xm.Bytes())
}

// TestHostileTextStaysInItsPlace holds that a text from outside cannot make rows, tags or commands of a terminal.
func TestHostileTextStaysInItsPlace(t *testing.T) {
	var md bytes.Buffer
	if err := sample().Markdown(&md); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(md.String(), "\n") {
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 4 {
			t.Errorf("a row of other cells: %s", line)
		}
	}
	if strings.ContainsAny(md.String(), "\x1b\u202e<") {
		t.Errorf("controls or tags in %q", md.String())
	}
	var xm bytes.Buffer
	if err := suite().JUnit(&xm); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Suites []struct {
			Cases []junitCase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(xm.Bytes(), &back); err != nil {
		t.Fatalf("%v\n%s", err, xm.String())
	}
	if len(back.Suites) != 1 || len(back.Suites[0].Cases) != 4 || back.Suites[0].Cases[1].Failure == nil {
		t.Errorf("read back as %+v", back)
	}
}

func TestCellsInJSON(t *testing.T) {
	for want, c := range map[string]Cell{
		`"a"`: Text("a"), `2`: Count(2), `{"value":null}`: {}, `{"value":null,"reason":"buffered"}`: Absent("buffered"),
		`{"value":1.5,"basis":"measured"}`:     Figure(exchange.Figure{Value: 1.5, Basis: exchange.BasisMeasured}),
		`{"value":null,"reason":"not_finite"}`: Number(math.Inf(1)),
	} {
		if got, err := json.Marshal(c); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// broken fails after n bytes.
type broken struct{ n int }

var errBroken = errors.New("no space")

func (b *broken) Write(p []byte) (int, error) {
	if b.n -= len(p); b.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// TestRenderersTellFailedWrites holds that a report that is not whole is an error.
func TestRenderersTellFailedWrites(t *testing.T) {
	for _, n := range []int{0, 60} {
		if err := sample().Markdown(&broken{n}); !errors.Is(err, errBroken) {
			t.Errorf("Markdown after %d bytes: %v", n, err)
		}
		if err := sample().JSON(&broken{n}); !errors.Is(err, errBroken) {
			t.Errorf("JSON after %d bytes: %v", n, err)
		}
		if err := suite().JUnit(&broken{n}); !errors.Is(err, errBroken) {
			t.Errorf("JUnit after %d bytes: %v", n, err)
		}
	}
}
