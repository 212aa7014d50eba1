package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// wellFormed holds that a chart is XML that any reader takes.
func wellFormed(t *testing.T, s SVG) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(s)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well formed: %v\n%.400s", err, s)
		}
	}
}

// TestHostileText holds that no text of outside becomes markup, and that nothing in it steers.
func TestHostileText(t *testing.T) {
	for _, hostile := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "\x1b[31mred", "a\xff\xfeb", "\u202egnp.exe", "\x00", "]]>", "&lt;"} {
		c := newCanvas(10, 10, "x", hostile)
		c.alone()
		c.text("end", 1, 1, hostile)
		c.group(hostile, func() { c.rect("f1", 0, 0, 1, 1) })
		got := c.end()
		wellFormed(t, got)
		for _, bad := range []string{"<script", "<img", "\x1b", "\u202e", "\x00", "\xff"} {
			if strings.Contains(string(got), bad) {
				t.Errorf("%q got through: %s", bad, got)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.5: "0.5", 12.3456: "12.35", 123.456: "123.5", 1234.56: "1235", 9999.4: "9999", 9999.6: "10\u202f000", 1234567: "1\u202f234\u202f567", -1234567: "-1\u202f234\u202f567",
		0.0625: "0.0625", 0.00001234: "1.2e-05", math.Inf(1): "–", math.NaN(): "–", 100: "100", -2.5: "-2.5",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
	for ms, want := range map[float64]string{0: "0 ms", 0.25: "250 us", 1.5: "1.50 ms", 42: "42.0 ms", 1500: "1.50 s", 600000: "10.0 min", math.NaN(): "–"} {
		if got := Milliseconds(ms); got != want {
			t.Errorf("Milliseconds(%v) = %q, want %q", ms, got, want)
		}
	}
}

// TestTicks holds that ticks are round, inside, and about as many as asked for, at any scale.
func TestTicks(t *testing.T) {
	for _, hi := range []float64{0.003, 0.7, 1, 3, 9.99, 42, 1000, 123456} {
		for _, lo := range []float64{0, -hi, hi / 3} {
			got := ticks(lo, hi, 5)
			if len(got) < 2 || len(got) > 7 {
				t.Errorf("ticks(%v, %v): %v", lo, hi, got)
			}
			for _, v := range got {
				if v < lo-1e-9*hi || v > hi*(1+1e-6) {
					t.Errorf("ticks(%v, %v) go out: %v", lo, hi, got)
				}
			}
		}
	}
	for _, none := range [][2]float64{{1, 1}, {2, 1}, {0, math.Inf(1)}, {math.NaN(), 1}} {
		if got := ticks(none[0], none[1], 5); got != nil {
			t.Errorf("ticks(%v): %v", none, got)
		}
	}
}

func TestCoordinates(t *testing.T) {
	for v, want := range map[float64]string{1.25: "1.3", math.NaN(): "0", math.Inf(-1): "0", -0.01: "0", 100: "100"} {
		if got := coordinate(v); got != want {
			t.Errorf("coordinate(%v) = %q, want %q", v, got, want)
		}
	}
	if a, b := seriesClass("s", 0), seriesClass("f", 7); a != "s1" || b != "f2" {
		t.Errorf("classes %s, %s", a, b)
	}
}
