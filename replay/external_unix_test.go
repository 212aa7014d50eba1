//go:build unix

package replay

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// script is an external gate of a few lines of shell.
func script(t *testing.T, lines string) *External {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &External{Name: "mine", Argv: []string{path}, Env: []string{"PATH=/usr/bin:/bin"}, Time: time.Minute}
}

// fed gives a command two exchanges.
func fed(w io.Writer) error {
	_, err := io.WriteString(w, `{"schema":"benchproxy.workload/1","items":2}`+"\n"+`{"id":"A","method":"POST"}`+"\n"+`{"id":"B","method":"POST"}`+"\n"+`{"end":{"items":2}}`+"\n")
	return err
}

const both = `cat >/dev/null; echo '{"case":"A","status":"ok","version":3}'; echo '{"case":"B","status":"fail","reason":"no  good","detail":{"n":1}}'`

func TestExternalGate(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := script(t, both)
	r, err := e.Judge(context.Background(), fed)
	if err != nil {
		t.Fatal(err)
	}
	if r.Told.Gate != "external:mine" || r.Told.Verdicts != 2 || len(r.Told.Files) != 1 || !strings.HasPrefix(r.Told.Files[0].Digest, "sha256:") {
		t.Errorf("%+v", r.Told)
	}
	a, toldA := r.verdict("A", false)
	b, _ := r.verdict("B", true)
	if !toldA || a.Status != exchange.VerdictOK || a.Version != 3 || b.Status != exchange.VerdictFail || b.Reason != "no good" || string(b.Detail) != `{"n":1}` {
		t.Errorf("%+v and %+v", a, b)
	}
	if v, told := r.verdict("C", true); !told || v.Status != exchange.VerdictNotRun {
		t.Errorf("of an exchange that it said nothing of: %+v", v)
	}
	if _, told := r.verdict("C", false); told {
		t.Error("it was told of an exchange that nobody asked about")
	}
	arg := &External{Name: "sh", Argv: []string{"sh", e.Argv[0], "--flag"}, Env: e.Env}
	r, err = arg.Judge(context.Background(), fed)
	if err != nil || len(r.Told.Files) != 2 || r.Told.Files[1].ID != "gate.sh" {
		t.Errorf("a script as an argument: %+v, %v", r, err)
	}
}

// TestExternalGateThatMisbehaves holds that nothing a command does wrong becomes a verdict.
func TestExternalGateThatMisbehaves(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, c := range map[string]struct {
		lines string
		more  func(*External)
		a, b  string // status and what the reason says
	}{
		"one missing":      {`cat >/dev/null; echo '{"case":"A","status":"ok"}'`, nil, "ok", "not_run: no verdict"},
		"one doubled":      {both + `; echo '{"case":"A","status":"ok"}'`, nil, "not_run: 2 verdicts", "fail: no good"},
		"one unknown":      {both + `; echo '{"case":"Z","status":"ok"}'`, nil, "ok", "fail: no good"},
		"no reason":        {`cat >/dev/null; echo '{"case":"A","status":"fail"}'`, nil, "fail: no reason", "not_run"},
		"reads nothing":    {strings.TrimPrefix(both, "cat >/dev/null; "), nil, "ok", "fail"},
		"no JSON":          {both + `; echo hello`, nil, "not_run: line 3", "not_run: is no verdict"},
		"unknown field":    {`echo '{"case":"A","status":"ok","score":1}'`, nil, "not_run: score", "not_run"},
		"unknown status":   {`echo '{"case":"A","status":"pass"}'`, nil, "not_run: status is none of", "not_run"},
		"unknown lenient":  {`echo '{"case":"A","status":"ok","lenient_status":"yes"}'`, nil, "not_run: status is none of", "not_run"},
		"no case":          {`echo '{"status":"ok"}'`, nil, "not_run: names no case", "not_run"},
		"two in a line":    {`echo '{"case":"A","status":"ok"}{"case":"B","status":"ok"}'`, nil, "not_run: stands behind", "not_run"},
		"ends with a code": {both + `; echo oops >&2; exit 3`, nil, "not_run: exit status 3: oops", "not_run"},
		"writes too much":  {`cat >/dev/null; while :; do echo '{"case":"A","status":"ok"}'; done`, func(e *External) { e.MaxOutput = 1000 }, "not_run: more than 1000 bytes", "not_run"},
		"writes no lines":  {`cat >/dev/null; head -c 2000000 /dev/zero`, nil, "not_run: a line of more", "not_run"},
		"takes too long":   {`cat >/dev/null; sleep 600`, func(e *External) { e.Time = 300 * time.Millisecond }, "not_run: did not end within 300ms", "not_run"},
	} {
		t.Run(name, func(t *testing.T) {
			e := script(t, c.lines)
			if c.more != nil {
				c.more(e)
			}
			r, err := e.Judge(context.Background(), fed)
			if err != nil {
				t.Fatal(err)
			}
			for id, want := range map[exchange.ID]string{"A": c.a, "B": c.b} {
				v, _ := r.verdict(id, true)
				status, says, _ := strings.Cut(want, ": ")
				if string(v.Status) != status || !strings.Contains(v.Reason, says) {
					t.Errorf("%s is %s (%s), want %s", id, v.Status, v.Reason, want)
				}
			}
		})
	}
}

