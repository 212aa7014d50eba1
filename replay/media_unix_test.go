//go:build unix

package replay

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// fakeFFmpeg tells a length, and gives for a picture the time that it was asked for.
const fakeFFmpeg = `#!/bin/sh
case "$*" in
*image2pipe*)
	test "$1 $5" = "-nostdin -ss" || exit 9
	printf '\211PNG\r\n\032\n%s' "$6" ;;
*) echo "Input #0, mov, from '$4':
  Duration: 00:01:40.00, start: 0.000000" >&2; exit 1 ;;
esac
`

func TestMediaFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := MediaFiles{Image: file("a.png", "\x89PNG\r\n\x1a\nx"), Audio: file("a.mp3", "ID3x"), Video: file("v.mp4", "v"), FFmpeg: file("ffmpeg", fakeFFmpeg)}
	m := good.Load(context.Background(), scenario.Materials{Window: 5})
	if string(m.Audio) != "ID3x" || m.Window != 5 || len(m.Broken) != 0 || len(m.Frames) != 4 {
		t.Fatalf("%+v", m)
	}
	if !bytes.HasSuffix(m.Frames[0], []byte("12.500")) || !bytes.HasSuffix(m.Frames[3], []byte("87.500")) {
		t.Errorf("%q", m.Frames)
	}
	for _, name := range []string{"image", "audio", "video"} {
		if _, err := scenario.Named(name, m); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		files MediaFiles
		at    string
		why   string
		miss  bool
	}{
		"no image":    {files: MediaFiles{Image: filepath.Join(dir, "none")}, at: "image", why: "no such file"},
		"no ffmpeg":   {files: MediaFiles{Video: good.Video, FFmpeg: filepath.Join(dir, "none")}, at: "video", why: "install ffmpeg", miss: true},
		"no video":    {files: MediaFiles{Video: filepath.Join(dir, "none"), FFmpeg: good.FFmpeg}, at: "video", why: "no such file"},
		"no length":   {files: MediaFiles{Video: good.Video, FFmpeg: file("dumb", "#!/bin/sh\necho Invalid data >&2; exit 1")}, at: "video", why: "tells no length: exit status 1: Invalid data"},
		"no pictures": {files: MediaFiles{Video: good.Video, FFmpeg: file("empty", "#!/bin/sh\necho Duration: 00:00:10.00 >&2")}, at: "video", why: "picture 1: ffmpeg gave none"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.files.Load(context.Background(), scenario.Materials{})
			err := m.Broken[c.at]
			if err == nil || !strings.Contains(err.Error(), c.why) || errors.Is(err, exchange.ErrMiss) != c.miss {
				t.Errorf("%v, want %s", err, c.why)
			}
			if _, err := scenario.Named(c.at, m); !errors.Is(err, scenario.ErrMaterial) {
				t.Errorf("ours is sent in its place: %v", err)
			}
		})
	}
	if m := (MediaFiles{}).Load(context.Background(), scenario.Materials{}); m.Broken != nil || m.Image != nil || m.Frames != nil {
		t.Errorf("%+v", m)
	}
}

func TestDurations(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"  Duration: 01:02:03.50, start": time.Hour + 2*time.Minute + 3500*time.Millisecond, "Duration: N/A": 0, "Duration: 00:00:00.00": 0, "": 0, "Duration: 99999999999:00:00.0": 0,
	} {
		if got, ok := durationIn([]byte(said)); got != want || ok != (want > 0) {
			t.Errorf("%q: %v, %v", said, got, ok)
		}
	}
}
