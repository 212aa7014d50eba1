package recorder

import (
	"errors"
	"testing"
	"time"
)

// TestHealthTellsTheRoom holds that Health tells size and free space, reads them seldom however often it is asked, and tells
// none where they cannot be read.
func TestHealthTellsTheRoom(t *testing.T) {
	asked, free, broken := 0, int64(1<<40), error(nil)
	s := openStore(t, t.TempDir(), Options{FreeSpace: func(string) (int64, error) { asked++; return free, broken }})
	var g gathered
	w, release := heldWriter(t, s, &g, 0)
	before := asked
	for range 100 {
		w.Health()
	}
	if asked != before+1 {
		t.Errorf("the disk was asked %d times", asked-before)
	}
	h := w.Health()
	if h.StoreBytes == nil || *h.StoreBytes <= 0 || h.FreeBytes == nil || *h.FreeBytes != free || h.FloorBytes != s.o.minFree() || h.LowOnSpace() {
		t.Errorf("health %+v", h)
	}
	later := func() Health {
		s.room.mu.Lock()
		s.room.read = s.room.read.Add(-time.Hour)
		s.room.mu.Unlock()
		return w.Health()
	}
	free = 2*s.o.minFree() - 1
	if h := later(); *h.FreeBytes != free || !h.LowOnSpace() {
		t.Errorf("health %+v", h)
	}
	broken = errors.New("the system does not tell")
	if h := later(); h.FreeBytes != nil || h.StoreBytes == nil || h.LowOnSpace() {
		t.Errorf("health %+v", h)
	}
	broken = nil
	release() // only now does anything else ask
	closeWriter(t, w)
}
