package replay

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestFlagsOfTheRecord reads what the command line of a run says of its flags; the words of an engine that it started are
// none of them.
func TestFlagsOfTheRecord(t *testing.T) {
	args := []string{"benchproxy", "validate", "inference", "--engine-arg", "--max-tokens", "--engine-arg", "7", "--reference-arg", "--thinking", "--warmup", "2"}
	for _, test := range []struct {
		args  []string
		name  string
		value string
		named bool
	}{
		{args, "max-tokens", "", false},
		{append(args, "--max-tokens", "9"), "max-tokens", "9", true},
		{append(args, "-max-tokens=8"), "max-tokens", "8", true},
		{args, "thinking", "", false},
		{append(args, "--thinking"), "thinking", "", true},
		{args, "warmup", "2", true},
	} {
		r := &RunRecord{Run: &exchange.Run{MadeBy: test.args}}
		if value, named, known := r.flag(test.name); value != test.value || named != test.named || !known {
			t.Errorf("%q of %q: %q, %t, %t", test.name, test.args, value, named, known)
		}
	}
	if _, _, known := (&RunRecord{Run: &exchange.Run{}}).flag("warmup"); known {
		t.Error("a run without a command line is said to have one")
	}
}
