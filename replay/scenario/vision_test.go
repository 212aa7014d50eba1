package scenario

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImages holds that the pictures are sound, differ in shape, and are the very bytes they have always been.
func TestImages(t *testing.T) {
	got := map[string]string{}
	for _, m := range Images() {
		p, err := png.Decode(bytes.NewReader(m.Bytes))
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		width, height := p.Bounds().Dx(), p.Bounds().Dy()
		switch {
		case m.Name == "tall" && height < 5*width, m.Name == "wide" && width < 5*height, len(m.Bytes) > 600<<10:
			t.Errorf("%s is %d by %d, %d bytes", m.Name, width, height, len(m.Bytes))
		}
		sum := sha256.Sum256(m.Bytes)
		got[m.Name] = hex.EncodeToString(sum[:8])
	}
	want := map[string]string{"chart": "b3d90bbb485d7b12", "document": "9726cd52902a3d6c", "photo": "5b8dde9a3a08cb0d", "shapes": "70d9c0cc7ad90a7c",
		"tall": "8a2073c8a8013c38", "wide": "1deb30a5a4546507"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestVisionRequest holds that the picture is sent whole, with a question, and asks for log-probabilities.
func TestVisionRequest(t *testing.T) {
	own := Image{Name: "own", Bytes: []byte("GIF89a...")}
	r, err := Vision(own).Request(Options{Model: "m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"url":"data:image/gif;base64,` + base64.StdEncoding.EncodeToString(own.Bytes) + `"`, describeImage, `"top_logprobs":5`} {
		if !strings.Contains(string(r.Body), want) {
			t.Errorf("no %s in %s", want, r.Body)
		}
	}
}
