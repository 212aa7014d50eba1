package recorder

import (
	"context"
	"errors"
	"time"
)

// DefaultKeepEvery is how often a Keeper looks, when nothing else is said.
const DefaultKeepEvery = time.Minute

// KeeperOptions say what a Keeper keeps.
type KeeperOptions struct {
	Keep  Retention     // MaxAge and MaxBytes; what else it has is not used
	Every time.Duration // between two looks; 0 = DefaultKeepEvery

	// Removed tells of a look that removed runs, with the space before and after. It runs on the goroutine of Run.
	Removed func(PruneReport)
	// Failed tells of a look that ended in an error; the next one is made all the same. It runs there too.
	Failed func(error)
}

// Keeper holds a store to its retention while a process records into it: other processes cannot, since the store has
// one owner. A run that is being written counts with what it has so far, and stays.
type Keeper struct {
	store *Store
	o     KeeperOptions
}

// NewKeeper makes a keeper of a store. Run starts it.
func NewKeeper(s *Store, o KeeperOptions) *Keeper {
	o.Keep = Retention{MaxAge: o.Keep.MaxAge, MaxBytes: o.Keep.MaxBytes}
	if o.Every <= 0 {
		o.Every = DefaultKeepEvery
	}
	return &Keeper{store: s, o: o}
}

// Run looks at once and then again and again, until ctx ends. Close the store after Run has returned.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(k.o.Every)
	defer tick.Stop()
	for {
		k.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look removes what is over the limits. To find out costs a read of the runs, so nothing else is done while all fit.
func (k *Keeper) look(ctx context.Context) {
	over, err := k.over()
	if err == nil && over {
		var report PruneReport
		report, err = k.store.Prune(ctx, k.o.Keep)
		if len(report.Removed) > 0 && k.o.Removed != nil {
			k.o.Removed(report)
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) && k.o.Failed != nil {
		k.o.Failed(err)
	}
}

// over reports whether a run would go.
func (k *Keeper) over() (bool, error) {
	var report PruneReport
	doomed, err := k.store.chooseRuns(k.o.Keep, &report)
	return len(doomed) > 0, err
}
