package pysource

import (
	"strings"
	"testing"
)

// TestHostileSourcesEnd holds that no source is read over and over. Each of these would take a minute if it were.
func TestHostileSourcesEnd(t *testing.T) {
	const n = 50_000
	for name, source := range map[string]string{
		"names without end": `f"` + strings.Repeat(`\N{`, n),
		"names with an end": `"` + strings.Repeat(`\N{`, n) + `}`,
		"fields":            `f"` + strings.Repeat("{a=  ", n),
		"empty fields":      `f"` + strings.Repeat("{a}", n) + `"`,
		"formats":           `f"{a:` + strings.Repeat("{b}", n) + `}"`,
		"matches":           strings.Repeat("match (a)\n", n/4),
		"withs":             strings.Repeat("with (a): b\n", n/4),
		"a long match":      "match (" + strings.Repeat("a, ", n) + ")\n",
		"a long with":       "with (" + strings.Repeat("a, ", n) + ") as b: c\n",
		"joined lines":      strings.Repeat("\\\n", n),
		"comments":          strings.Repeat("#\n ", n),
		"targets":           strings.Repeat("a = ", n) + "a\n",
		"attributes":        "a" + strings.Repeat(".b", n) + "\n",
		"blanks":            strings.Repeat(" ", 4*n),
		"commas":            "(" + strings.Repeat("a,", n) + ")\n",
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := Parse(source); err == nil {
				m.Function("f")
			} else if err.Error() == "" {
				t.Error("an error without a text")
			}
		})
	}
}
