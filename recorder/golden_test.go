package recorder

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// goldenOf is a golden of a source, as complete as they get.
func goldenOf(source exchange.ID, key, build string) exchange.Golden {
	n, lp := int64(3), -0.25
	return exchange.Golden{
		Version: exchange.GoldenVersion, Key: key, Digest: "sha256:00", Source: source, Made: day, Harness: "test", Weights: "sha256:aa",
		Engine: exchange.Identity{Engine: "llamacpp", Version: build, Basis: "probe"}, Sampling: []byte(`{"temperature":0}`),
		Conditions: exchange.Conditions{Cache: exchange.CacheCold, CachedTokens: &n, Concurrency: 1},
		Path:       "/completion", PromptDigest: "sha256:11", PromptTokens: &n, PromptIDs: []int64{1, 2, 3}, Spelled: true, Basis: "tokens_logprobs",
		Tokens: []exchange.GoldenToken{
			{ID: 7, Text: "\ufffd", Bytes: []byte{0xc3}, Logprob: &lp, Top: []exchange.TokenProb{{ID: 7, Text: "\ufffd", Bytes: []byte{0xc3}, Logprob: -0.25}, {ID: 9, Text: "x", Logprob: -1.5}}},
		},
		Text: "ü", Finish: "stop",
	}
}

func add(t *testing.T, s *Store, g exchange.Golden, alternate bool) exchange.Golden {
	t.Helper()
	kept, err := s.AddGolden(g, alternate)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func TestGoldensAreKept(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	if list, err := s.GoldensOf(""); err != nil || len(list) != 0 {
		t.Fatalf("a store without goldens has %v, %v", list, err)
	}
	kept := add(t, s, goldenOf("a", "h1:0000000000000001", "b1"), false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	got, err := s.Golden(kept.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&kept, got); d != "" {
		t.Errorf("(-kept +read)\n%s", d)
	}
	if r := mustCheck(t, s); r.Goldens != 1 {
		t.Errorf("check saw %d goldens", r.Goldens)
	}
}

func TestGoldenIsNeverOverwritten(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	first := add(t, s, goldenOf("a", "h1:0000000000000001", "b1"), false)
	var e *exchange.Error
	if _, err := s.AddGolden(goldenOf("b", "h1:0000000000000001", "b1"), false); !errors.Is(err, exchange.ErrUsage) || !errors.As(err, &e) || !strings.Contains(e.Hint, "--alternate") {
		t.Errorf("a second one: %v", err)
	}
	second := add(t, s, goldenOf("b", "h1:0000000000000001", "b1"), true)
	for why, g := range map[string]exchange.Golden{
		"the same exchange": goldenOf("a", "h1:0000000000000001", "b1"),
		"the same id":       func() exchange.Golden { g := goldenOf("z", "h1:00000000000000ff", "b1"); g.ID = first.ID; return g }(),
		"no key":            goldenOf("z", "", "b1"),
	} {
		if _, err := s.AddGolden(g, true); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %v", why, err)
		}
	}
	other := add(t, s, goldenOf("c", "h1:0000000000000001", "b2"), false) // of another build
	add(t, s, goldenOf("d", "h1:0000000000000002", "b1"), false)
	list, err := s.GoldensOf("h1:0000000000000001")
	if err != nil || len(list) != 3 {
		t.Fatalf("%d goldens, %v", len(list), err)
	}
	var b1 []int
	for _, g := range list {
		if g.Engine.Version == "b1" {
			b1 = append(b1, g.Alternate)
		}
	}
	if !slices.Equal(b1, []int{0, 1}) || second.Alternate != 1 || other.Alternate != 0 {
		t.Errorf("alternates %v, second %d, of the other build %d", b1, second.Alternate, other.Alternate)
	}
	if err := s.RemoveGolden(first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Golden(first.ID); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("a removed one: %v", err)
	}
	if err := s.RemoveGolden(first.ID); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("removing twice: %v", err)
	}
	if third := add(t, s, goldenOf("e", "h1:0000000000000001", "b1"), true); third.Alternate != 2 {
		t.Errorf("the number of a removed one came again: %d", third.Alternate)
	}
}

