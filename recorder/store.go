package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The files of a store directory.
const (
	formatFile   = "FORMAT"     // one line: name and version of the format
	ownerFile    = "owner.json" // who has the store open
	exchangesDir = "exchanges"  // Badger: runs, records, blobs
	goldensDir   = "goldens"    // Badger: goldens, apart so that runs can be removed whole
)

const formatName = "benchproxy-store"

// Store is a directory of recorded exchanges that this process owns. Its methods may be called from any goroutine.
type Store struct {
	dir       string
	o         Options
	db        *badger.DB
	dec       *zstd.Decoder
	recovered Recovery

	mu      sync.RWMutex // held for reading while db is in use, for writing to close it or to drop prefixes
	closed  bool
	writers map[exchange.ID]*Writer // open writers by run, guarded by mu

	writes sync.RWMutex // held for reading while something is written, for writing while the log is collected; taken after mu

	goldens goldens
	room    room

	known knownIDs
	dirty atomic.Bool // something was committed since the last sync
	stop  chan struct{}
	done  sync.WaitGroup
}

var errClosed = errors.New("store is closed")

// Open opens the store in dir and becomes its owner; a directory that does not exist or is empty becomes a store.
// After the death of an owner it recovers by itself. The error is an *exchange.Error that wraps ErrLocked when another
// process has the store, ErrDamaged when it is newer than this build or broken, ErrNoSpace below the free-space floor.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, openError(dir, err, "")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, openError(dir, err, "give a directory that can be written")
	}
	isNew, err := checkFormat(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, o: o, writers: map[exchange.ID]*Writer{}, stop: make(chan struct{})}
	if free, ok := s.enoughSpace(); !ok {
		return nil, openError(dir, fmt.Errorf("%w: %d bytes free, the floor is %d", exchange.ErrNoSpace, free, o.minFree()), "free space on its disk, or give another directory")
	}
	if isNew {
		line := formatName + " " + strconv.Itoa(FormatVersion) + "\n"
		if err := writeFileSync(filepath.Join(dir, formatFile), []byte(line)); err != nil {
			return nil, openError(dir, err, "give a directory that can be written")
		}
	}
	if s.dec, err = newDecoder(); err != nil {
		return nil, openError(dir, err, "")
	}
	if s.db, err = openBadger(filepath.Join(dir, exchangesDir), &o); err != nil {
		s.dec.Close()
		return nil, s.badgerOpenError(err)
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start is what is left to do once the database is ours.
func (s *Store) start() error {
	if err := s.recover(); err != nil {
		return openError(s.dir, fmt.Errorf("%w: recover: %w", exchange.ErrDamaged, err), "restore a copy of the directory")
	}
	var err error
	if s.known.floor, err = s.highestID(); err != nil {
		return openError(s.dir, fmt.Errorf("%w: read index: %w", exchange.ErrDamaged, err), "restore a copy of the directory")
	}
	if err := s.writeOwner(s.o.Admin); err != nil {
		return openError(s.dir, err, "")
	}
	s.done.Go(s.syncEachSecond)
	return nil
}

func openError(dir string, cause error, hint string) error {
	return &exchange.Error{Op: "open store", Object: dir, Side: exchange.SideStore, Cause: cause, Hint: hint}
}

// checkFormat reads the version of the format and touches nothing. isNew says that dir holds nothing yet.
func checkFormat(dir string) (isNew bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false, openError(dir, err, "")
		}
		if len(entries) > 0 {
			return false, openError(dir, fmt.Errorf("%w: not empty and without a %s file", exchange.ErrDamaged, formatFile), "give an empty directory or a store")
		}
		return true, nil
	}
	if err != nil {
		return false, openError(dir, err, "")
	}
	name, version, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	v, err := strconv.Atoi(version)
	switch {
	case name != formatName || err != nil || v < 1:
		return false, openError(dir, fmt.Errorf("%w: %s file says %q", exchange.ErrDamaged, formatFile, b), "give a store of benchproxy")
	case v < FormatVersion:
		return false, openError(dir, fmt.Errorf("%w: format %d, this build reads %d only", exchange.ErrDamaged, v, FormatVersion), "use the older benchproxy that wrote it, or give a new directory")
	case v > FormatVersion:
		return false, openError(dir, fmt.Errorf("%w: format %d, this build knows up to %d", exchange.ErrDamaged, v, FormatVersion), "use the newer benchproxy that wrote it")
	}
	return false, nil
}

// openBadger opens one Badger directory. Badger panics on some kinds of damage: that is an error like another here.
func openBadger(dir string, o *Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("badger panicked: %v", p)
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return badger.Open(badgerOptions(dir, o))
}

