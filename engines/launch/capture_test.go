package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFloodIsBoundedAndDoesNotStall(t *testing.T) {
	s := fakeSpec(t, "-say", "first words", "-flood", "100")
	s.LogFile, s.LogMax = filepath.Join(t.TempDir(), "flood.log"), 1<<20
	p := startFake(t, s)
	waitReady(t, p)
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	if size := info.Size(); size > s.LogMax+500 || size < s.LogMax/2 {
		t.Errorf("the log has %d bytes", size)
	}
	log := readFile(t, s.LogFile)
	begin, end := log[:min(len(log), 500)], log[max(0, len(log)-500):]
	wantWords(t, begin, "CMD: ", "\nfirst words\n")
	wantWords(t, end, "\nlistening on 127.0.0.1:")
	if !strings.Contains(log, " left out here]\n") {
		t.Error("the log does not say that it is not whole")
	}
	if files, _ := filepath.Glob(s.LogFile + ".*"); len(files) > 0 {
		t.Errorf("left beside the log: %q", files)
	}
	if lines := p.Tail(3); len(lines) != 3 || !strings.HasPrefix(lines[2], "listening on") {
		t.Errorf("tail %q", lines)
	}
}

// TestLogOfAnyLength holds that a log holds its whole output while that is short, and its beginning and end when it is
// not, and never more than its bound.
func TestLogOfAnyLength(t *testing.T) {
	const size = 4096
	for n := range 300 {
		name := filepath.Join(t.TempDir(), "x.log")
		b, err := createBounded(name, size)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for i := range n {
			line := fmt.Sprintf("line %d of %d\n", i, n)
			all.WriteString(line)
			if err := b.write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		got := readFile(t, name)
		head, rest, cut := strings.Cut(got, "[benchproxy: ")
		_, tail, _ := strings.Cut(rest, "]\n")
		if !cut {
			if got != all.String() {
				t.Fatalf("%d lines: it holds %d bytes of %d", n, len(got), all.Len())
			}
			continue
		}
		var gone int
		if _, err := fmt.Sscanf(rest, "%d bytes", &gone); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) || len(head)+gone+len(tail) != all.Len() {
			t.Fatalf("%d lines: %d bytes at the start, %d at the end, %d gone, of %d", n, len(head), len(tail), gone, all.Len())
		}
		if len(head)+len(tail) > size {
			t.Fatalf("%d lines: %d bytes are over the bound", n, len(head)+len(tail))
		}
	}
}

// TestLogReplacesLinks holds that what stands at the place of a log, or of its end beside it, is replaced, and that what a
// link leads to is not written.
func TestLogReplacesLinks(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "x.log")
	for what, place := range map[string]func() error{
		"a link":            func() error { return os.Symlink(precious, name) },
		"a link to nothing": func() error { return os.Symlink(filepath.Join(dir, "none"), name) },
		"a link to itself":  func() error { return os.Symlink(name, name) },
		"a second name":     func() error { return os.Link(precious, name) },
		"an older log":      func() error { return os.WriteFile(name, []byte("older"), 0o644) },
		"links beside it": func() error {
			return errors.Join(os.Symlink(precious, name+".tail"), os.Symlink(precious, name+".tail.old"))
		},
		"nothing": func() error { return nil },
	} {
		t.Run(what, func(t *testing.T) {
			if err := place(); err != nil {
				t.Fatal(err)
			}
			b, err := createBounded(name, 64)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				if err := b.write(fmt.Appendf(nil, "line %d\n", i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if got := readFile(t, precious); got != "precious" {
				t.Errorf("what the link led to holds %q", got)
			}
			if got := readFile(t, name); !strings.HasPrefix(got, "line 0\n") || !strings.HasSuffix(got, "line 19\n") {
				t.Errorf("the log holds %q", got)
			}
			if err := os.Remove(name); err != nil {
				t.Error(err)
			}
		})
	}
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := createBounded(name, 64); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a directory: %v", err)
	}
	c, err := newCapture(Spec{LogFile: os.DevNull}, "x")
	if err != nil || c.out != nil {
		t.Errorf("nowhere: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestLogMasksSecretsAndKeepsWhatIsCut(t *testing.T) {
	key := "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
	s := fakeSpec(t, "-say", "using key "+key+"|Authorization: Bearer "+key+"|"+strings.Repeat("x", longestLine+100))
	s.Args = append(s.Args, "-crash", "", "--", "--api-key", "very-secret")
	s.Env = []string{"HF_TOKEN=hf_very_secret_token"}
	s.LogFile = filepath.Join(t.TempDir(), "x.log")
	p := startFake(t, s)
	waitReady(t, p)
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := readFile(t, s.LogFile)
	for _, secret := range []string{key, "very-secret", "hf_very_secret_token"} {
		if strings.Contains(log+p.Command()+strings.Join(p.Tail(100), "\n"), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	if n := strings.Count(log, "x"); n < longestLine+100 {
		t.Errorf("of the long line %d bytes are there", n)
	}
	wantWords(t, log, "CMD: 'HF_TOKEN=***' ", "using key ")
}

// TestLogThatCannotBeWritten holds that a disk without room stops nothing, and is told.
func TestLogThatCannotBeWritten(t *testing.T) {
	s := fakeSpec(t, "-say", "one|two")
	s.LogFile = "/dev/full"
	if _, err := os.Stat(s.LogFile); err != nil {
		t.Fatal(err)
	}
	c := &capture{out: &boundedFile{max: 1 << 20}, see: func(string) {}}
	f, err := os.OpenFile(s.LogFile, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.out.head = f
	c.line([]byte("one\n"))
	c.flush()
	if c.lost() != 4 {
		t.Errorf("%d bytes are lost", c.lost())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTail(t *testing.T) {
	c := &capture{more: make(chan struct{}, 1)}
	if got := c.tail(5); got != nil {
		t.Errorf("%q of nothing", got)
	}
	for i := range 20000 {
		c.take(fmt.Appendf(nil, "line %d\r\n", i))
	}
	if got := c.tail(2); strings.Join(got, "|") != "line 19998|line 19999" {
		t.Errorf("%q", got)
	}
	if len(c.end) > 2*tailKept {
		t.Errorf("%d bytes are held", len(c.end))
	}
	if got := c.tail(1 << 20); !strings.HasPrefix(got[0], "line ") {
		t.Errorf("a part of a line: %q", got[0])
	}
}
