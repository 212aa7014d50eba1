package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// boundedFile is a log of bounded size: the first half of what it may hold stays, and of the rest the end. While it is
// written the end is in two files beside it, of which the older is thrown away when the younger is full; Close appends
// them.
type boundedFile struct {
	path    string
	max     int64
	head    *os.File
	written int64 // bytes of head
	tail    *os.File
	inTail  int64 // bytes of tail
	older   bool  // there is an older one beside it
	gone    int64 // bytes that were thrown away
}

// createBounded makes a new log of at most max bytes, and the directories above it. 0 is DefaultLogMax.
func createBounded(path string, size int64) (*boundedFile, error) {
	if size <= 0 {
		size = DefaultLogMax
	}
	b := &boundedFile{path: path, max: size}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{b.younger(), b.old()} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	var err error
	b.head, err = createAnew(path)
	return b, err
}

// createAnew makes a file in the place of what is there: a link is replaced, and what it leads to is not written. What is
// no file, such as a terminal or a pipe, stays, and is refused.
func createAnew(path string) (*os.File, error) {
	path = filepath.Clean(path)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0:
		return nil, errors.New("it is there, and is no file")
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // with O_EXCL no link is followed
}

func (b *boundedFile) younger() string { return b.path + ".tail" }
func (b *boundedFile) old() string     { return b.path + ".tail.old" }

// page is how much is best written at once.
func (b *boundedFile) page() int { return int(min(b.max/16, 64<<10)) }

// write appends p, which is short against the bound.
func (b *boundedFile) write(p []byte) error {
	if b.tail == nil && b.written+int64(len(p)) <= b.max/2 {
		n, err := b.head.Write(p)
		b.written += int64(n)
		return err
	}
	if b.tail == nil || b.inTail+int64(len(p)) > b.max/4 {
		if err := b.turn(); err != nil {
			return err
		}
	}
	n, err := b.tail.Write(p)
	b.inTail += int64(n)
	return err
}

// turn begins the next file of the end.
func (b *boundedFile) turn() error {
	if b.tail != nil {
		if err := b.tail.Close(); err != nil {
			return err
		}
		if b.older {
			if was, err := os.Stat(b.old()); err == nil {
				b.gone += was.Size()
			}
		}
		if err := os.Rename(b.younger(), b.old()); err != nil {
			return err
		}
		b.older = true
	}
	f, err := createAnew(b.younger())
	b.tail, b.inTail = f, 0
	return err
}

// Close appends the end to the beginning.
func (b *boundedFile) Close() error {
	if b.tail == nil {
		return b.head.Close()
	}
	errs := []error{b.tail.Close()}
	if b.gone > 0 {
		_, err := fmt.Fprintf(b.head, "[benchproxy: %d bytes are left out here]\n", b.gone)
		errs = append(errs, err)
	}
	if b.older {
		errs = append(errs, b.append(b.old()))
	}
	errs = append(errs, b.append(b.younger()), b.head.Close())
	return errors.Join(errs...)
}

// append moves a file to the end of the log.
func (b *boundedFile) append(name string) error {
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return err
	}
	_, err = io.Copy(b.head, f)
	return errors.Join(err, f.Close(), os.Remove(name))
}
