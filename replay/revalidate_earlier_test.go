package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// written is the revalidation of a shelf as a file.
func written(t *testing.T, s *shelf, o RevalidateOptions) string {
	t.Helper()
	var b bytes.Buffer
	w := NewRevalidationWriter(&b)
	o.Each = w.Add
	r, err := Revalidate(context.Background(), s, &s.run, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.End(r); err != nil {
		t.Fatal(err)
	}
	return write(t, "judged.json", b.String())
}

func earlier(t *testing.T, path string) *EarlierJudgments {
	t.Helper()
	e, err := ReadEarlier(path)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestChangedVerdictsAreListed holds that what a gate says otherwise than an earlier version of it did is listed, and
// that a failure it would now let pass stays one.
func TestChangedVerdictsAreListed(t *testing.T) {
	s := newShelf(greeting(0), greeting(time.Second))
	path := written(t, s, RevalidateOptions{})
	r, _ := judgedRun(t, s, RevalidateOptions{Against: earlier(t, path)})
	if r.ChangesTotal != 0 || r.Remained != 0 || r.Statuses[exchange.VerdictOK] != 2 {
		t.Errorf("the same rules: %d changes, %v", r.ChangesTotal, r.Statuses)
	}

	// As an older rule would have judged: it failed the first, and a gate of that time passed what fails today.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(text), `"status":"ok"`, `"status":"fail"`, 1)
	today, _ := gates.Lookup("degenerate")
	old = strings.Replace(old, fmt.Sprintf(`"gate":"degenerate","version":%d,"status":"ok"`, today.Version), `"gate":"degenerate","version":0,"status":"fail","reason":"too short"`, 1)
	r, all := judgedRun(t, s, RevalidateOptions{Against: earlier(t, write(t, "old.json", old))})
	want := []VerdictChange{{ID: all[0].ID, Seq: 1, Gate: "degenerate", Was: "fail", Now: "ok", NowVersion: today.Version}}
	if diff := cmp.Diff(want, r.Changes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if r.Remained != 1 || all[0].Status != exchange.VerdictFail || !strings.Contains(all[0].Reason, "earlier judgment failed it") || !errors.Is(r.Verdict(), exchange.ErrGate) {
		t.Errorf("%d remained, %s (%s), %v", r.Remained, all[0].Status, all[0].Reason, r.Verdict())
	}
	if all[1].Status != exchange.VerdictOK {
		t.Errorf("the second is %s", all[1].Status)
	}
}

// TestEarlierJudgmentsOfOtherEvidenceAreRefused holds that verdicts about other bytes are no earlier verdicts.
func TestEarlierJudgmentsOfOtherEvidenceAreRefused(t *testing.T) {
	s := newShelf(greeting(0))
	path := written(t, s, RevalidateOptions{})
	other := *s
	x := *s.xs[s.rows[0].ID]
	x.Request.Body = exchange.NewBody([]byte(strings.Replace(morning, "hi", "ho", 1)))
	sealDigests(&x)
	other.xs = map[exchange.ID]*exchange.Exchange{x.ID: &x}
	_, err := Revalidate(context.Background(), &other, &other.run, RevalidateOptions{Against: earlier(t, path)})
	if !errors.Is(err, exchange.ErrMiss) || !strings.Contains(err.Error(), "other evidence") {
		t.Errorf("another request: %v", err)
	}
	more := newShelf(greeting(0), greeting(time.Second))
	more.run.ID = s.run.ID
	_, err = Revalidate(context.Background(), more, &more.run, RevalidateOptions{Against: earlier(t, path)})
	if !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("more exchanges: %v", err)
	}
}

func TestReadEarlierRefuses(t *testing.T) {
	for text, want := range map[string]error{
		`[]`: exchange.ErrUsage, ``: exchange.ErrUsage, `{}`: exchange.ErrUsage, `{"mode":"other"}`: exchange.ErrUsage,
		`{"mode":"revalidation","schema":99}`:            exchange.ErrDamaged,
		`{"cases":{},"mode":"revalidation","schema":1}`:  exchange.ErrUsage,
		`{"cases":[{"id":7}],"mode":"revalidation"}`:     nil,
		`{"cases":[{"id":"a"}`:                           nil,
		`{"cases":[],"mode":"revalidation","schema":1`:   nil,
		`{"cases":[],"mode":"revalidation","source":[]}`: nil,
	} {
		if _, err := ReadEarlier(write(t, "f.json", text)); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	if _, err := ReadEarlier(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
	var failing failingWriter
	w := NewRevalidationWriter(failing)
	if err := w.Add(&Judged{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	if err := w.End(&Revalidated{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk at the end: %v", err)
	}
}

type failingWriter struct{}

var errFull = errors.New("no space")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

// TestRevalidateFile holds that an exported run is judged as the run itself, and that its file is not written.
func TestRevalidateFile(t *testing.T) {
	failed := greeting(time.Second)
	failed.Response.Status = 500
	s := newShelf(greeting(0), failed)
	s.run.Counts.Stored = 2
	for _, format := range []Format{FormatJSONL} {
		text, _ := exported(t, s, ExportOptions{Format: format})
		path := write(t, "run.jsonl", text)
		r, err := RevalidateFile(context.Background(), OpenFile(path, FileOptions{}), RevalidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Statuses[exchange.VerdictOK] != 1 || r.Statuses[exchange.VerdictFail] != 1 || !r.Complete || r.Then != nil {
			t.Errorf("%s: %v, complete %v (%s)", format, r.Statuses, r.Complete, r.Why)
		}
		if r.Source.Run != s.run.ID || r.Source.File != "run.jsonl" || !strings.HasPrefix(r.Source.Digest, exchange.DigestPrefix) {
			t.Errorf("%s: %+v", format, r.Source)
		}
		after, err := os.ReadFile(path)
		if err != nil || string(after) != text {
			t.Errorf("%s: the file was changed: %v", format, err)
		}
	}
	part, _ := exported(t, s, ExportOptions{Format: FormatJSONL, Filter: Filter{IDs: []exchange.ID{s.rows[0].ID}}})
	r, err := RevalidateFile(context.Background(), OpenFile(write(t, "part.jsonl", part), FileOptions{}), RevalidateOptions{})
	if err != nil || r.Complete || !errors.Is(r.Verdict(), exchange.ErrIncomplete) {
		t.Errorf("a part of a run: %v, %v", err, r)
	}
	s.run.State = exchange.RunOpen
	open, _ := exported(t, s, ExportOptions{Format: FormatJSONL})
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"an open run":       {open, exchange.ErrIncomplete},
		"requests alone":    {`{"method":"POST","path":"/v1/chat/completions","body":{}}` + "\n", exchange.ErrMiss},
		"nothing we know":   {"hello", exchange.ErrUsage},
		"a file cut short":  {part[:len(part)-20], nil},
		"a changed answer":  {strings.Replace(part, "Good ", "Bad_ ", 1), nil},
		"a changed request": {strings.Replace(part, `"max_tokens":4`, `"max_tokens":5`, 1), nil},
	} {
		if _, err := RevalidateFile(context.Background(), OpenFile(write(t, "f.jsonl", c.text), FileOptions{}), RevalidateOptions{}); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := RevalidateFile(context.Background(), OpenFile(filepath.Join(t.TempDir(), "absent"), FileOptions{}), RevalidateOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
}

// TestRequestsOfAFileAreNotRun holds that an exchange which was never sent is neither judged nor passed.
func TestRequestsOfAFileAreNotRun(t *testing.T) {
	s := newShelf(greeting(0))
	text, _ := exported(t, s, ExportOptions{Format: FormatJSONL})
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[1] = `{"id":"planned","method":"POST","path":"/v1/chat/completions","body":{"messages":[]}}` + "\n"
	var all []*Judged
	r, err := RevalidateFile(context.Background(), OpenFile(write(t, "f.jsonl", strings.Join(lines, "")), FileOptions{}),
		RevalidateOptions{Each: func(j *Judged) error { all = append(all, j); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Status != exchange.VerdictNotRun || all[0].ID != "planned" || !errors.Is(r.Verdict(), exchange.ErrIncomplete) {
		t.Errorf("%+v, %v", all[0], r.Verdict())
	}
}