func TestGoldensOutliveTheirRun(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	x := streamed("{}", "a")
	run := recordAll(t, s, "reference", x)
	kept := add(t, s, goldenOf(x.ID, "h1:0000000000000001", "b1"), false)
	if _, err := s.Prune(t.Context(), Retention{Runs: []exchange.ID{run.ID}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Golden(kept.ID); err != nil {
		t.Errorf("prune took the golden: %v", err)
	}
}

func need(id, group, body string) exchange.Need {
	return exchange.Need{ID: id, Party: exchange.Reference, Group: group, Method: "POST", Path: "/completion", Body: []byte(body)}
}

func TestRepliesAreFoundByWhatWasAsked(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	of := Reference{Weights: "sha256:aa", Engine: exchange.Identity{Engine: "llamacpp", Version: "b1"}}
	keep := func(n exchange.Need, answer string) {
		t.Helper()
		x := streamed(string(n.Body), answer)
		x.Request.Headers = append(x.Request.Headers, exchange.Header{Name: "Authorization", Value: "Bearer secret-secret"})
		if err := s.AddReply(of, n, x, exchange.Summary{Version: exchange.SummaryVersion, ID: x.ID}); err != nil {
			t.Fatal(err)
		}
	}
	keep(need("a", "", `{"prompt":[1,2]}`), "one")
	keep(need("a", "", `{"prompt":[1,2]}`), "two") // the first one stays
	keep(need("g1", "g", `{"prompt":[1]}`), "three")
	keep(need("h1", "h", `{"prompt":[4]}`), "four")
	keep(need("h2", "h", `{"prompt":[4,5]}`), "five")

	variant := need("v", "", `{"prompt":[1,2]}`)
	variant.Variant = "-ub 8"
	candidate := need("c", "", `{"prompt":[1,2]}`)
	candidate.Party = exchange.Candidate
	needs := exchange.Needs{
		need("h1 again", "h", `{"prompt":[4]}`), need("h2 again", "h", `{"prompt":[4,5]}`),
		need("other name", "", `{ "prompt": [1, 2] }`), variant, candidate,
		need("g1 again", "g", `{"prompt":[1]}`), need("g2", "g", `{"prompt":[1,9]}`), // half a group is none
	}
	got, err := s.Replies(of, needs)
	if err != nil {
		t.Fatal(err)
	}
	var names, texts []string
	for _, r := range got {
		names, texts = append(names, r.Need), append(texts, string(r.Exchange.Response.Body.Bytes()))
		if v, _ := exchange.HeaderValue(r.Exchange.Request.Headers, "Authorization"); strings.Contains(v, "secret") {
			t.Errorf("a credential was kept: %q", v)
		}
	}
	if d := cmp.Diff([]string{"h1 again", "h2 again", "other name"}, names); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff([]string{"four", "five", "one"}, texts); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	of.Engine.Version = "b2"
	if got, err := s.Replies(of, needs); err != nil || len(got) != 0 {
		t.Errorf("another build has %d replies, %v", len(got), err)
	}
	for why, of := range map[string]Reference{"no weights": {Engine: of.Engine}, "no build": {Weights: "sha256:aa"}} {
		if err := s.AddReply(of, needs[0], streamed("{}", "a"), exchange.Summary{}); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := s.AddReply(of, candidate, streamed("{}", "a"), exchange.Summary{}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("of a candidate: %v", err)
	}
	if r := mustCheck(t, s); r.Replies != 4 {
		t.Errorf("check saw %d replies", r.Replies)
	}
}

// TestCheckFindsBrokenGoldens breaks the goldens in every way that a check must find.
func TestCheckFindsBrokenGoldens(t *testing.T) {
	for name, damage := range map[string]func(txn *badger.Txn, g *exchange.Golden) error{
		"bytes": func(txn *badger.Txn, g *exchange.Golden) error { return txn.Set(goldenKey(g), []byte{codecZstd, 1, 2}) },
		"id gone": func(txn *badger.Txn, g *exchange.Golden) error {
			return txn.Delete([]byte(goldenIDPrefix + string(g.ID)))
		},
		"gone": func(txn *badger.Txn, g *exchange.Golden) error { return txn.Delete(goldenKey(g)) },
		"of other": func(txn *badger.Txn, g *exchange.Golden) error {
			return setAt(txn, goldenKey(g), "h1:0000000000000009")
		},
		"reply": func(txn *badger.Txn, _ *exchange.Golden) error {
			return txn.Set([]byte(replyPrefix+"s/d"), []byte{codecRaw, 1})
		},
	} {
		s := openStore(t, t.TempDir(), Options{})
		g := add(t, s, goldenOf("a", "h1:0000000000000001", "b1"), false)
		if err := s.writeGoldens(func(txn *badger.Txn) error { return damage(txn, &g) }); err != nil {
			t.Fatal(err)
		}
		report, err := s.Check(t.Context())
		if err != nil || report.OK() {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if name == "bytes" {
			if _, err := s.Golden(g.ID); !errors.Is(err, exchange.ErrDamaged) {
				t.Errorf("%s: reading gives %v", name, err)
			}
			if _, err := s.GoldensOf(""); !errors.Is(err, exchange.ErrDamaged) {
				t.Errorf("%s: listing gives %v", name, err)
			}
		}
		if err := s.writeGoldens(func(txn *badger.Txn) error { // for the check at the end of the test
			return errors.Join(txn.Delete(goldenKey(&g)), txn.Delete([]byte(goldenIDPrefix+string(g.ID))), txn.Delete([]byte(replyPrefix+"s/d")))
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// setAt puts a golden of one request where that of another belongs.
func setAt(txn *badger.Txn, key []byte, request string) error {
	g := goldenOf("a", request, "b1")
	g.ID = exchange.NewID(day.Add(time.Second))
	item, err := txn.Get(key)
	if err != nil {
		return err
	}
	if err := setGolden(txn, &g); err != nil {
		return err
	}
	v, err := getValue(txn, goldenKey(&g))
	if err != nil {
		return err
	}
	if err := errors.Join(txn.Delete(goldenKey(&g)), txn.Delete([]byte(goldenIDPrefix+string(g.ID)))); err != nil {
		return err
	}
	return txn.Set(item.KeyCopy(nil), v)
}

func TestGoldensNeedSpace(t *testing.T) {
	full := false
	s := openStore(t, t.TempDir(), Options{FreeSpace: func(string) (int64, error) {
		if full {
			return 1, nil
		}
		return 1 << 50, nil
	}})
	full = true
	if _, err := s.AddGolden(goldenOf("a", "h1:0000000000000001", "b1"), false); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("a full disk: %v", err)
	}
}

func TestGoldensOfAClosedStore(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	add(t, s, goldenOf("a", "h1:0000000000000001", "b1"), false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GoldensOf(""); !errors.Is(err, errClosed) {
		t.Errorf("reading: %v", err)
	}
	if _, err := s.AddGolden(goldenOf("b", "h1:0000000000000002", "b1"), false); err == nil {
		t.Error("writing a closed store")
	}
}
