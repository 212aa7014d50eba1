package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// part is the file that a download is kept in until it is whole. What is known of it stands beside it, so that another
// process can go on.
type part struct {
	path   string // of the part
	target string
	file   *os.File
	hash   hash.Hash
	have   int64
	note   note
}

// note is what stands beside a part.
type note struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"` // strong ones alone
	Modified string `json:"last_modified,omitempty"`
	Size     int64  `json:"size"`             // of the whole; -1 when not known
	SHA256   string `json:"sha256,omitempty"` // hex, of the whole
}

// validator is what makes a server say whether the file is still the same; "" when it gave nothing for it.
func (n *note) validator() string {
	if n.ETag != "" {
		return n.ETag
	}
	return n.Modified
}

// ifRange is what a request for the rest is made conditional on. Where the hub told the digest there is no need: it tells
// it again with every request, and the places that it leads to tag one file each in a way of their own.
func (n *note) ifRange() string {
	if n.SHA256 != "" {
		return ""
	}
	return n.validator()
}

// openPart opens the part of a file, and reads what it holds when it is one of the same URL that can be gone on with. No
// other process writes to it until it is closed. The end of ctx ends the reading.
func openPart(ctx context.Context, target, url string, fresh bool) (*part, error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return nil, err
	}
	p := &part{path: target + ".part", target: target, hash: sha256.New(), note: note{URL: url, Size: -1}}
	var err error
	if p.file, err = lockPart(p.path); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(p.notePath())
	var old note
	if fresh || err != nil || json.Unmarshal(b, &old) != nil || old.URL != url || old.validator() == "" && old.SHA256 == "" {
		return p, p.restart()
	}
	p.note = old
	if err := p.reread(ctx); err != nil {
		p.file.Close()
		return nil, fmt.Errorf("read part: %w", err)
	}
	return p, nil
}

// lockPart opens a part that no other process has. What is no file, such as a link that leads elsewhere, is refused.
func lockPart(path string) (*os.File, error) {
	for range 10 {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %s is there and is no file", exchange.ErrUsage, path)
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := lockFile(file); err != nil {
			file.Close()
			return nil, fmt.Errorf("another process downloads it; wait for its end, or stop it: %w", err)
		}
		mine, err := file.Stat()
		there, err2 := os.Lstat(path)
		if err == nil && err2 == nil && os.SameFile(mine, there) {
			return file, nil
		}
		file.Close() // it was finished, and renamed, between opening and locking
	}
	return nil, errors.New("other processes begin and end downloads of it")
}

// reread takes what the part holds, up to the size of the whole: what is behind that is of nothing.
func (p *part) reread(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := io.CopyN(p.hash, p.file, 16<<20)
		p.have += n
		switch {
		case errors.Is(err, io.EOF) && p.note.Size >= 0 && p.have > p.note.Size:
			return p.restart()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return context.Cause(ctx)
}

func (p *part) notePath() string { return p.path + ".json" }

// restart throws away what there is.
func (p *part) restart() error {
	p.hash.Reset()
	p.have, p.note = 0, note{URL: p.note.URL, Size: -1}
	err := errors.Join(p.file.Truncate(0), gone(os.Remove(p.notePath())))
	if _, seek := p.file.Seek(0, io.SeekStart); seek != nil {
		err = errors.Join(err, seek)
	}
	if err != nil {
		return fmt.Errorf("empty part: %w", err)
	}
	return nil
}

// gone takes a file that is not there for one that was removed.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// keep writes what is known beside the part, before the bytes that it is true of.
func (p *part) keep(n note) error {
	if n == p.note {
		return nil
	}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.notePath(), b, 0o644); err != nil {
		return fmt.Errorf("write note of part: %w", noSpace(err))
	}
	p.note = n
	return nil
}

// Write adds bytes to the part.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.hash.Write(b[:n]) // a hash takes every write
	p.have += int64(n)
	return n, noSpace(err)
}

// noSpace is an error of a full disk as such, and any other as it is.
func noSpace(err error) error {
	if outOfSpace(err) {
		return fmt.Errorf("%w: %w", exchange.ErrNoSpace, err)
	}
	return err
}

func (p *part) sum() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// starts is the beginning of the part, of n bytes at most.
func (p *part) starts(n int) []byte {
	b := make([]byte, n)
	got, _ := p.file.ReadAt(b, 0) // a short one is short
	return b[:got]
}

// finish gives the part its name, when all of it is on the disk.
func (p *part) finish() error {
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("write part to the disk: %w", noSpace(err))
	}
	err := renameOpen(p.file, p.path, p.target)
	p.file = nil
	if err != nil {
		return err
	}
	return gone(os.Remove(p.notePath()))
}

// drop throws the part away, since the file is there.
func (p *part) drop() error {
	p.have = 0
	return p.restart()
}

// close leaves the part for a later download; an empty one is removed.
func (p *part) close() {
	if p.file == nil {
		return
	}
	if p.have == 0 {
		_ = os.Remove(p.path) // it holds nothing: the next download makes another one
		_ = os.Remove(p.notePath())
	}
	p.file.Close()
}
