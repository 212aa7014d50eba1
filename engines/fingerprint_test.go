package engines

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func whole() exchange.Deployment {
	return exchange.Deployment{Identity: exchange.Identity{Engine: "llamacpp", Version: "b1"}, Model: pointer("m"), ModelRoot: pointer("m.gguf"),
		Parameters: pointer(int64(8)), Quantization: pointer("Q8_0"), Window: pointer(int64(4096)), Slots: pointer(int64(4)), GPUs: pointer(int64(1)),
		Drafting: pointer(false), ObservedDevice: pointer("cuda"), WeightsDigest: pointer("sha256:00")}
}

func TestUnknownNeverEqualsAnything(t *testing.T) {
	a, b := whole(), whole()
	b.Upstream, b.Evidence, b.Why = "other", "else", exchange.ReadAtRestart
	if l := Compare(fingerprint(&a), fingerprint(&b)); !l.Proven() {
		t.Errorf("the same deployment: %+v", l)
	}
	a.GPUs, b.GPUs = nil, nil
	l := Compare(fingerprint(&a), fingerprint(&b))
	if l.Proven() || !slices.Equal(l.Open, []string{"gpus"}) || fingerprint(&a).Digest != fingerprint(&b).Digest {
		t.Errorf("unknown on both sides: %+v", l)
	}
	b = whole()
	b.Quantization = pointer("Q4_0")
	l = Compare(fingerprint(&a), fingerprint(&b))
	if diff := cmp.Diff([]string{"quantization"}, l.Different); diff != "" || !slices.Equal(l.Open, []string{"gpus"}) {
		t.Errorf("got %+v", l)
	}
	if l := Compare(fingerprint(&a), nil); l.Proven() || len(l.Same) != 0 || len(l.Open) != 13 {
		t.Errorf("against none: %+v", l)
	}
	if Compare(nil, nil).Proven() {
		t.Error("two unknown deployments are the same")
	}
}

func TestLaunchIsOfTheFingerprint(t *testing.T) {
	a, b := WithLaunch(whole(), "l1:1"), WithLaunch(whole(), "l1:2")
	if l := Compare(a.Fingerprint, b.Fingerprint); !slices.Equal(l.Different, []string{"launch"}) {
		t.Errorf("another build: %+v", l)
	}
	if l := Compare(a.Fingerprint, WithLaunch(whole(), "l1:1").Fingerprint); !slices.Contains(l.Same, "launch") {
		t.Errorf("the same build: %+v", l)
	}
	if l := Compare(a.Fingerprint, WithLaunch(whole(), "").Fingerprint); l.Proven() || !slices.Contains(l.Open, "launch") {
		t.Errorf("a build that is not known: %+v", l)
	}
}

func TestFingerprintListsWhatIsUnknown(t *testing.T) {
	d := exchange.Deployment{Identity: exchange.Identity{Engine: Unknown}, Inner: &exchange.Identity{Engine: "ollama"}}
	f := fingerprint(&d)
	if diff := cmp.Diff(map[string]string{"inner_engine": "ollama"}, f.Known); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(f.Unknown) || !slices.Contains(f.Unknown, "engine") || !slices.Contains(f.Unknown, "inner_version") || len(f.Digest) != 12 {
		t.Errorf("got %+v", f)
	}
}
