package recorder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestStoreGoneWhileOpen holds that records for a directory that was moved away are dropped and counted, not taken for
// stored, and that the recording goes on once it is back.
func TestStoreGoneWhileOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s := openStore(t, dir, Options{})
	ended := make(chan DropReason, 1) // of one record: why it was dropped, "" when it was stored
	w := newWriter(t, s, exchange.Run{Name: "gone"}, WriterOptions{
		OnStored:  func(exchange.Summary) { ended <- "" },
		OnDropped: func(_ exchange.ID, why DropReason) { ended <- why },
	})
	offer := func(want DropReason) {
		t.Helper()
		if !w.Offer(streamed("{}", "a")) {
			t.Fatal("the record was not taken")
		}
		if got := <-ended; got != want {
			t.Errorf("dropped as %q, want %q", got, want)
		}
	}
	offer("")
	move(t, dir, dir+".away")
	offer(DropStoreGone)
	if h := w.Health(); h.Degraded != string(DropStoreGone) || h.Stored != 1 || h.DropWhy[string(DropStoreGone)] != 1 {
		t.Errorf("health %+v", h)
	}
	if _, err := w.Close(context.Background()); err == nil || !strings.Contains(err.Error(), "moved or removed") {
		t.Errorf("the closing write of a store that is gone: %v", err)
	}
	move(t, dir+".away", dir)
}

// TestCloseOfAStoreThatIsGone holds that Close comes back although Badger goes on trying to write.
func TestCloseOfAStoreThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := Open(dir, Options{FreeSpace: plenty})
	if err != nil {
		t.Fatal(err)
	}
	recordAll(t, s, "one", streamed("{}", "a"))
	move(t, dir, dir+".away")
	var e *exchange.Error
	if err := s.Close(); !errors.As(err, &e) || !strings.Contains(err.Error(), "moved or removed") {
		t.Errorf("close: %v", err)
	}
	move(t, dir+".away", dir)
	for { // what tries to write ends now, and gives the lock back
		again, err := Open(dir, Options{FreeSpace: plenty})
		if err == nil {
			closeChecked(t, again)
			return
		}
		if !errors.Is(err, exchange.ErrLocked) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestOpenWithoutPermission holds that a store that cannot be written is not called damaged.
func TestOpenWithoutPermission(t *testing.T) {
	s := &Store{dir: "/x"}
	for _, text := range []string{
		`Cannot write pid file "LOCK" err: open LOCK: read-only file system`, `Error opening "MANIFEST": permission denied`,
	} {
		err := s.badgerOpenError(errors.New(text))
		if errors.Is(err, exchange.ErrDamaged) || errors.Is(err, exchange.ErrLocked) || !strings.Contains(err.Error(), "writable") {
			t.Errorf("%v", err)
		}
	}
}
