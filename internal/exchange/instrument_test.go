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

func TestFloorsAreTheKnownOnesByStreams(t *testing.T) {
	us := func(v float64) *float64 { return &v }
	i := Instrument{Noise: []NoiseFloor{
		{Load: LoadIdle, Streams: 64, US: us(9)}, {Load: LoadIdle, Streams: 1, US: us(3)}, {Load: LoadIdle, Streams: 16},
		{Load: LoadBusy, Streams: 1, Reason: "no_samples"},
	}}
	if f := i.Floors(LoadIdle); len(f) != 2 || *f[0].US != 3 || *f[1].US != 9 {
		t.Errorf("idle %+v", f)
	}
	if f := i.Floors(LoadBusy); len(f) != 0 {
		t.Errorf("busy %+v without a floor", f)
	}
}
