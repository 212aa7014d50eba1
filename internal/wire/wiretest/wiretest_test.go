package wiretest

import (
	"strings"
	"testing"
)

func TestUnknownKeyIsFatal(t *testing.T) {
	for _, s := range []string{
		`{"files":[{"file":"x.txt","surprise":1}]}`,
		`{"files":[{"file":"x.txt","expected":{"surprise":1}}]}`,
		`{"surprise":[]}`,
	} {
		if _, err := decodeIndex([]byte(s)); err == nil || !strings.Contains(err.Error(), "surprise") {
			t.Errorf("%s: got error %v", s, err)
		}
	}
}

// TestCapturesAgreeWithTheirIndex holds the counts of the index against the files.
func TestCapturesAgreeWithTheirIndex(t *testing.T) {
	all := Captures(t)
	if len(all) != 135 {
		t.Errorf("found %d captures, want 135", len(all))
	}
	for _, c := range all {
		differs := c.ID() == "ollama/api-show" // its row tells of an earlier take
		if !differs && (c.Facts.Bytes != len(c.Raw) || c.Facts.Recvs != len(c.Recvs)) {
			t.Errorf("%s: %d bytes in %d receive calls, want %d in %d", c.ID(), len(c.Raw), len(c.Recvs), c.Facts.Bytes, c.Facts.Recvs)
		}
		sum := 0
		for _, r := range c.Reads {
			sum += r.Size
		}
		if sum != len(c.Body) {
			t.Errorf("%s: reads bring %d body bytes of %d", c.ID(), sum, len(c.Body))
		}
		if want := c.Facts.End == "complete"; c.Whole != want {
			t.Errorf("%s: whole = %v, its end is %q", c.ID(), c.Whole, c.Facts.End)
		}
		if c.Chunked != (c.Facts.Chunks >= 0) {
			t.Errorf("%s: chunked = %v, want %d chunks", c.ID(), c.Chunked, c.Facts.Chunks)
		}
	}
}

func TestVectorsAndProbesLoad(t *testing.T) {
	if n := len(Vectors(t)); n != 81 {
		t.Errorf("found %d vectors, want 81", n)
	}
	if n := len(Probes(t)); n != 12 {
		t.Errorf("found %d probes, want 12", n)
	}
}
