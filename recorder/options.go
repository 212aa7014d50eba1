package recorder

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Options of a store. The zero value is ready for use.
type Options struct {
	Sync      bool                            // wait for the disk at every commit; without, once a second
	MinFree   int64                           // floor of free space in bytes; 0 = DefaultMinFree
	FreeSpace func(dir string) (int64, error) // bytes free for us on the disk of dir; nil = ask the system
	Admin     string                          // address of the owner's admin listener, "" when there is none yet
	Harness   string                          // version of benchproxy, for owner.json
	Host      string                          // fingerprint of this machine, whose newest selftest a run begun here carries; "" = none
	Log       *slog.Logger                    // warnings, each condition once; nil = none

	valueLogFile int64 // bytes; 0 = valueLogFileSize. Tests make files small to see space come back
}

// DefaultMinFree is the default floor of free space. Badger maps a value log file at twice its size and holds two
// memtables, all sparse: a write that finds no block for its page ends the process by SIGBUS. The floor is far above
// their sum, so that compaction and other programs have room too.
const DefaultMinFree = 1 << 30

const (
	memTableSize     = 8 << 20
	numMemtables     = 2
	valueLogFileSize = 64 << 20
)

// minFree is the floor: what the user set, but never less than what open files and a full queue can still take.
func (o *Options) minFree() int64 {
	if o.MinFree > 0 {
		return o.MinFree
	}
	return max(DefaultMinFree, 2*valueLogFileSize+2*memTableSize+DefaultQueueBytes)
}

func (o *Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// WriterOptions of a writer. The zero value is ready for use.
type WriterOptions struct {
	QueueBytes int64 // bound of what waits to be stored, in bytes of memory; 0 = DefaultQueueBytes
	Workers    int   // goroutines that prepare records; 0 = half of the processors, at least 1

	// Derive makes the row of an exchange: outcome, metrics, model. The facts (ids, sizes, digests, key) are filled in
	// after it. nil leaves them alone in the row.
	Derive func(x *exchange.Exchange) exchange.Summary
	// OnStored acknowledges a record after its commit, in no particular order. It runs on the writer's goroutine and
	// must be quick.
	OnStored func(exchange.Summary)
	// OnDropped tells of a record that will not be stored. It may run on any goroutine and must be quick.
	OnDropped func(id exchange.ID, why DropReason)
}

// DefaultQueueBytes bounds what waits for the recorder: two records at the body cap, or a second of heavy traffic.
const DefaultQueueBytes = 256 << 20

func (o *WriterOptions) queueBytes() int64 {
	if o.QueueBytes > 0 {
		return o.QueueBytes
	}
	return DefaultQueueBytes
}

func (o *WriterOptions) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return max(runtime.GOMAXPROCS(0)/2, 1)
}

// badgerOptions are the settings of every Badger directory, each with its reason.
func badgerOptions(dir string, o *Options) badger.Options {
	vlog := o.valueLogFile
	if vlog == 0 {
		vlog = valueLogFileSize
	}
	return badger.DefaultOptions(dir).
		// Writes go to a shared mapping, which outlives the process; only a loss of power needs a sync.
		WithSyncWrites(o.Sync).
		// The defaults take more than 1 GB of memory for what these do in 20 MB.
		WithMemTableSize(memTableSize).
		WithNumMemtables(numMemtables).
		// Bodies belong in the value log: five times faster to write and to read than in the tree. Manifests and rows too:
		// in the tree every flush and compaction would copy them again, a fifth of what a small exchange costs, and rows
		// are listed as fast from here.
		WithValueThreshold(512).
		// Collection rewrites whole files: small ones cost less. It also bounds the size of one value.
		WithValueLogFileSize(vlog).
		// Values are compressed before they come here.
		WithCompression(options.None).
		// Only compressed or encrypted tables need the block cache.
		WithBlockCacheSize(0).
		// 0 would keep every index in memory.
		WithIndexCacheSize(16 << 20).
		// One writer: there are no conflicts to find.
		WithDetectConflicts(false).
		// Two is the least it accepts.
		WithNumCompactors(2).
		// A damaged value must be an error and not an answer.
		WithVerifyValueChecksum(true).
		// Its metrics are names of the process, which two stores would share.
		WithMetricsEnabled(false).
		WithNumVersionsToKeep(1).
		// Badger itself refuses data of another format, beside our own FORMAT file.
		WithExternalMagic(FormatVersion).
		WithLogger(badgerLog{o.log()})
}

// badgerLog passes on what Badger finds worth a warning.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(f string, args ...any)   { l.log.Error(badgerLine(f, args)) }
func (l badgerLog) Warningf(f string, args ...any) { l.log.Warn(badgerLine(f, args)) }
func (l badgerLog) Infof(string, ...any)           {}
func (l badgerLog) Debugf(string, ...any)          {}

func badgerLine(f string, args []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(f, args...))
}
