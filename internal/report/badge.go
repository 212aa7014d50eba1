package report

import (
	"fmt"
	"html"
	"io"
	"unicode/utf8"
)

// Badge is a number of a report for a page of one's own: two words beside each other.
type Badge struct {
	Label string
	Value string
	Tone  Tone
}

// badgeGlyph is the width of a character in the badge's font, and badgePad what stands around the words.
const (
	badgeGlyph = 6.6
	badgePad   = 12.0
)

// SVG writes the badge as a file of its own. Its tone is told by a sign as well as by a color.
func (b Badge) SVG(w io.Writer) error {
	fill, sign := "#5b6470", ""
	switch b.Tone {
	case Good:
		fill, sign = "#17795e", "▲ "
	case Bad:
		fill, sign = "#b3261e", "▼ "
	case Marked:
		fill, sign = "#8a5a00", "◆ "
	}
	label, value := printable(b.Label), sign+printable(b.Value)
	left := float64(utf8.RuneCountInString(label))*badgeGlyph + badgePad
	right := float64(utf8.RuneCountInString(value))*badgeGlyph + badgePad
	text := func(x float64, s string) string {
		return fmt.Sprintf(`<text x="%.1f" y="14" text-anchor="middle" fill="#fff">%s</text>`, x, html.EscapeString(s))
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.1f" height="20" role="img" aria-label="%s"><title>%s</title>`+
		`<rect width="%.1f" height="20" rx="3" fill="#2b323c"/><rect x="%.1f" width="%.1f" height="20" rx="3" fill="%s"/>`+
		`<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="11">%s%s</g></svg>`+"\n",
		left+right, html.EscapeString(label+": "+value), html.EscapeString(label+": "+value), left+right, left, right, fill,
		text(left/2, label), text(left+right/2, value))
	return err
}