// badgerOpenError tells a store that is in use from one that is broken.
func (s *Store) badgerOpenError(err error) error {
	text := err.Error()
	if strings.Contains(text, syscall.EROFS.Error()) || strings.Contains(text, syscall.EACCES.Error()) {
		return openError(s.dir, err, "a store is opened for writing also to read it: make the directory writable, or copy it")
	}
	if !strings.Contains(text, "directory lock") && !strings.Contains(text, "lock file") {
		return openError(s.dir, fmt.Errorf("%w: %w", exchange.ErrDamaged, err), "restore a copy of the directory")
	}
	who, hint := "another process", "stop that process, or give another directory"
	if owner, ok := ReadOwner(s.dir); ok {
		who = "process " + strconv.Itoa(owner.PID)
		if owner.Admin != "" {
			hint = "stop it or give another directory to write; to read, ask its admin address " + owner.Admin
		}
	} else if pid := lockPID(s.dir); pid != "" {
		who = "process " + pid
	}
	return openError(s.dir, fmt.Errorf("%w by %s", exchange.ErrLocked, who), hint)
}

// lockPID is the pid that Badger leaves in its directory, "" when there is none.
func lockPID(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, exchangesDir, "LOCK"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// writeFileSync writes a small file whole or not at all.
func writeFileSync(path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", tmp, err)
	}
	return os.Rename(tmp, path)
}

// Dir is the absolute directory of the store.
func (s *Store) Dir() string { return s.dir }

// Recovered tells what the last owner left behind.
func (s *Store) Recovered() Recovery { return s.recovered }

// Close ends ownership. Writers that are still open store what they hold; their runs stay open, for only the closing
// write of a writer ends a run. A second Close does nothing.
func (s *Store) Close() error {
	for _, w := range s.openWriters() {
		w.abandon()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.stop)
	s.done.Wait()
	err := errors.Join(s.closeGoldens(), s.closeBadger(), s.removeOwner())
	s.dec.Close()
	if err != nil {
		return &exchange.Error{Op: "close store", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	return nil
}

// closeTime is how long Badger may take to write down what it holds in memory, and goneTime how long where its
// directory is gone.
const (
	closeTime = 30 * time.Second
	goneTime  = time.Second
)

// closeBadger closes the database, and gives up in the end: Badger repeats a write that fails for ever, and the
// process would never end. What was acknowledged is in its log files, if those are still there.
func (s *Store) closeBadger() error {
	limit := time.NewTimer(closeTime)
	defer limit.Stop()
	gone := s.gone()
	if gone != nil {
		limit.Reset(goneTime)
	}
	closed := make(chan error, 1)
	s.done.Go(func() { closed <- errors.Join(s.db.Sync(), s.db.Close()) })
	select {
	case err := <-closed:
		return errors.Join(gone, err)
	case <-limit.C:
		return errors.Join(gone, errors.New("the database cannot write down what it holds in memory"))
	}
}

// gone says so when the directory was moved or removed under us. Badger would go on in files that have no name.
func (s *Store) gone() error {
	if _, err := os.Stat(filepath.Join(s.dir, exchangesDir)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory was moved or removed: %w", err)
	}
	return nil
}

func (s *Store) openWriters() []*Writer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var ws []*Writer
	for _, w := range s.writers {
		ws = append(ws, w)
	}
	return ws
}

// syncEachSecond bounds what a loss of power can take. It ends before the database closes.
func (s *Store) syncEachSecond() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		if !s.dirty.Swap(false) {
			continue
		}
		if err := s.db.Sync(); err != nil {
			s.o.log().Error("sync store", "dir", s.dir, "err", err)
		}
	}
}

// view reads from one snapshot.
func (s *Store) view(read func(txn *badger.Txn) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	return s.db.View(read)
}

// update writes entries in one transaction. It does not look at the free space.
func (s *Store) update(write func(txn *badger.Txn) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	s.writes.RLock()
	defer s.writes.RUnlock()
	s.dirty.Store(true)
	return s.db.Update(write)
}

// sync makes everything that was committed survive a loss of power.
func (s *Store) sync() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	return s.db.Sync()
}

func (s *Store) askSpace() (free int64, err error) {
	if s.o.FreeSpace != nil {
		return s.o.FreeSpace(s.dir)
	}
	return freeSpace(s.dir)
}

// enoughSpace asks for the free space of the disk. A system that cannot tell does not stop the recording.
func (s *Store) enoughSpace() (free int64, ok bool) {
	free, err := s.askSpace()
	if err != nil {
		s.o.log().Warn("read free space", "dir", s.dir, "err", err)
		return 0, true
	}
	return free, free >= s.o.minFree()
}

// now is the wall clock as stored.
func now() time.Time { return clock.Start().Wall() }
