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

	gguf "github.com/gpustack/gguf-parser-go"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// File is what a GGUF model file states about itself.
type File struct {
	Name         string  `json:"name"`  // of the file, without its directory
	Bytes        int64   `json:"bytes"` // of all shards
	Shards       int     `json:"shards"`
	Architecture string  `json:"architecture"`
	Model        string  `json:"model,omitempty"`  // general.name
	Quantization *string `json:"quantization"`     // normalized; nil when the file states none or a guess
	Parameters   *int64  `json:"parameters"`       // number of weights
	Context      *int64  `json:"context"`          // tokens the model was trained for
	Digest       string  `json:"digest,omitempty"` // sha256:<hex>, set by Digest
}

// ReadGGUF reads the metadata of a GGUF file; of a split one, any shard stands for all. The error wraps
// exchange.ErrUsage when the file cannot be read or is no GGUF file.
func ReadGGUF(path string) (File, error) {
	parsed, err := parse(path)
	if err != nil {
		return File{}, unreadable("read model file", path, err)
	}
	meta, arch := parsed.Metadata(), parsed.Architecture()
	f := File{Name: filepath.Base(path), Bytes: int64(parsed.Size), Shards: max(1, len(parsed.SplitSizes)), Architecture: meta.Architecture,
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