// TestExternalGateLeavesNothingBehind holds that what the command started ends with it, also when its time is over.
func TestExternalGateLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, end := range map[string]string{"time is over": "sleep 600", "it ends": "true"} {
		note := filepath.Join(t.TempDir(), "pid")
		e := script(t, `sleep 600 >/dev/null 2>&1 & echo $! > `+note+`; cat >/dev/null; `+end)
		e.Time = 2 * time.Second
		if _, err := e.Judge(context.Background(), fed); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(note)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !gone(strings.TrimSpace(string(text))) {
			t.Errorf("%s: process %s is left", name, text)
		}
	}
}

// gone waits until a process is no more, or only its entry is left for its new parent to clear away.
func gone(pid string) bool {
	for start := clock.Now(); clock.Since(start) < time.Minute; {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func TestExternalGateErrors(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, e := range map[string]*External{
		"no name":     {Argv: []string{"true"}},
		"no command":  {Name: "x"},
		"not there":   {Name: "x", Argv: []string{"/nonexistent/gate"}},
		"a directory": {Name: "x", Argv: []string{t.TempDir()}},
	} {
		if _, err := e.Judge(context.Background(), fed); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("the store broke")
	if _, err := script(t, `cat`).Judge(context.Background(), func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error of the feed: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	e := script(t, `sleep 600`)
	if _, err := e.Judge(ctx, func(io.Writer) error { cancel(stop); return nil }); !errors.Is(err, stop) {
		t.Errorf("canceled: %v", err)
	}
}

// TestRevalidateByAnExternalGate holds how its verdicts join those of our gates.
func TestRevalidateByAnExternalGate(t *testing.T) {
	listing := recorded(3*time.Second, "", "application/json", `{"data":[]}`)
	listing.Request.Method, listing.Request.Target = "GET", "/v1/models"
	s := newShelf(greeting(0), greeting(time.Second), greeting(2*time.Second), listing)
	e := script(t, `grep -o '^{"id":"[0-9A-Z]*"' | cut -d'"' -f4 | { read a; read b; cat >/dev/null; echo "{\"case\":\"$a\",\"status\":\"ok\"}"; echo "{\"case\":\"$b\",\"status\":\"fail\",\"reason\":\"rude\"}"; }`)
	report, err := e.Judge(context.Background(), func(w io.Writer) error {
		_, err := Export(context.Background(), s, &s.run, ExportTo{Main: w}, ExportOptions{Format: FormatJSONL})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r, all := judgedRun(t, s, RevalidateOptions{Outside: []*OutsideReport{report}})
	if got := strings.Join(statuses(all), " "); got != "ok fail not_run " {
		t.Errorf("statuses %q: %+v", got, report)
	}
	if all[1].Reason != "external:mine: rude" || len(r.Outside) != 1 || r.Outside[0].Verdicts != 2 {
		t.Errorf("%s; %+v", all[1].Reason, r.Outside)
	}
}
