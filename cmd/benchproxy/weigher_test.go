package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const tinyDigest = "sha256:7089b798f11d04a3e88795abc2f2120916872804138217748b53ba73dbf35f1e"

// tiny is a model file, last changed a while ago.
func tiny(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/files/tiny.gguf")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	old := time.Unix(1_700_000_000, 0)
	if err := errors.Join(os.WriteFile(path, b, 0o600), os.Chtimes(path, old, old)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestModelFiles(t *testing.T) {
	path := tiny(t)
	one, two := []upstream{{name: "engine"}}, []upstream{{name: "a"}, {name: "b"}}
	for name, c := range map[string]struct {
		flags []string
		ups   []upstream
		want  string // upstreams, in order; "" for a usage error
	}{
		"one":                      {[]string{path}, one, "engine"},
		"one by name":              {[]string{"engine=" + path}, one, "engine"},
		"two":                      {[]string{"b=" + path, "a=" + path}, two, "b a"},
		"two, and no name":         {[]string{path}, two, ""},
		"two files for one":        {[]string{path, path}, one, ""},
		"a name that is none":      {[]string{"c=" + path}, two, ""},
		"a file that is not there": {[]string{path + "x"}, one, ""},
	} {
		files, err := modelFiles(c.flags, c.ups)
		var got []string
		for _, f := range files {
			got = append(got, f.upstream)
		}
		if strings.Join(got, " ") != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// weighing is a capture of a vLLM whose model file was named.
func weighing(t *testing.T, store, path string, identify bool) exchange.Run {
	t.Helper()
	engine := httptest.NewServer(answerAs("1", "m"))
	defer engine.Close()
	s := quietCapture(t, time.Minute, engine.URL)
	s.identify, s.store = identify, store
	s.session.Identity = exchange.Identity{Engine: "labelled", Basis: "label"}
	var err error
	if s.weights, err = modelFiles([]string{path}, s.upstreams); err != nil {
		t.Fatal(err)
	}
	c, err := startCapture(quietEnv(io.Discard), s)
	if err != nil {
		t.Fatal(err)
	}
	if identify {
		awaitDeployments(t, c, 1)
	}
	return closeCapture(t, c)
}

// TestWeightsBelongToTheRun holds that the closing write has the file's digest, whoever was first, and that a second run
// over the same file and store need not read it.
func TestWeightsBelongToTheRun(t *testing.T) {
	path, store := tiny(t), filepath.Join(t.TempDir(), "s")
	for round := range 2 {
		run := weighing(t, store, path, true)
		d := run.Deployments[len(run.Deployments)-1]
		if d.Engine != "vllm" || knownText(d.WeightsDigest) != tinyDigest || d.Weights == nil || d.Weights.Digest != tinyDigest {
			t.Errorf("round %d: %+v", round, d)
		}
		if w := d.Weights; w.Architecture != "llama" || knownNumber(w.Context) != "2048" || knownNumber(d.Parameters) != "32" || knownText(d.Quantization) != "Q4_K_M" {
			t.Errorf("round %d: weights %+v in %+v", round, w, d)
		}
		if d.Fingerprint.Known["weights_digest"] != tinyDigest || d.Fingerprint.Known["engine"] != "vllm" {
			t.Errorf("round %d: fingerprint %+v", round, d.Fingerprint)
		}
		if run.Identity.Engine != "vllm" {
			t.Errorf("round %d: the run's engine is %+v", round, run.Identity)
		}
	}
}

func TestWeightsOfAnEngineThatIsNotAsked(t *testing.T) {
	run := weighing(t, filepath.Join(t.TempDir(), "s"), tiny(t), false)
	if n := len(run.Deployments); n != 2 {
		t.Fatalf("%d readings", n)
	}
	first, last := run.Deployments[0], run.Deployments[1]
	if first.Why != exchange.ReadAtStart || first.WeightsDigest != nil || first.Weights == nil || first.Engine != "labelled" {
		t.Errorf("first %+v", first)
	}
	if last.Why != exchange.ReadOfFile || knownText(last.WeightsDigest) != tinyDigest {
		t.Errorf("last %+v", last)
	}
}

// fakeDigests answers from a function and remembers what was kept.
type fakeDigests struct {
	known func(stamp string) (string, bool)
	kept  map[string]string
}

func (f *fakeDigests) FileDigest(stamp string) (string, bool) { return f.known(stamp) }

func (f *fakeDigests) PutFileDigest(stamp, digest string) error {
	f.kept[stamp] = digest
	return nil
}

func nothingKnown(string) (string, bool) { return "", false }

// weigh digests one file in a weigher of its own and gives what was told and warned of.
func weigh(t *testing.T, path string, known *fakeDigests, hurry context.Context) (told []exchange.Deployment, warned string) {
	t.Helper()
	files, err := modelFiles([]string{path}, []upstream{{name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWeigher(files, exchange.Identity{})
	w.known = known
	w.told = func(d exchange.Deployment) { told = append(told, d) }
	w.warn = func(format string, args ...any) { warned += fmt.Sprintf(format, args...) + "\n" }
	w.start(true)
	w.wg.Wait()
	w.Close(hurry)
	return told, warned
}

func TestADigestIsReadOnce(t *testing.T) {
	path := tiny(t)
	known := &fakeDigests{known: nothingKnown, kept: map[string]string{}}
	told, _ := weigh(t, path, known, t.Context())
	if len(known.kept) != 1 || len(told) != 1 || knownText(told[0].WeightsDigest) != tinyDigest {
		t.Fatalf("kept %v, told %+v", known.kept, told)
	}
	known.known = func(stamp string) (string, bool) { return "sha256:kept", known.kept[stamp] == tinyDigest }
	if told, _ = weigh(t, path, known, t.Context()); knownText(told[0].WeightsDigest) != "sha256:kept" {
		t.Errorf("told %+v", told)
	}
}

// TestADigestThatWillNotHold holds that a file which changes, now or a moment ago, leaves nothing behind.
func TestADigestThatWillNotHold(t *testing.T) {
	fresh, changing := tiny(t), tiny(t)
	now := time.Unix(4_000_000_000, 0)
	if err := os.Chtimes(fresh, now, now); err != nil {
		t.Fatal(err)
	}
	known := &fakeDigests{known: nothingKnown, kept: map[string]string{}}
	if told, _ := weigh(t, fresh, known, t.Context()); knownText(told[0].WeightsDigest) != tinyDigest || len(known.kept) != 0 {
		t.Errorf("a fresh file: kept %v, told %+v", known.kept, told)
	}
	known.known = func(string) (string, bool) { // it is asked between the two looks at the file
		return "", os.Chtimes(changing, now, now) != nil
	}
	told, warned := weigh(t, changing, known, t.Context())
	if told[0].WeightsDigest != nil || told[0].Weights == nil || len(known.kept) != 0 || !strings.Contains(warned, "changed while it was read") {
		t.Errorf("a changing file: kept %v, told %+v, warned %q", known.kept, told, warned)
	}
	known.known = func(string) (string, bool) { return "", os.Remove(changing) != nil }
	if told, warned = weigh(t, changing, known, t.Context()); told[0].WeightsDigest != nil || !strings.Contains(warned, "weights are unknown") {
		t.Errorf("a file that went: told %+v, warned %q", told, warned)
	}
}

// TestTheEndDoesNotWaitForEver holds that whoever hurries leaves the digest unknown, and that the run says so.
func TestTheEndDoesNotWaitForEver(t *testing.T) {
	files, err := modelFiles([]string{tiny(t)}, []upstream{{name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	hurry, hurryUp := context.WithCancel(t.Context())
	var told []exchange.Deployment
	warned := make(chan string, 3)
	w := newWeigher(files, exchange.Identity{})
	canceled := make(chan struct{})
	w.known = &fakeDigests{known: func(string) (string, bool) {
		<-canceled // stands for a file that takes hours
		return "", false
	}}
	w.told = func(d exchange.Deployment) { told = append(told, d) }
	w.warn = func(format string, args ...any) { warned <- fmt.Sprintf(format, args...) }
	w.start(true)
	cancel := w.cancel
	w.cancel = func() { cancel(); close(canceled) }
	read := w.attach(exchange.Deployment{Upstream: "a", Identity: exchange.Identity{Engine: "vllm"}})
	if read.Weights == nil || read.WeightsDigest != nil {
		t.Errorf("a reading before the digest: %+v", read)
	}
	if other := w.attach(exchange.Deployment{Upstream: "a", Why: exchange.ReadAtAnswer}); other.Weights != nil {
		t.Error("another model was given the file's weights")
	}
	closed := make(chan struct{})
	go func() {
		w.Close(hurry)
		close(closed)
	}()
	if text := <-warned; !strings.Contains(text, "Ctrl-C") {
		t.Errorf("it says %q", text)
	}
	hurryUp()
	<-closed
	if text := <-warned; !strings.Contains(text, "unknown") {
		t.Errorf("it says %q", text)
	}
	if len(told) != 0 {
		t.Errorf("told %+v", told)
	}
}
