package report

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed" // the style sheet and the script of the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"github.com/benchproxy/benchproxy/internal/chart"
)

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// page is a document on its way to HTML.
type page struct {
	*bufio.Writer                 // it keeps its first error until Flush
	anchors       map[string]bool // what refs can lead to on this page
	written       map[string]bool // ids that elements have already
}

// id is the attribute of an element that refs lead to, "" when an earlier one has that id.
func (p *page) id(name string) string {
	if p.written[name] {
		return ""
	}
	p.written[name] = true
	return " id=\"" + attribute(name) + "\""
}

// put writes markup; the first error is kept for Flush.
func (p *page) put(markup string) { _, _ = p.WriteString(markup) }

// HTML writes the document as one page that holds all it needs: no request leaves it, and it reads without its script,
// which only sets another saved report beside it.
func (d *Document) HTML(w io.Writer) error {
	p := &page{Writer: bufio.NewWriterSize(w, 64<<10), anchors: map[string]bool{}, written: map[string]bool{"beside": true, "other": true, "differences": true, "numbers": true}}
	for i := range d.Sections {
		p.learn(&d.Sections[i])
	}
	p.head(d)
	p.contents(d)
	p.put("<main>\n")
	for i := range d.Sections {
		p.section(&d.Sections[i], 2)
	}
	p.put("</main>\n")
	if err := p.compared(d); err != nil {
		return err
	}
	fmt.Fprintf(p, "<script>%s</script>\n</body>\n</html>\n", pageJS)
	return p.Flush()
}

// learn gathers the anchors of a section.
func (p *page) learn(s *Section) {
	p.anchors[s.ID] = true
	for _, row := range s.Table.Rows {
		for i := range row {
			if row[i].anchor != "" {
				p.anchors[row[i].anchor] = true
			}
		}
	}
	for i := range s.Parts {
		p.learn(&s.Parts[i])
	}
}

// digest is a text as a content security policy names it.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *page) head(d *Document) {
	style := chart.Style + pageCSS
	policy := "default-src 'none'; style-src " + digest(style) + "; script-src " + digest(pageJS) + "; img-src data:; base-uri 'none'; form-action 'none'"
	fmt.Fprintf(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" content=\"%s\"/>\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n"+
		"<meta name=\"referrer\" content=\"no-referrer\"/>\n<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n",
		html.EscapeString(policy), text(d.Title), style)
	fmt.Fprintf(p, "<header>\n<h1>%s</h1>\n", text(d.Title))
	for i, s := range d.Summary {
		class := "more"
		if i == 0 {
			class = "lead"
		}
		fmt.Fprintf(p, "<p class=\"%s\">%s</p>\n", class, text(s))
	}
	p.put("<dl class=\"facts\">\n")
	for _, f := range d.Facts {
		fmt.Fprintf(p, "<div><dt>%s</dt><dd>%s</dd></div>\n", text(f.Name), text(f.Value))
	}
	p.put("</dl>\n</header>\n")
}

// contents is the list of sections.
func (p *page) contents(d *Document) {
	p.put("<nav aria-label=\"Contents\"><ul>\n")
	for _, s := range d.Sections {
		fmt.Fprintf(p, "<li><a href=\"#%s\">%s</a></li>\n", attribute(s.ID), text(s.Title))
	}
	p.put("</ul></nav>\n")
}

func (p *page) section(s *Section, level int) {
	if s.Folded {
		fmt.Fprintf(p, "<details class=\"section\"%s><summary><h%d>%s</h%d></summary>\n", p.id(s.ID), level, text(s.Title), level)
	} else {
		fmt.Fprintf(p, "<section%s>\n<h%d>%s</h%d>\n", p.id(s.ID), level, text(s.Title), level)
	}
	for _, words := range s.Lead {
		fmt.Fprintf(p, "<p>%s</p>\n", text(words))
	}
	for i := range s.Charts {
		p.chart(&s.Charts[i])
	}
	if len(s.Table.Columns) > 0 {
		p.table(&s.Table, s.Title)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(p, "<p class=\"note\">%s</p>\n", text(n))
	}
	for i := range s.Excerpts {
		p.excerpt(&s.Excerpts[i])
	}
	for i := range s.Parts {
		p.section(&s.Parts[i], min(level+1, 6))
	}
	if s.Folded {
		p.put("</details>\n")
	} else {
		p.put("</section>\n")
	}
}

