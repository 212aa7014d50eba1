package host

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostIsReadAndAbsentIsNull(t *testing.T) {
	root := t.TempDir()
	bare := Read(root)
	if bare.Kernel != nil || bare.CPU != nil || bare.Governor != nil || bare.Clocksource != nil || bare.Virtual != nil || bare.Load1 != nil {
		t.Errorf("facts without files: %+v", bare)
	}
	for file, text := range map[string]string{
		kernelFile: "6.1.0\n", cpuFile: "processor : 0\nmodel name\t: Some CPU @ 3 GHz\nflags\t\t: fpu hypervisor sse\n",
		loadFile: "1.25 0.5 0.1 1/2 3\n", governorFile: "performance\n", clocksourceFile: "tsc\n",
	} {
		path := filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got := Read(root)
	virtual, load := true, 1.25
	want := bare
	want.Kernel, want.CPU, want.Governor, want.Clocksource = fact("6.1.0"), fact("Some CPU @ 3 GHz"), fact("performance"), fact("tsc")
	want.Virtual, want.Load1 = &virtual, &load
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("host (-want +got):\n%s", d)
	}
}

func fact(s string) *string { return &s }

func TestVirtualMachinesAreTold(t *testing.T) {
	for _, c := range []struct {
		cpu, maker string
		want       string
	}{
		{"flags : fpu sse\n", "QEMU", "false"}, // the processor knows better than the maker's name
		{"flags : fpu hypervisor\n", "", "true"},
		{"", "Amazon EC2\n", "true"},
		{"", "Dell Inc.\n", "false"},
		{"", "", "null"},
	} {
		b, err := json.Marshal(virtual(c.cpu, c.maker))
		if err != nil || string(b) != c.want {
			t.Errorf("%q by %q: %s, %v, want %s", c.cpu, c.maker, b, err, c.want)
		}
	}
}
