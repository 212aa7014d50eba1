package exchange

import (
	"strings"
	"testing"
)

func TestFingerprintIsOfTheMachineAndNotItsLoad(t *testing.T) {
	name, governor, load := "box", "performance", 3.5
	a := Host{Name: &name, OS: "linux", Cores: 2}
	b := a
	b.Load1 = &load
	if a.Fingerprint() != b.Fingerprint() || !strings.HasPrefix(a.Fingerprint(), "host1:") || len(a.Fingerprint()) != 22 {
		t.Errorf("fingerprints %q and %q", a.Fingerprint(), b.Fingerprint())
	}
	if b.Load1 == nil {
		t.Error("the load is gone")
	}
	b.Governor = &governor
	if a.Fingerprint() == b.Fingerprint() {
		t.Error("another governor is the same instrument")
	}
}

func TestFloorIsTheLargestKnown(t *testing.T) {
	us := func(v float64) *float64 { return &v }
	i := Instrument{Noise: []NoiseFloor{
		{Load: LoadIdle, US: us(3)}, {Load: LoadIdle, US: us(9)}, {Load: LoadIdle}, {Load: LoadBusy, Reason: "no_samples"},
	}}
	if v, ok := i.Floor(LoadIdle); !ok || v != 9 {
		t.Errorf("idle %v, %v", v, ok)
	}
	if v, ok := i.Floor(LoadBusy); ok {
		t.Errorf("busy %v without a floor", v)
	}
}
