package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

const hostile = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(1)>\x1b[31m\u202e\xff http://evil.example"

// full is a document with everything that a report can hold.
func full() *Document {
	ids := []exchange.ID{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"}
	t := Table{Formula: "a / b <x>", Source: "runs", Sample: "n of each row", Spread: "95 % interval", Omitted: 2, Columns: []Column{
		{Name: "Run", Key: true}, {Name: "median", Unit: "tok/s", Number: true, Digits: 1, Better: Higher}, {Name: "ratio", Number: true, Digits: 2, Suffix: "×"}, {Name: "note"}}}
	t.Add(Text("a"), Number(50).Based(exchange.BasisMeasured).Of(ids...).Spread(Spread{Lo: 48, Hi: 52, N: 12, Kind: SpreadInterval}), Number(1.2).Toned(Good).In("evidence"), Text("fine"))
	t.Add(Text("b"), Number(40).Based(exchange.BasisEstimated).Spread(Spread{Lo: 30, Hi: 52, N: 3, Kind: SpreadRange}), Number(0.8).Toned(Bad), AbsentAs("partial 1/3", "partial").Toned(Marked))
	t.Add(Text(hostile), AbsentAs("n/a", "no_record"), Absent("failed").Titled("request error"), Text("").Of("unknown"))
	list := Table{Columns: []Column{{Name: "Exchange"}}}
	list.Add(Text(string(ids[0])).Anchored(string(ids[0])))
	return &Document{Title: "A report " + hostile, Summary: []string{"b is slower.", "a is faster."}, Facts: []Fact{{"made", "today"}}, Sections: []Section{
		{ID: "figures", Title: "Figures", Lead: []string{"Words."}, Table: t, Notes: []string{"¹ a note"}, Charts: []Chart{{"c1", "A chart", chart.Bars(chart.BarPlot{Groups: []chart.BarGroup{{Bars: []chart.Bar{{Label: "a", Value: 1}}}}})}},
			Excerpts: []Excerpt{{Title: "They part", Shared: "The answer\nis ", Sides: []string{"a", "b"}, Texts: []string{"42.", hostile}, Refs: []string{string(ids[0]), ""}}}},
		{ID: "outer", Title: "Outer", Parts: []Section{{ID: "evidence", Title: "Evidence", Folded: true, Table: list}}},
	}}
}

func TestPageGolden(t *testing.T) {
	var page, md, js, table, badge bytes.Buffer
	d := full()
	for _, write := range []error{d.HTML(&page), d.Markdown(&md), d.JSON(&js), d.Sections[0].Table.CSV(&table), Badge{"decode <b>", "1.20×", Good}.SVG(&badge)} {
		if write != nil {
			t.Fatal(write)
		}
	}
	golden(t, "full.html", page.Bytes())
	golden(t, "full.md", md.Bytes())
	golden(t, "full.json", js.Bytes())
	golden(t, "full.csv", table.Bytes())
	golden(t, "badge.svg", badge.Bytes())
}

var (
	scripts = regexp.MustCompile(`(?s)<script[^>]*>.*?</script>`)
	// loads are what makes a browser ask the network for something.
	loads = regexp.MustCompile(`(?i)(src|srcset|href|action|data|poster|background|xlink:href)\s*=\s*"([^"]*)"|url\(|@import|http-equiv="refresh"`)
)

// elements are those of a page, which must be well-formed.
func elements(t *testing.T, page string) (out []xml.StartElement) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(page))
	dec.Strict = true
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		if el, ok := tok.(xml.StartElement); ok {
			out = append(out, el.Copy())
		}
	}
}

