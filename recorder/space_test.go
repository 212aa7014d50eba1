package recorder

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestSpace(t *testing.T) {
	free := int64(5 << 30)
	s := openStore(t, filepath.Join(t.TempDir(), "s"), Options{FreeSpace: func(string) (int64, error) { return free, nil }})
	size, got, err := s.Space()
	if err != nil || size <= 0 || got != free {
		t.Errorf("size %d, free %d, %v", size, got, err)
	}
	st, err := s.Stats()
	if err != nil || st.FreeBytes != got {
		t.Errorf("stats say %d free, %v", st.FreeBytes, err)
	}
	unknown := openStore(t, filepath.Join(t.TempDir(), "s"), Options{FreeSpace: func(string) (int64, error) { return 0, errors.New("no") }})
	if _, got, err := unknown.Space(); got != 0 || err != nil {
		t.Errorf("free %d, %v of a system that cannot tell", got, err)
	}
}
