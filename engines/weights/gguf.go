package weights

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ReadGGUF reads the metadata of a GGUF file; of a split one, any shard stands for all. The error wraps
// exchange.ErrUsage when the file cannot be read or is no GGUF file. The digest is left open.
func ReadGGUF(path string) (exchange.Weights, error) {
	parsed, err := parse(path)
	if err != nil {
		return exchange.Weights{}, unreadable("read model file", path, err)
	}
	meta, arch := parsed.Metadata(), parsed.Architecture()
	f := exchange.Weights{Name: filepath.Base(path), Bytes: int64(parsed.Size), Shards: max(1, len(parsed.SplitSizes)), Architecture: meta.Architecture,
		Model: meta.Name, Parameters: above0(int64(parsed.ModelParameters)), Context: above0(int64(arch.MaximumContextLength))}
	if _, stated := parsed.Header.MetadataKV.Get("general.file_type"); stated {
		if q, ok := engines.NormalQuantization(cmp.Or(meta.FileTypeDescriptor, meta.FileType.String())); ok {
			f.Quantization = &q
		}
	}
	return f, nil
}

// parse keeps a file that breaks the parser from breaking the program.
func parse(path string) (f *gguf.GGUFFile, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is broken: %v", r)
		}
	}()
	return gguf.ParseGGUFFile(path, gguf.SkipLargeMetadata())
}

func above0(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

func unreadable(op, path string, cause error) error {
	return &exchange.Error{Op: op, Object: path, Side: exchange.SideClient, Cause: fmt.Errorf("%w: %w", exchange.ErrUsage, cause)}
}

// Digest is the sha256 of a model file, "sha256:<hex>". The digest of a split one is that of the lines "sha256:<hex>" of
// its shards, in their order. It reads every byte, so it takes as long as the disk does; ctx ends it.
func Digest(ctx context.Context, path string) (string, error) {
	paths := gguf.CompleteShardGGUFFilename(path)
	if len(paths) < 2 {
		return digestOf(ctx, path)
	}
	all := sha256.New()
	for _, p := range paths {
		d, err := digestOf(ctx, p)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(all, d) // a hash takes every write
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil)), nil
}

// Stamp is a text that differs when a model file, or a shard of it, was changed or replaced since: it is made of the
// absolute path, the size and the time of the last change, and holds none of them in clear. newest is that time, of the
// shard that was changed last: a file changed a moment ago may be changed again without a trace in its stamp.
func Stamp(path string) (stamp string, newest time.Time, err error) {
	paths := gguf.CompleteShardGGUFFilename(path)
	if len(paths) == 0 {
		paths = []string{path}
	}
	all := sha256.New()
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return "", newest, unreadable("look at model file", p, err)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return "", newest, unreadable("look at model file", p, err)
		}
		if t := info.ModTime(); t.After(newest) {
			newest = t
		}
		fmt.Fprintf(all, "%q %d %d\n", abs, info.Size(), info.ModTime().UnixNano()) // a hash takes every write
	}
	return hex.EncodeToString(all.Sum(nil)), newest, nil
}

func digestOf(ctx context.Context, path string) (string, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return "", unreadable("digest model file", path, err)
	}
	defer f.Close()
	h := sha256.New()
	for {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		switch _, err := io.CopyN(h, f, 4<<20); {
		case errors.Is(err, io.EOF):
			return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", unreadable("digest model file", path, err)
		}
	}
}
