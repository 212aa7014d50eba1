package matrix

import (
	"strings"
	"testing"
)

// TestLongIDs holds that ids of any length make names that a file system takes, and that two of them never meet.
func TestLongIDs(t *testing.T) {
	fits := strings.Repeat("m", longestWord)
	if got := word(fits); got != fits {
		t.Errorf("an id that fits became %s", got)
	}
	for _, long := range []string{strings.Repeat("m", 250), strings.Repeat("模", 250), strings.Repeat("_", 250), strings.Repeat("a/", 200)} {
		one, other := word(long), word(long+"x")
		if len(one) > longestWord+7 || one == other {
			t.Errorf("an id of %d bytes became %s, and a longer one %s", len(long), one, other)
		}
	}
}
