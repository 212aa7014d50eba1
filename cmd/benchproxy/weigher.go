package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/weights"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// settled is how long ago a file must have been changed for its digest to be kept: one that changes again within the tick
// of the file system's clock has the same stamp.
const settled = 2 * time.Second

// modelFile is one --weights: the file that the engine behind an upstream has loaded, by the word of the user.
type modelFile struct {
	upstream string
	path     string
	states   exchange.Weights
}

// modelFiles reads the --weights flags: FILE for the only upstream, NAME=FILE for one of several. The files' metadata is
// read at once, so that a wrong name is told before anything starts.
func modelFiles(flags []string, ups []upstream) ([]modelFile, error) {
	var out []modelFile
	for _, flag := range flags {
		f := modelFile{path: flag}
		if name, path, ok := strings.Cut(flag, "="); ok && isUpstream(ups, name) {
			f.upstream, f.path = name, path
		} else if len(ups) == 1 {
			f.upstream = ups[0].name
		} else {
			return nil, usagef("--weights %s: say NAME=FILE with the name of an upstream: %s", flag, strings.Join(upstreamNames(ups), ", "))
		}
		if slices.ContainsFunc(out, func(have modelFile) bool { return have.upstream == f.upstream }) {
			return nil, usagef("--weights names two files for %s; of a split file one shard stands for all", f.upstream)
		}
		var err error
		if f.states, err = weights.ReadGGUF(f.path); err != nil {
			return nil, fmt.Errorf("--weights: %w", err)
		}
		out = append(out, f)
	}
	return out, nil
}

func isUpstream(ups []upstream, name string) bool { return slices.Contains(upstreamNames(ups), name) }

func upstreamNames(ups []upstream) []string {
	var names []string
	for _, u := range ups {
		names = append(names, u.name)
	}
	return names
}

// digests keeps the digests of files by their stamps.
type digests interface {
	FileDigest(stamp string) (string, bool)
	PutFileDigest(stamp, digest string) error
}

// weigher digests the model files of a capture in the background and adds what they state to what is read of the engines.
type weigher struct {
	known  digests
	label  exchange.Identity // of upstreams that are not identified
	told   func(exchange.Deployment)
	warn   func(format string, args ...any)
	cancel context.CancelFunc
	ended  chan struct{} // closed when every file was digested, or no more will be
	wg     sync.WaitGroup

	mu    sync.Mutex
	files []modelFile
	read  map[string]exchange.Deployment // upstream -> last reading of it
}

func newWeigher(files []modelFile, label exchange.Identity) *weigher {
	return &weigher{files: slices.Clone(files), label: label, ended: make(chan struct{}), read: map[string]exchange.Deployment{}}
}

// start begins to digest. With identified, engines are read by others, and their readings come through attach; else what
// the files state is told at once. told and warn may be called from any goroutine.
func (w *weigher) start(identified bool) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	if !identified {
		w.tellUnread(exchange.ReadAtStart)
	}
	w.wg.Go(func() {
		defer close(w.ended)
		w.Run(ctx)
	})
}

// Run digests the files one after the other, until ctx ends.
func (w *weigher) Run(ctx context.Context) {
	for i, f := range w.files { // only their digests change
		digest, err := w.digest(ctx, f.path)
		switch {
		case ctx.Err() != nil:
			w.warn("the digest of %s was not waited for: the run's weights are unknown", f.states.Name)
			return
		case err != nil:
			w.warn("%v; the run's weights are unknown", err)
			continue
		}
		w.done(i, digest)
	}
}

// digest is the digest of a file: as kept, or read now. A file that changes meanwhile has none.
func (w *weigher) digest(ctx context.Context, path string) (string, error) {
	stamp, newest, err := weights.Stamp(path)
	if err != nil {
		return "", err
	}
	if d, ok := w.known.FileDigest(stamp); ok {
		return d, nil
	}
	began := clock.Now()
	d, err := weights.Digest(ctx, path)
	if err != nil {
		return "", err
	}
	after, _, err := weights.Stamp(path)
	if err != nil {
		return "", err
	}
	if after != stamp {
		return "", fmt.Errorf("%s changed while it was read", path)
	}
	if newest.Before(began.Add(-settled)) {
		if err := w.known.PutFileDigest(stamp, d); err != nil {
			w.warn("%v", err) // the next run reads the file again
		}
	}
	return d, nil
}

// done takes the digest of a file, and tells it when its engine was read already.
func (w *weigher) done(i int, digest string) {
	w.mu.Lock()
	w.files[i].states.Digest = digest
	f := w.files[i]
	d, read := w.read[f.upstream]
	w.mu.Unlock()
	if !read {
		return
	}
	d.Why, d.ReadAt, d.Probes = exchange.ReadOfFile, clock.Now().UTC().Round(0), 0
	w.told(engines.WithWeights(d, f.states))
}

// attach adds what is known of the file to a reading of its engine. Of a model that changed in mid-run it is not the file.
func (w *weigher) attach(d exchange.Deployment) exchange.Deployment {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.files, func(f modelFile) bool { return f.upstream == d.Upstream })
	if i < 0 || d.Why == exchange.ReadAtAnswer {
		return d
	}
	w.read[d.Upstream] = d
	return engines.WithWeights(d, w.files[i].states)
}

// tellUnread tells what the files state whose engines were not read.
func (w *weigher) tellUnread(why string) {
	for _, f := range w.unread() {
		d := exchange.Deployment{Upstream: f.upstream, ReadAt: clock.Now().UTC().Round(0), Why: why, Identity: w.label,
			Evidence: "the engine was not asked"}
		w.mu.Lock()
		w.read[f.upstream] = d
		w.mu.Unlock()
		w.told(engines.WithWeights(d, f.states))
	}
}

func (w *weigher) unread() (out []modelFile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		if _, read := w.read[f.upstream]; !read {
			out = append(out, f)
		}
	}
	return out
}

// Close waits until every file has its digest, or until hurry ends. Then it tells what the files state whose engines could
// not be read.
func (w *weigher) Close(hurry context.Context) {
	select {
	case <-w.ended:
	default:
		w.warn("reading the model file to its end for its digest; Ctrl-C leaves it unknown")
	}
	select {
	case <-w.ended:
	case <-hurry.Done():
	}
	w.cancel()
	w.wg.Wait()
	w.tellUnread(exchange.ReadOfFile)
}
