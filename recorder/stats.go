package recorder

import (
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Stats says what takes the space of a store. All sizes are in bytes.
type Stats struct {
	Schema      int       `json:"schema"` // of this document
	Format      int       `json:"format"`
	DiskBytes   int64     `json:"disk_bytes"`   // blocks of all files
	GoldenBytes int64     `json:"golden_bytes"` // of them goldens
	FreeBytes   int64     `json:"free_bytes"`   // left on the disk; 0 when the system cannot tell
	MinFree     int64     `json:"min_free"`     // the floor below which recording pauses
	Exchanges   int64     `json:"exchanges"`
	Runs        []RunSize `json:"runs"`
}

// RunSize is a run with the space that its records take, before Badger's own overhead.
type RunSize struct {
	exchange.Run
	Bytes int64 `json:"stored_bytes"`
}

// Stats measures the store now.
func (s *Store) Stats() (Stats, error) {
	fail := func(err error) (Stats, error) {
		return Stats{}, &exchange.Error{Op: "measure store", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	st := Stats{Schema: 1, Format: FormatVersion, MinFree: s.o.minFree()}
	st.FreeBytes, _ = s.enoughSpace()
	var err error
	if st.DiskBytes, err = treeBytes(s.dir); err != nil {
		return fail(err)
	}
	if st.GoldenBytes, err = treeBytes(s.GoldensDir()); err != nil {
		return fail(err)
	}
	runs, err := s.storedRuns()
	if err != nil {
		return fail(err)
	}
	st.Runs = make([]RunSize, 0, len(runs))
	for _, r := range runs {
		run := s.live(r.Run)
		st.Exchanges += run.Counts.Stored
		st.Runs = append(st.Runs, RunSize{Run: run, Bytes: r.Bytes})
	}
	return st, nil
}

// Space is what the store takes on its disk and what is free there, in bytes; free is 0 when the system cannot tell. It
// reads no record.
func (s *Store) Space() (size, free int64, err error) {
	if size, err = treeBytes(s.dir); err != nil {
		return 0, 0, &exchange.Error{Op: "measure store", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	free, _ = s.enoughSpace()
	return size, free, nil
}

// roomAge is how old the numbers on the disk may be that Health shows: it is asked several times a second, and to count
// them goes through the directory.
const roomAge = 5 * time.Second

// room are the sizes as they were read last.
type room struct {
	mu         sync.Mutex
	read       time.Time // zero before the first time
	size, free *int64    // nil when they could not be read
}

// roomNow gives the sizes of a moment ago. A system that cannot tell one leaves it nil.
func (s *Store) roomNow() (size, free *int64) {
	r := &s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read.IsZero() && clock.Since(r.read) < roomAge {
		return r.size, r.free
	}
	r.read, r.size, r.free = clock.Now(), nil, nil
	if n, err := treeBytes(s.dir); err == nil {
		r.size = &n
	}
	if n, err := s.askSpace(); err == nil {
		r.free = &n
	}
	return r.size, r.free
}

// GoldensDir is the Badger directory of the goldens, which no run's retention touches. It need not exist.
func (s *Store) GoldensDir() string { return filepath.Join(s.dir, goldensDir) }

// treeBytes is what the files below dir take on disk. A file that goes away meanwhile takes nothing.
func treeBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return ignoreGone(err)
		}
		info, err := e.Info()
		if err != nil {
			return ignoreGone(err)
		}
		total += diskBytes(info)
		return nil
	})
	return total, err
}
