package scenario

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"strings"
	"testing"
)

// sent are the parts of the one message of a request.
func sent(t *testing.T, r Request) (parts []struct {
	Type  string
	Text  string
	Image *struct{ URL string }          `json:"image_url"`
	Audio *struct{ Data, Format string } `json:"input_audio"`
}) {
	t.Helper()
	var b struct {
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Messages[0].Content, &parts); err != nil {
		t.Fatal(err)
	}
	return parts
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPicturesAreWhatTheyShow reads them with another program and looks at the places that matter.
func TestPicturesAreWhatTheyShow(t *testing.T) {
	at := func(b []byte, x, y int) [3]byte {
		m, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r, g, bl, _ := m.At(x, y).RGBA()
		return [3]byte{byte(r >> 8), byte(g >> 8), byte(bl >> 8)}
	}
	shapes := shapesPicture(1)
	for p, want := range map[[2]int]byte{{56, 96}: paintRed, {130, 96}: paintBlue, {208, 110}: paintGreen, {0, 0}: 0, {255, 96}: 0, {208, 50}: 0} {
		if got := at(shapes, p[0], p[1]); got != colors[want] {
			t.Errorf("pixel %v is %v, want %v", p, got, colors[want])
		}
	}
	before := -1
	for i, frame := range movingPictures(1) {
		x := 0
		for ; x < pictureWidth && at(frame, x, 96) != colors[paintRed]; x++ {
		}
		if x <= before || x == pictureWidth {
			t.Errorf("in frame %d the disc begins at %d, before at %d", i, x, before)
		}
		before = x
	}
}

// TestMediaStayTheSame holds the bytes of what is drawn: they are part of the keys of recordings.
func TestMediaStayTheSame(t *testing.T) {
	sum := func(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:8]) }
	got := map[string]string{"image": sum(shapesPicture(7)), "audio": sum(tonesSound(7)), "video": sum(bytes.Join(movingPictures(7), nil))}
	for name, want := range mediaSums {
		if got[name] != want {
			t.Errorf("%s is %s, was %s", name, got[name], want)
		}
	}
	for name, made := range map[string]func(uint64) []byte{"image": shapesPicture, "audio": tonesSound, "video": func(s uint64) []byte { return movingPictures(s)[2] }} {
		if bytes.Equal(made(1), made(2)) {
			t.Errorf("%s: two requests send the same bytes", name)
		}
	}
}

var mediaSums = map[string]string{"image": "f708ffee8213e2f1", "audio": "9cccdd88852214cc", "video": "8270263910ce21b5"}

// TestTonesRise counts how often the wave crosses zero in each tone.
func TestTonesRise(t *testing.T) {
	b := tonesSound(3)
	if string(b[:4]) != "RIFF" || int(binary.LittleEndian.Uint32(b[4:])) != len(b)-8 || int(binary.LittleEndian.Uint32(b[40:])) != len(b)-44 {
		t.Fatalf("head % x of %d bytes", b[:44], len(b))
	}
	sample := func(i int) int { return int(int16(binary.LittleEndian.Uint16(b[44+2*i:]))) }
	if n := (len(b) - 44) / 2; n != len(tones)*(gapSamples+toneSamples) {
		t.Fatalf("%d samples", n)
	}
	for k, hz := range tones {
		from, crossings, loudest := k*(gapSamples+toneSamples), 0, 0
		for i := range gapSamples {
			if v := sample(from + i); v < -4 || v > 4 {
				t.Fatalf("the gap before tone %d holds %d", k, v)
			}
		}
		for i := gapSamples + 1; i < gapSamples+toneSamples; i++ {
			if (sample(from+i) >= 0) != (sample(from+i-1) >= 0) {
				crossings++
			}
			loudest = max(loudest, abs(sample(from+i)))
		}
		if want := 2 * hz * toneSamples / sampleRate; math.Abs(float64(crossings-want)) > 3 || loudest > loudness || loudest < loudness*9/10 {
			t.Errorf("tone %d crosses zero %d times, want %d; it is %d loud", k, crossings, want, loudest)
		}
	}
}

