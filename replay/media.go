package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// MediaFiles are files of the user's that stand in the place of the media of the built-in scenarios; "" for ours.
type MediaFiles struct {
	Image, Audio, Video string
	FFmpeg              string // the program that takes a video apart; "" = ffmpeg, of the search path
}

// The bounds of media.
const (
	mostMedia   = 64 << 20 // bytes of a file, and of a picture of a video
	frameWidth  = 768      // pixels, at most
	frameTime   = time.Minute
	ffmpegGrace = 2 * time.Second
)

// Load puts the files into m. What cannot be used is noted in m.Broken, so that its scenario is skipped with the reason:
// a file that cannot be read, one that is too large, a video where ffmpeg is not installed.
func (f MediaFiles) Load(ctx context.Context, m scenario.Materials) scenario.Materials {
	broken := map[string]error{}
	read := func(modality, path string, into *[]byte) {
		if path == "" {
			return
		}
		b, err := readMedia(path)
		if err != nil {
			broken[modality] = fmt.Errorf("read %s: %w", modality, err)
			return
		}
		*into = b
	}
	read(scenario.ModalityImage, f.Image, &m.Image)
	read(scenario.ModalityAudio, f.Audio, &m.Audio)
	if f.Video != "" {
		frames, err := f.frames(ctx, scenario.VideoFrames())
		if err != nil {
			broken[scenario.ModalityVideo] = err
		}
		m.Frames = frames
	}
	if len(broken) > 0 {
		m.Broken = broken
	}
	return m
}

func readMedia(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostMedia+1))
	if err == nil && len(b) > mostMedia {
		err = fmt.Errorf("%s has more than %d MiB", path, mostMedia>>20)
	}
	return b, err
}

// frames takes pictures out of the video, as PNG, from the middles of equal parts of its length. The error wraps
// exchange.ErrMiss where ffmpeg is not installed.
func (f MediaFiles) frames(ctx context.Context, n int) ([][]byte, error) {
	program := f.FFmpeg
	if program == "" {
		program = "ffmpeg"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, &exchange.Error{Op: "take apart video", Object: f.Video, Cause: fmt.Errorf("%w: %w", exchange.ErrMiss, err), Hint: "install ffmpeg"}
	}
	if _, err := os.Stat(f.Video); err != nil {
		return nil, fmt.Errorf("read video: %w", err)
	}
	input := "file:" + f.Video // a name is never taken for a flag or for an address
	_, said, err := runFFmpeg(ctx, path, "-i", input)
	length, ok := durationIn(said)
	if !ok {
		return nil, fmt.Errorf("take apart video %s: ffmpeg tells no length: %w: %s", f.Video, err, lastLine(said))
	}
	var out [][]byte
	for i := range n {
		at := length * time.Duration(2*i+1) / time.Duration(2*n)
		picture, said, err := runFFmpeg(ctx, path, "-v", "error", "-ss", strconv.FormatFloat(at.Seconds(), 'f', 3, 64), "-i", input, "-frames:v", "1",
			"-vf", fmt.Sprintf("scale='min(%d,iw)':-2", frameWidth), "-f", "image2pipe", "-c:v", "png", "pipe:1")
		if err != nil || len(picture) == 0 {
			return nil, fmt.Errorf("take apart video %s: picture %d: %w: %s", f.Video, i+1, errOr(err, "ffmpeg gave none"), lastLine(said))
		}
		out = append(out, picture)
	}
	return out, nil
}

func errOr(err error, why string) error {
	if err != nil {
		return err
	}
	return errors.New(why)
}

// runFFmpeg gives its output and what it said. It asks nothing.
func runFFmpeg(ctx context.Context, path string, args ...string) (out, said []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-nostdin", "-hide_banner"}, args...)...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = ffmpegGrace
	var o, e boundedBytes
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	if o.over || e.over {
		err = errors.New("ffmpeg writes more than a picture has")
	}
	return o.b.Bytes(), e.b.Bytes(), err
}

// boundedBytes takes so many bytes and lets the rest go.
type boundedBytes struct {
	b    bytes.Buffer
	over bool
}

func (w *boundedBytes) Write(p []byte) (int, error) {
	if w.b.Len()+len(p) > mostMedia {
		w.over = true
		return len(p), nil
	}
	return w.b.Write(p)
}

var durationText = regexp.MustCompile(`Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)`)

// durationIn is the length of a video, as ffmpeg tells it among its words; ok is false where it is not known or nothing.
func durationIn(said []byte) (length time.Duration, ok bool) {
	m := durationText.FindSubmatch(said)
	if m == nil {
		return 0, false
	}
	hours, err1 := strconv.Atoi(string(m[1]))
	minutes, err2 := strconv.Atoi(string(m[2]))
	seconds, err3 := strconv.ParseFloat(string(m[3]), 64)
	if errors.Join(err1, err2, err3) != nil || hours > 1000 {
		return 0, false
	}
	length = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds*float64(time.Second))
	return length, length > 0
}

func lastLine(said []byte) string {
	text := strings.TrimSpace(string(said))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