func pageOf(t *testing.T, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPageIsWellFormed holds that a page is well-formed, that ids are its own, and that every reference leads to one.
func TestPageIsWellFormed(t *testing.T) {
	ids, refs := map[string]bool{}, []string{}
	d := full()
	d.Sections = append(d.Sections, d.Sections...) // the same twice has its ids once
	for _, el := range elements(t, pageOf(t, d)) {
		for _, a := range el.Attr {
			switch {
			case a.Name.Local == "id" && ids[a.Value]:
				t.Errorf("two elements have the id %s", a.Value)
			case a.Name.Local == "id":
				ids[a.Value] = true
			case a.Name.Local == "href":
				refs = append(refs, a.Value)
			case strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style":
				t.Errorf("%s has the attribute %s, which the policy forbids", el.Name.Local, a.Name.Local)
			}
		}
	}
	for _, r := range refs {
		if !strings.HasPrefix(r, "#") || !ids[r[1:]] {
			t.Errorf("%s leads nowhere on the page", r)
		}
	}
	if len(refs) < 4 {
		t.Errorf("references: %v", refs)
	}
}

// TestPageIsAlone holds that no text of a page is markup, and that nothing in it leads off the page.
func TestPageIsAlone(t *testing.T) {
	page := pageOf(t, full())
	if n := len(scripts.FindAllString(page, -1)); n != 2 {
		t.Errorf("%d scripts: the numbers and ours are all there is", n)
	}
	for _, m := range loads.FindAllStringSubmatch(scripts.ReplaceAllString(page, ""), -1) {
		if !strings.HasPrefix(m[2], "#") {
			t.Errorf("the page loads %q", m[0])
		}
	}
	for _, bad := range []string{"<img", "alert(1)</script>", "\x1b", "\u202e", "\xff"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q got through", bad)
		}
	}
	for _, policy := range []string{"default-src &#39;none&#39;", digestEscaped(chart.Style + pageCSS), digestEscaped(pageJS)} {
		if !strings.Contains(page, policy) {
			t.Errorf("the policy lacks %s", policy)
		}
	}
}

func digestEscaped(text string) string { return strings.ReplaceAll(digest(text), "'", "&#39;") }

// TestNumbersOfThePage holds that the numbers another page compares are those of the rows with a name of their own.
func TestNumbersOfThePage(t *testing.T) {
	var names []string
	for _, n := range full().numbers() {
		names = append(names, n.Name)
	}
	want := []string{"figures | a | median", "figures | a | ratio", "figures | b | median", "figures | b | ratio"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	d := full()
	d.Sections[0].Table.Rows[1][0] = Text("a")
	if n := len(d.numbers()); n != 2 {
		t.Errorf("a row with the name of another gives %d numbers", n)
	}
}

// TestJSONReadsBack holds that a report is the same to every renderer but for its drawings after it was written and read.
func TestJSONReadsBack(t *testing.T) {
	var first, second bytes.Buffer
	d := full()
	d.Title, d.Sections[0].Table.Rows[2][0], d.Sections[0].Excerpts[0].Texts[1] = "A report", Text("c"), "43." // JSON has no invalid bytes
	if err := d.JSON(&first); err != nil {
		t.Fatal(err)
	}
	back, err := Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := back.JSON(&second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.String(), second.String()); diff != "" {
		t.Error(diff)
	}
	for in, kind := range map[string]error{`{`: nil, `[]`: nil, `{"title":"x"}`: exchange.ErrUsage, `{"schema":1}`: exchange.ErrUsage, `{"schema":99,"title":"x"}`: exchange.ErrDamaged, `{"schema":1,"title":"x","sections":[{"table":{"rows":[[[]]]}}]}`: nil} {
		if _, err := Read(strings.NewReader(in)); err == nil || kind != nil && !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", in, err, kind)
		}
	}
}

func TestCompare(t *testing.T) {
	doc := func(v float64, s *Spread) *Document {
		d := full()
		c := Number(v)
		if s != nil {
			c = c.Spread(*s)
		}
		d.Sections[0].Table.Rows[0][1] = c
		return d
	}
	sure := func(v float64) *Spread { return &Spread{Lo: v - 1, Hi: v + 1, N: 12, Kind: SpreadInterval} }
	for name, c := range map[string]struct {
		was, is    *Document
		moved, bad bool
		unknown    bool
	}{
		"worse":        {doc(50, sure(50)), doc(40, sure(40)), true, true, false},
		"better":       {doc(40, sure(40)), doc(50, sure(50)), true, false, false},
		"overlap":      {doc(50, sure(50)), doc(51.5, sure(51.5)), false, false, false},
		"within 2 %":   {doc(500, &Spread{Lo: 499, Hi: 501, N: 9, Kind: SpreadInterval}), doc(505, &Spread{Lo: 504, Hi: 506, N: 9, Kind: SpreadInterval}), false, false, false},
		"no spread":    {doc(50, nil), doc(40, sure(40)), false, false, true},
		"few samples":  {doc(50, &Spread{Lo: 49, Hi: 51, N: 3, Kind: SpreadRange}), doc(40, sure(40)), false, false, true},
		"many samples": {doc(50, &Spread{Lo: 49, Hi: 51, N: 6, Kind: SpreadRange}), doc(40, sure(40)), true, true, false},
	} {
		changes := Compare(c.is, c.was)
		i := slices.IndexFunc(changes, func(ch Change) bool { return ch.Row == "a" && ch.Column == "median" })
		if i < 0 || len(changes) != 2 {
			t.Fatalf("%s: %+v", name, changes)
		}
		if ch := changes[i]; ch.Moved != c.moved || ch.Worse != c.bad || ch.Better != (c.moved && !c.bad) || ch.Unknown != c.unknown {
			t.Errorf("%s: %+v", name, ch)
		}
	}
	short := full()
	short.Sections[0].Table.Rows = short.Sections[0].Table.Rows[:1]
	if gone, added := Missing(short, full()); gone != 2 || added != 0 {
		t.Errorf("%d gone, %d added", gone, added)
	}
	if gone, added := Missing(full(), short); gone != 0 || added != 2 {
		t.Errorf("%d gone, %d added", gone, added)
	}
}

