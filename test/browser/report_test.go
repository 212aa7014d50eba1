package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestReportOfTheDemo opens the report that the demo leaves, as a file: it asks for nothing else, needs no script, and is
// read in light and dark, on a screen and on a phone.
func TestReportOfTheDemo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	cmd := exec.Command(setting(t, "TEST_BENCHPROXY"), "demo", "--store", filepath.Join(dir, "store"), "--report", file)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the demo: %v\n%s", err, out)
	}
	b := open(t)
	b.page = "file://" + file
	b.visit(b.page)
	shown := `[...document.querySelectorAll("%")].filter(e => e.getBoundingClientRect().height > 20 && getComputedStyle(e).visibility === "visible").length`
	for what, least := range map[string]int{"table": 10, "svg": 5, "h2": 8} {
		if n := is[int](b, replaced(shown, what)); n < least {
			t.Errorf("%d of %s are to be seen, and %d at least are expected", n, what, least)
		}
	}
	if n := is[int](b, `[...document.querySelectorAll("svg text")].filter(e => e.getBoundingClientRect().width === 0 && e.textContent.trim() !== "" && e.closest("details:not([open])") === null).length`); n > 0 {
		t.Errorf("%d words of charts have no width", n)
	}
	b.picture("report")
	light := is[string](b, `getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color`)
	b.dark()
	if dark := is[string](b, `getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color`); dark == light {
		t.Errorf("light and dark are both %s", dark)
	}
	b.picture("report-dark")
	b.phone()
	b.visit(b.page)
	if is[bool](b, `document.documentElement.scrollWidth > innerWidth + 1`) {
		t.Error("a phone has to scroll sideways")
	}
	b.picture("report-phone")
	b.clean("report")
}
