package recorder

import "testing"

func TestFileDigest(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	if d, ok := s.FileDigest("a"); ok {
		t.Errorf("an empty store knows %q", d)
	}
	if err := s.PutFileDigest("a", "sha256:00"); err != nil {
		t.Fatal(err)
	}
	closeChecked(t, s)
	if _, ok := s.FileDigest("a"); ok {
		t.Error("a closed store answers")
	}
	if err := s.PutFileDigest("a", "sha256:01"); err == nil {
		t.Error("a closed store was written to")
	}
	s = openStore(t, dir, Options{})
	if d, ok := s.FileDigest("a"); !ok || d != "sha256:00" {
		t.Errorf("got %q, %v", d, ok)
	}
}
