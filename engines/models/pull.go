package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Mode says what becomes of files that are there, and of those that are not.
type Mode string

// The modes.
const (
	ModeAuto  Mode = "auto"  // what is missing is fetched
	ModeNever Mode = "never" // what is missing is an error
	ModeForce Mode = "force" // everything is fetched, in the place of what is there
)

// DefaultStall is how long a server may send nothing.
const DefaultStall = time.Minute

// Options say how files are fetched. The zero value of a field is its default.
type Options struct {
	Mode      Mode
	Hub       string            // base URL of the hub that the token is for; "" = DefaultHub
	Token     string            // for the hub and nobody else
	Parallel  int               // files at once; 0 = 3
	Tries     int               // attempts that bring nothing before a file is given up; 0 = 5
	Stall     time.Duration     // how long a server may send nothing; 0 = DefaultStall
	Transport http.RoundTripper // nil = HTTP with the proxies of the environment
	// Free is the space of a directory's disk in bytes; nil asks the system. An error of it means that nobody knows.
	Free func(dir string) (int64, error)
}

// What a file was checked by.
const (
	CheckedDigest = "sha256" // the digest that the hub told
	CheckedSize   = "size"
	CheckedNot    = "nothing" // the server told neither
)

// Result is what became of a file.
type Result struct {
	Path     string `json:"path"`
	URL      string `json:"url"`
	Bytes    int64  `json:"bytes"`
	Kept     bool   `json:"kept"`                    // it was there, and nothing was asked
	SHA256   string `json:"sha256,omitempty"`        // sha256:<hex> of what was fetched
	Checked  string `json:"checked_by,omitempty"`    // CheckedDigest, CheckedSize or CheckedNot
	Resumed  int64  `json:"resumed_bytes,omitempty"` // that an earlier download had left
	Restarts int    `json:"restarts,omitempty"`      // how often everything was thrown away
	Commit   string `json:"commit,omitempty"`        // of the hub's repository
}

// Phase is what a download is doing.
type Phase string

// The phases.
const (
	PhaseQueued    Phase = "queued"
	PhaseLoading   Phase = "loading"
	PhaseWaiting   Phase = "waiting" // before another attempt
	PhaseVerifying Phase = "verifying"
	PhaseDone      Phase = "done"
	PhaseFailed    Phase = "failed"
)

// Progress is how far a file is.
type Progress struct {
	Path  string
	Phase Phase
	Have  int64 // bytes
	Size  int64 // bytes of the whole; -1 while it is not known
}

// Puller fetches files.
type Puller struct {
	o      Options
	origin *origin
	disk   *disk

	mu      sync.Mutex
	running []*download
}

// New is a puller. The error is that of a hub or a token that cannot be used.
func New(o Options) (*Puller, error) {
	o.Mode, o.Hub = cmp.Or(o.Mode, ModeAuto), cmp.Or(o.Hub, DefaultHub)
	o.Parallel, o.Tries, o.Stall = cmp.Or(o.Parallel, 3), cmp.Or(o.Tries, 5), cmp.Or(o.Stall, DefaultStall)
	if o.Free == nil {
		o.Free = freeSpace
	}
	if !slices.Contains([]Mode{ModeAuto, ModeNever, ModeForce}, o.Mode) {
		return nil, fmt.Errorf("%w: download mode %q: it is auto, never or force", exchange.ErrUsage, o.Mode)
	}
	if o.Parallel < 0 || o.Tries < 0 || o.Stall < 0 {
		return nil, fmt.Errorf("%w: files at once, tries and stall time are above 0", exchange.ErrUsage)
	}
	r, err := newOrigin(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", exchange.ErrUsage, err)
	}
	return &Puller{o: o, origin: r, disk: &disk{free: o.Free, due: map[*download]int64{}}}, nil
}