func (p *page) chart(c *Chart) {
	fmt.Fprintf(p, "<figure%s>\n%s\n<figcaption>%s</figcaption>\n</figure>\n", p.id(c.ID), c.SVG, text(c.Title))
}

func (p *page) table(t *Table, caption string) {
	fmt.Fprintf(p, "<div class=\"scroll\"><table aria-label=\"%s\">\n<thead><tr>", attribute(caption))
	for _, c := range t.Columns {
		class := ""
		if c.Number {
			class = " class=\"n\""
		}
		unit := ""
		if c.Unit != "" {
			unit = " <small>" + text(c.Unit) + "</small>"
		}
		fmt.Fprintf(p, "<th scope=\"col\"%s>%s%s</th>", class, text(c.Name), unit)
	}
	p.put("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		p.put("<tr>")
		for i := range row {
			p.cell(&row[i], t.Columns[i])
		}
		p.put("</tr>\n")
	}
	p.put("</tbody></table></div>\n")
	if t.Omitted > 0 {
		fmt.Fprintf(p, "<p class=\"note\">%d more rows are left out here.</p>\n", t.Omitted)
	}
	if told := t.tells(); len(told) > 0 {
		p.put("<dl class=\"tells\">\n")
		for _, f := range told {
			fmt.Fprintf(p, "<div><dt>%s</dt><dd>%s</dd></div>\n", f.Name, text(f.Value))
		}
		p.put("</dl>\n")
	}
}

// cell writes one value. One that rests on exchanges or sections of this page leads there, and names them in its title.
func (p *page) cell(c *Cell, col Column) {
	var classes []string
	if col.Number {
		classes = append(classes, "n")
	}
	if c.kind == absentCell {
		classes = append(classes, "none")
	}
	if c.tone != "" {
		classes = append(classes, string(c.tone))
	}
	p.put("<td")
	if len(classes) > 0 {
		fmt.Fprintf(p, " class=\"%s\"", strings.Join(classes, " "))
	}
	if c.anchor != "" {
		p.put(p.id(c.anchor))
	}
	title := c.tell(col)
	if len(c.refs) > 0 {
		title = strings.TrimPrefix(title+"; of "+strings.Join(c.refs, " "), "; ")
	}
	if title != "" {
		fmt.Fprintf(p, " title=\"%s\"", attribute(title))
	}
	shown := text(c.Show(col))
	if len(c.refs) > 0 && p.anchors[c.refs[0]] {
		shown = "<a href=\"#" + attribute(c.refs[0]) + "\">" + shown + "</a>"
	}
	p.put(">" + shown + "</td>")
}

func (p *page) excerpt(e *Excerpt) {
	fmt.Fprintf(p, "<div class=\"excerpt\"><h4>%s</h4><div class=\"sides\">\n", text(e.Title))
	for i, words := range e.Texts {
		side := text(e.Sides[i])
		if i < len(e.Refs) && p.anchors[e.Refs[i]] {
			side = "<a href=\"#" + attribute(e.Refs[i]) + "\">" + side + "</a>"
		}
		fmt.Fprintf(p, "<div><h5>%s</h5><pre>…%s<mark>▸</mark><em>%s</em></pre></div>\n", side, lines(e.Shared), lines(words))
	}
	p.put("</div></div>\n")
}

// compared is the part that sets another saved report beside this one, and the numbers it needs for that. Without a script
// it is not shown.
func (p *page) compared(d *Document) error {
	var data bytes.Buffer
	if err := json.NewEncoder(&data).Encode(d.numbers()); err != nil { // escapes <, > and &
		return fmt.Errorf("write numbers: %w", err)
	}
	fmt.Fprintf(p, "<section id=\"beside\" hidden=\"hidden\">\n<h2>Beside another report</h2>\n<p>Open another saved report (HTML) of benchproxy here to see which numbers differ. "+
		"Nothing is sent anywhere.</p>\n<p><input type=\"file\" id=\"other\" accept=\".html,text/html\"/></p>\n<div id=\"differences\"></div>\n</section>\n"+
		"<script type=\"application/json\" id=\"numbers\">%s</script>\n", data.Bytes())
	return nil
}

// text is a text on one line as HTML shows it.
func text(s string) string { return html.EscapeString(printable(s)) }

// attribute is a text within the quotes of an attribute.
func attribute(s string) string { return html.EscapeString(printable(s)) }

// lines is a text with its line ends as HTML shows it.
func lines(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r != unicode.ReplacementChar && unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, s))
}
