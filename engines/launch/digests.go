package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// digests are those of files that were read before, by what tells that a file is still the same: where it is, its size,
// its number on the disk, and the times of its last change, of which the system itself sets the second. Where a system
// has no such number and time, every file is read.
type digests struct {
	file  string // that keeps them, "" for nowhere
	known map[string]string
	used  map[string]string // of known and new: what a build was made of that is there
	added bool
}

// digestsVersion is the schema version of the file.
const digestsVersion = 1

// mostDigests bounds the file: above it, what the last identity did not use is forgotten.
const mostDigests = 4096

type digestsFile struct {
	Schema  int               `json:"schema"`
	Digests map[string]string `json:"digests"`
}

// openDigests reads what is kept in a directory. What cannot be read is not known.
func openDigests(dir string) *digests {
	d := &digests{known: map[string]string{}, used: map[string]string{}}
	if dir == "" {
		return d
	}
	d.file = filepath.Join(filepath.Clean(dir), "builds.json")
	raw, err := os.ReadFile(d.file)
	var kept digestsFile
	if err == nil && json.Unmarshal(raw, &kept) == nil && kept.Schema == digestsVersion && kept.Digests != nil {
		d.known = kept.Digests
	}
	return d
}

// settled is how old the last change of a file is before its digest is kept: one that was changed a moment ago may be
// changed again within the same tick of the disk's clock.
const settled = 3 * time.Second

// of is the digest of a file in hex, with its size.
func (d *digests) of(ctx context.Context, path string) (sum string, size int64, err error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }() // it is only read
	before, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	key, changed, keyed := fileKey(path, before)
	if sum, ok := d.known[key]; ok && keyed {
		d.used[key] = sum
		return sum, before.Size(), nil
	}
	began := clock.Now()
	if sum, err = digestFile(ctx, f); err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, err)
	}
	after, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if now, _, _ := fileKey(path, after); now != key {
		return "", 0, fmt.Errorf("%s changed while it was read", path)
	}
	if keyed && changed.Before(began.Add(-settled)) {
		d.used[key], d.added = sum, true
	}
	return sum, before.Size(), nil
}

// digestFile reads a file to its end, or that of ctx.
func digestFile(ctx context.Context, f io.Reader) (string, error) {
	h := sha256.New()
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		switch _, err := io.CopyN(h, f, 4<<20); {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		}
	}
}

// keep writes what is new. What cannot be written is read again the next time.
func (d *digests) keep() {
	if d.file == "" || !d.added {
		return
	}
	if len(d.known) < mostDigests {
		maps.Copy(d.known, d.used)
	} else {
		d.known = d.used
	}
	raw, err := json.Marshal(digestsFile{digestsVersion, d.known})
	if err != nil || os.MkdirAll(filepath.Dir(d.file), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(d.file), ".builds-*")
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), d.file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // as above
	}
}