func TestMediaRequests(t *testing.T) {
	o := Options{Nonce: "n", Tag: "x-c1-r0-i0", Stream: true}
	for name, want := range map[string]int{"image": 2, "audio": 2, "video": 1 + videoFrames} {
		s := named(t, name, Materials{})
		parts := sent(t, opening(t, s, o))
		if len(parts) != want || s.Modality != name || !strings.HasPrefix(parts[0].Text, "[n]\n[benchmark x-c1-r0-i0]\n") {
			t.Errorf("%s: %d parts, modality %s, %q", name, len(parts), s.Modality, parts[0].Text)
		}
		for _, p := range parts[1:] {
			switch {
			case p.Image != nil && strings.HasPrefix(p.Image.URL, "data:image/png;base64,"):
				if _, err := png.Decode(bytes.NewReader(decoded(t, p.Image.URL[22:]))); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case p.Audio == nil || p.Audio.Format != "wav" || string(decoded(t, p.Audio.Data)[:4]) != "RIFF":
				t.Errorf("%s: %+v", name, p)
			}
		}
		if a, b := opening(t, s, o), opening(t, s, Options{Nonce: "n2", Tag: o.Tag, Stream: true}); bytes.Equal(a.Body, b.Body) {
			t.Errorf("%s: another nonce makes the same request", name)
		}
	}
}

// TestOwnMedia holds that what the user gives is sent as it is, by its kind, and that what is none is refused.
func TestOwnMedia(t *testing.T) {
	jpeg, mp3 := []byte("\xff\xd8\xff\xe0 a picture"), []byte("ID3 a song")
	m := Materials{Image: jpeg, Audio: mp3, Frames: [][]byte{jpeg, shapesPicture(1)}}
	if p := sent(t, opening(t, named(t, "image", m), Options{})); p[1].Image.URL != "data:image/jpeg;base64,"+base64.StdEncoding.EncodeToString(jpeg) {
		t.Errorf("%+v", p[1].Image)
	}
	if p := sent(t, opening(t, named(t, "audio", m), Options{})); p[1].Audio.Format != "mp3" || !bytes.Equal(decoded(t, p[1].Audio.Data), mp3) {
		t.Errorf("%+v", p[1].Audio)
	}
	if p := sent(t, opening(t, named(t, "video", m), Options{})); len(p) != 3 || !strings.HasPrefix(p[1].Image.URL, "data:image/jpeg") || !strings.HasPrefix(p[2].Image.URL, "data:image/png") {
		t.Errorf("%d parts", len(p))
	}
	for _, c := range named(t, "image", m).Case("c", Options{}).Checks {
		if c.Gate == "needle" {
			t.Error("a picture of the user's is judged by what ours shows")
		}
	}
	for name, m := range map[string]Materials{
		"image": {Image: []byte("text")}, "audio": {Audio: jpeg}, "video": {Frames: [][]byte{jpeg, mp3}},
		"image ": {Image: []byte{}}, "video ": {Frames: [][]byte{}}, "video  ": {Frames: make([][]byte, mostFrames+1)}, "image  ": {Image: mp3},
	} {
		if _, err := Named(strings.TrimSpace(name), m); !errors.Is(err, ErrMaterial) {
			t.Errorf("%s: %v", name, err)
		}
		named(t, "text_short", m)
	}
	why := errors.New("no ffmpeg")
	if _, err := Named("video", Materials{Broken: map[string]error{ModalityVideo: why}}); !errors.Is(err, ErrMaterial) || !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	named(t, "image", Materials{Broken: map[string]error{ModalityVideo: why}})
	for mark, want := range map[string]string{
		"RIFF\x00\x00\x00\x00WEBP": "image/webp", "RIFF\x00\x00\x00\x00WAVE": "audio/wav", "fLaC": "audio/flac", "OggS": "audio/ogg", "GIF89a": "image/gif",
		"\xff\xfb": "audio/mpeg", "RIFF": "", "": "",
	} {
		if got := kindOf([]byte(mark)).mime; got != want {
			t.Errorf("%q is %q, want %q", mark, got, want)
		}
	}
}
