package weights

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// model writes a GGUF v3 file with one tensor of 4 x 8 half floats.
func model(keys ...any) []byte {
	var b bytes.Buffer
	le := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a buffer takes every write
	text := func(s string) {
		le(uint64(len(s)))
		b.WriteString(s)
	}
	b.WriteString("GGUF")
	le(uint32(3))
	le(uint64(1))
	le(uint64(len(keys) / 2))
	for i := 0; i < len(keys); i += 2 {
		text(keys[i].(string))
		switch v := keys[i+1].(type) {
		case string:
			le(uint32(8))
			text(v)
		case uint32:
			le(uint32(4))
			le(v)
		}
	}
	text("token_embd.weight")
	le(uint32(2))
	le(uint64(4))
	le(uint64(8))
	le(uint32(1)) // F16
	le(uint64(0))
	for b.Len()%32 != 0 {
		b.WriteByte(0)
	}
	b.Write(make([]byte, 64))
	return b.Bytes()
}

func save(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func whole() []byte {
	return model("general.architecture", "llama", "general.name", "Tiny", "general.file_type", uint32(1), "llama.context_length", uint32(2048))
}

func TestReadGGUF(t *testing.T) {
	b := whole()
	f, err := ReadGGUF(save(t, "tiny.gguf", b))
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "tiny.gguf" || f.Bytes != int64(len(b)) || f.Shards != 1 || f.Architecture != "llama" || f.Model != "Tiny" {
		t.Errorf("got %+v", f)
	}
	if f.Quantization == nil || *f.Quantization != "FP16" || f.Parameters == nil || *f.Parameters != 32 || f.Context == nil || *f.Context != 2048 {
		t.Errorf("quantization %v, parameters %v, context %v", f.Quantization, f.Parameters, f.Context)
	}
}

func TestWhatAFileDoesNotStateIsUnknown(t *testing.T) {
	f, err := ReadGGUF(save(t, "bare-Q4_K_M.gguf", model("general.architecture", "llama")))
	if err != nil {
		t.Fatal(err)
	}
	if f.Quantization != nil || f.Context != nil || f.Model != "" {
		t.Errorf("got %+v", f)
	}
}

// TestBrokenFiles cuts a good file at every place, and changes every byte of its head: an error or another reading, never
// a panic.
func TestBrokenFiles(t *testing.T) {
	good := whole()
	head := bytes.LastIndex(good, []byte("token_embd.weight")) + 60
	for n := range head {
		if _, err := ReadGGUF(save(t, "cut.gguf", good[:n])); n < head-64 && !errors.Is(err, exchange.ErrUsage) {
			t.Fatalf("cut at %d of %d: %v", n, head, err)
		}
		changed := bytes.Clone(good)
		changed[min(n, len(changed)-1)] ^= 0xff
		if _, err := ReadGGUF(save(t, "changed.gguf", changed)); err != nil && !errors.Is(err, exchange.ErrUsage) {
			t.Fatalf("changed at %d: %v", n, err)
		}
	}
	for name, path := range map[string]string{"no file": filepath.Join(t.TempDir(), "none.gguf"), "empty": save(t, "e.gguf", nil),
		"text": save(t, "t.gguf", []byte("not a model at all, but long enough to hold a head of one")), "a directory": t.TempDir()} {
		if _, err := ReadGGUF(path); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDigest(t *testing.T) {
	b := bytes.Repeat([]byte("weights"), 1<<20) // more than one step
	sum := sha256.Sum256(b)
	want := "sha256:" + hex.EncodeToString(sum[:])
	path := save(t, "m.gguf", b)
	if got, err := Digest(t.Context(), path); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Digest(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Digest(t.Context(), path+"x"); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("missing: %v", err)
	}
}

func TestDigestOfShards(t *testing.T) {
	dir := t.TempDir()
	var lines []byte
	for i, name := range []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"} {
		b := []byte{byte(i)}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		lines = append(lines, "sha256:"+hex.EncodeToString(sum[:])+"\n"...)
	}
	sum := sha256.Sum256(lines)
	want := "sha256:" + hex.EncodeToString(sum[:])
	for _, name := range []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"} {
		if got, err := Digest(t.Context(), filepath.Join(dir, name)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}

// TestStamp holds that whatever changes a file changes its stamp, and that the same file under another spelling of its path
// keeps it.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m-00001-of-00002.gguf")
	second := filepath.Join(dir, "m-00002-of-00002.gguf")
	old := time.Unix(1_700_000_000, 0)
	write := func(p string, b []byte, at time.Time) {
		if err := errors.Join(os.WriteFile(p, b, 0o600), os.Chtimes(p, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]string{}
	stamp := func(what string) {
		s, newest, err := Stamp(path)
		if err != nil || newest.Before(old) {
			t.Fatalf("%s: %s, %v", what, newest, err)
		}
		if before, ok := seen[s]; ok {
			t.Errorf("%s has the stamp of %s", what, before)
		}
		seen[s] = what
	}
	write(path, []byte("a"), old)
	write(second, []byte("b"), old)
	stamp("the file")
	if s, _, err := Stamp(filepath.Join(dir, ".", "m-00001-of-00002.gguf")); err != nil || seen[s] == "" {
		t.Errorf("another spelling: %v", err)
	}
	write(second, []byte("c"), old.Add(time.Nanosecond*1000))
	stamp("a shard of another time")
	write(second, []byte("cc"), old)
	stamp("a shard of another size")
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Stamp(path); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("a shard is missing: %v", err)
	}
}