func TestBriefKeepsToItsLimit(t *testing.T) {
	d := full()
	if got := d.Brief("outer"); len(got.Sections) != 1 || got.Title != d.Title {
		t.Errorf("brief: %+v", got)
	}
	whole, err := d.MarkdownWithin(1 << 20)
	if err != nil || !bytes.Contains(whole, []byte("## Outer")) {
		t.Fatalf("%v: %s", err, whole)
	}
	cut, err := d.MarkdownWithin(900)
	if err != nil || len(cut) > 900 || !bytes.Contains(cut, []byte("sections are left out")) || !bytes.Contains(cut, []byte("b is slower")) {
		t.Errorf("%v: %d bytes, %s", err, len(cut), cut)
	}
	if none, err := d.MarkdownWithin(1); err != nil || !bytes.Contains(none, []byte("2 more sections")) {
		t.Errorf("%v: %s", err, none)
	}
}

// TestSummaryOfAJob holds that a report of more than GitHub takes, 1 MiB, is cut at whole sections and says what is left out.
func TestSummaryOfAJob(t *testing.T) {
	const limit = 1 << 20
	d := &Document{Title: "Large", Summary: []string{"a sentence"}}
	for i := range 40 {
		s := Section{ID: "s" + strconv.Itoa(i), Title: "Section " + strconv.Itoa(i)}
		s.Table.Columns = []Column{{Name: "text"}}
		s.Table.Add(Text(strings.Repeat("é", 50_000)))
		d.Sections = append(d.Sections, s)
	}
	got, err := d.MarkdownWithin(limit)
	if err != nil || len(got) > limit || len(got) < limit-120_000 || !utf8.Valid(got) {
		t.Fatalf("%v: %d bytes", err, len(got))
	}
	shown := bytes.Count(got, []byte("\n## "))
	if want := fmt.Sprintf("\n%d more sections are left out here", 40-shown); shown == 0 || !bytes.Contains(got, []byte(want)) {
		t.Errorf("%d sections shown, %q is not there", shown, want)
	}
}

// TestCSVIsNoProgram holds that a text that a spreadsheet would run is a text.
func TestCSVIsNoProgram(t *testing.T) {
	table := Table{Columns: []Column{{Name: "x"}, {Name: "y"}}}
	table.Add(Text("=cmd|' /C calc'!A0"), Number(-1.5))
	table.Add(Text("@x"), Absent("failed"))
	var b bytes.Buffer
	if err := table.CSV(&b); err != nil {
		t.Fatal(err)
	}
	if want := "x,y\n'=cmd|' /C calc'!A0,-1.5\n'@x,\n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
	for _, n := range []int{0, 3} {
		if err := table.CSV(&broken{n}); !errors.Is(err, errBroken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	if err := full().HTML(&broken{100}); !errors.Is(err, errBroken) {
		t.Errorf("HTML: %v", err)
	}
}

func FuzzCellJSON(f *testing.F) {
	for _, s := range []string{`1`, `"a"`, `null`, `{"value":null,"reason":"x"}`, `{"value":2,"basis":"estimated","spread":{"lo":1,"hi":3,"n":4,"kind":"range"}}`, `{"text":"x","refs":["a"]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var c Cell
		if json.Unmarshal(in, &c) != nil {
			return
		}
		once, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again Cell
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s became %s (%v)", once, twice, err)
		}
	})
}