// Run makes the files exist, several at once, and returns when all have ended. Results stand in the order of the files;
// those of files that failed say how far they came. The error joins those of all files: it wraps exchange.ErrMiss for
// what is missing under ModeNever, exchange.ErrNoSpace where the disk is too small, and the cause of ctx when it ended.
func (p *Puller) Run(ctx context.Context, files []File) ([]Result, error) {
	files, err := distinct(files)
	if err != nil {
		return nil, err
	}
	results, errs := make([]Result, len(files)), make([]error, len(files))
	var due []*download
	var at []int
	for i, f := range files {
		results[i] = Result{Path: f.Path, URL: f.URL}
		there, err := isFile(f.Path)
		switch {
		case err != nil:
			errs[i] = err
		case there >= 0 && p.o.Mode != ModeForce:
			results[i].Bytes, results[i].Kept = there, true
		case p.o.Mode == ModeNever:
			errs[i] = &exchange.Error{Op: "find model file", Object: f.Path, Side: exchange.SideClient, Cause: exchange.ErrMiss, Hint: "allow its download, or put it there"}
		default:
			d := &download{file: f, o: &p.o, origin: p.origin, disk: p.disk, result: results[i]}
			d.tell(PhaseQueued)
			due, at = append(due, d), append(at, i)
		}
	}
	p.mu.Lock()
	p.running = due
	p.mu.Unlock()
	var all sync.WaitGroup
	slots := make(chan struct{}, p.o.Parallel)
	for k, d := range due {
		slots <- struct{}{}
		all.Go(func() {
			results[at[k]], errs[at[k]] = d.Run(ctx)
			<-slots
		})
	}
	all.Wait()
	return results, errors.Join(errs...)
}

// Progress is how far the files are that Run fetches, in their order. Files that were there are not among them.
func (p *Puller) Progress() []Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Progress, len(p.running))
	for i, d := range p.running {
		out[i] = *d.state.Load()
	}
	return out
}

// distinct leaves out files that are named twice. Two files for one place are refused.
func distinct(files []File) ([]File, error) {
	var out []File
	for _, f := range files {
		f.Path = filepath.Clean(f.Path)
		i := slices.IndexFunc(out, func(other File) bool { return other.Path == f.Path })
		switch {
		case i < 0:
			out = append(out, f)
		case out[i].URL != f.URL:
			return nil, fmt.Errorf("%w: %s is the place of two files", exchange.ErrUsage, f.Path)
		}
	}
	return out, nil
}

// isFile is the size of a file, -1 when there is none.
func isFile(path string) (int64, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return -1, nil
	case err != nil:
		return 0, fmt.Errorf("look at model file: %w", err)
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%w: %s is there and is no file", exchange.ErrUsage, path)
	}
	return info.Size(), nil
}

// spare is what stays free on a disk.
const spare = 64 << 20

// disk keeps downloads that run together from filling one that is too small for all of them.
type disk struct {
	free func(dir string) (int64, error)
	mu   sync.Mutex
	due  map[*download]int64 // bytes that are yet to come, when they were reserved
}

// reserve sets so many bytes aside; -1 when it is not known how many. The error wraps exchange.ErrNoSpace.
func (k *disk) reserve(d *download, bytes int64) error {
	if bytes < 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.due, d)
	free, err := k.free(filepath.Dir(d.file.Path))
	if err != nil {
		return nil // nobody knows: the write will tell
	}
	others := int64(0)
	for other, reserved := range k.due {
		if filepath.Dir(other.file.Path) == filepath.Dir(d.file.Path) {
			others += max(0, reserved-other.written())
		}
	}
	if free-others-spare < bytes {
		return fmt.Errorf("%w: %s needs %d MB more, and %d MB are free", exchange.ErrNoSpace, d.file.Path, (bytes+others+spare)>>20, free>>20)
	}
	k.due[d] = bytes + d.part.have
	return nil
}

func (k *disk) release(d *download) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.due, d)
}

// written is how far the download is, as others may see it.
func (d *download) written() int64 { return d.state.Load().Have }
