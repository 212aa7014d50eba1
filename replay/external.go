package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// An external gate is a command that reads exchanges on its standard input, in the form of FormatJSONL, and writes a
// verdict for each on its standard output, one JSON object a line:
//
//	{"case":"<id of the exchange>","status":"ok","reason":"","version":1,"lenient_status":"ok","detail":{...}}
//
// Of these, case and status must be there. The order is free. A word of status is one of exchange.VerdictStatus.

// Bounds of an external gate.
const (
	DefaultExternalTime   = 10 * time.Minute
	DefaultExternalOutput = 64 << 20
	externalLine          = 1 << 20         // bytes of one verdict
	externalGrace         = 5 * time.Second // for its pipes to close once its process group was killed
	externalSaid          = 4 << 10         // bytes of its standard error that a reason may be made of
)

// External is a command that judges. Its arguments are given as they are; no shell reads them.
type External struct {
	Name      string        // of the gate, which is listed as external:<name>
	Argv      []string      // the command and its arguments
	Env       []string      // its whole environment, KEY=VALUE
	Time      time.Duration // until it is ended; 0 = DefaultExternalTime
	MaxOutput int64         // bytes of verdicts; 0 = DefaultExternalOutput
}

// externalPrefix stands before the names of external gates, so that none is mistaken for one of ours.
const externalPrefix = "external:"

// OutsideTold is an external gate as documents name it.
type OutsideTold struct {
	Gate     string                 `json:"gate"`
	Argv     []string               `json:"argv"`
	Files    []exchange.EvidenceSum `json:"files"`             // the command, and arguments that are files, by content
	Verdicts int                    `json:"verdicts"`          // that can be used
	Unknown  int                    `json:"unknown"`           // lines about exchanges that it was not given
	Why      string                 `json:"problem,omitempty"` // why none of its verdicts counts
}

// OutsideReport is what an external gate said of all exchanges.
type OutsideReport struct {
	Told     OutsideTold
	verdicts map[exchange.ID]GateVerdict
}

// verdict is what the gate says of an exchange. Of one that it said nothing of, it says so where it was asked; told is
// false where neither is.
func (r *OutsideReport) verdict(id exchange.ID, asked bool) (v GateVerdict, told bool) {
	v, told = r.verdicts[id]
	switch {
	case r.Told.Why != "":
		return GateVerdict{Gate: r.Told.Gate, Status: exchange.VerdictNotRun, Reason: r.Told.Why}, asked
	case told:
		return v, true
	}
	return GateVerdict{Gate: r.Told.Gate, Status: exchange.VerdictNotRun, Reason: "the command gave no verdict"}, asked
}

// Judge gives the exchanges that feed writes to the command and reads its verdicts. Whatever the command does wrong is
// in the report: none of its verdicts counts then. The error is one of feed, or of a command that cannot be started.
func (e *External) Judge(ctx context.Context, feed func(io.Writer) error) (*OutsideReport, error) {
	r := &OutsideReport{Told: OutsideTold{Gate: externalPrefix + e.Name, Argv: e.Argv, Files: []exchange.EvidenceSum{}}, verdicts: map[exchange.ID]GateVerdict{}}
	fail := func(err error) error {
		return &exchange.Error{Op: "run external gate", Object: e.Name, Side: exchange.SideClient, Cause: err}
	}
	if e.Name == "" || len(e.Argv) == 0 || e.Argv[0] == "" {
		return nil, fail(fmt.Errorf("%w: it has no name or no command", exchange.ErrUsage))
	}
	path, err := exec.LookPath(e.Argv[0])
	if err != nil {
		return nil, fail(fmt.Errorf("%w: %w", exchange.ErrUsage, err))
	}
	if r.Told.Files, err = digestFiles(path, e.Argv[1:]); err != nil {
		return nil, fail(err)
	}
	limit := e.Time
	if limit <= 0 {
		limit = DefaultExternalTime
	}
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	c := &externalRun{gate: e, path: path, report: r, given: map[exchange.ID]bool{}, feed: feed}
	if err := c.Run(within); err != nil {
		return nil, fail(err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r, nil
}

// digestFiles are the digests of a command and of those of its arguments that are files, such as a script.
func digestFiles(path string, args []string) ([]exchange.EvidenceSum, error) {
	var out []exchange.EvidenceSum
	for i, name := range append([]string{path}, args...) {
		if info, err := os.Stat(name); i > 0 && (err != nil || !info.Mode().IsRegular()) {
			continue
		}
		sum, err := OpenFile(name, FileOptions{}).digest()
		if err != nil {
			return nil, fmt.Errorf("digest command: %w", err)
		}
		out = append(out, exchange.EvidenceSum{Kind: "file", ID: filepath.Base(name), Digest: sum})
	}
	return out, nil
}

// externalRun is one run of a command.
type externalRun struct {
	gate   *External
	path   string
	report *OutsideReport
	feed   func(io.Writer) error

	mu    sync.Mutex
	given map[exchange.ID]bool // exchanges that were written to it
	told  map[exchange.ID]int  // lines about each
}

// Run starts the command, feeds it and reads what it says until it ends or ctx does. Its whole process group ends with
// it. What it did wrong is in the report.
func (c *externalRun) Run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.path, c.gate.Argv[1:]...)
	cmd.Args[0] = c.gate.Argv[0]
	cmd.Env = append([]string{}, c.gate.Env...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = externalGrace
	said := &tail{most: externalSaid}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", exchange.ErrUsage, err)
	}
	var wg sync.WaitGroup
	var feedErr error
	wg.Go(func() { feedErr = c.give(in) })
	problem := c.listen(out)
	if problem != nil {
		_ = killGroup(cmd) // it may have ended already
	}
	wg.Wait()
	waitErr := cmd.Wait()
	_ = killGroup(cmd) // what it left behind
	switch {
	case feedErr != nil:
		return feedErr
	case ctx.Err() != nil:
		problem = context.Cause(ctx)
	case problem == nil && waitErr != nil:
		problem = fmt.Errorf("it ended with %w%s", waitErr, said.words())
	}
	c.conclude(problem)
	return nil
}

// give writes the exchanges. A command that does not read to the end is no error of ours.
func (c *externalRun) give(in io.WriteCloser) error {
	w := &idWriter{run: c, w: bufio.NewWriterSize(in, 64<<10)}
	err := c.feed(w)
	if w.w.Flush() != nil {
		w.closed = true
	}
	_ = in.Close() // the command has what it reads
	if w.closed {
		return nil
	}
	return err
}

// idWriter passes lines on and notes whose they are.
type idWriter struct {
	run    *externalRun
	w      *bufio.Writer
	line   []byte
	closed bool // the command reads no more
}

// Write implements io.Writer.
func (w *idWriter) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	for {
		i := bytes.IndexByte(w.line, '\n')
		if i < 0 {
			break
		}
		var l struct {
			ID exchange.ID `json:"id"`
		}
		if json.Unmarshal(w.line[:i], &l) == nil && l.ID != "" {
			w.run.mu.Lock()
			w.run.given[l.ID] = true
			w.run.mu.Unlock()
		}
		w.line = w.line[i+1:]
	}
	n, err := w.w.Write(p)
	w.closed = w.closed || err != nil
	return n, err
}

// outsideLine is one verdict as a command writes it.
type outsideLine struct {
	Case    exchange.ID            `json:"case"`
	Status  exchange.VerdictStatus `json:"status"`
	Lenient exchange.VerdictStatus `json:"lenient_status"`
	Reason  string                 `json:"reason"`
	Version int                    `json:"version"`
	Detail  json.RawMessage        `json:"detail"`
}

// statusWords are the words that a verdict may say.
var statusWords = []exchange.VerdictStatus{
	exchange.VerdictOK, exchange.VerdictFail, exchange.VerdictSkipped, exchange.VerdictPartial, exchange.VerdictIncomparable,
	exchange.VerdictUnsupported, exchange.VerdictNotRun,
}

// listen reads verdicts to the end of the output. The error is what is wrong with it.
func (c *externalRun) listen(out io.Reader) error {
	most := c.gate.MaxOutput
	if most <= 0 {
		most = DefaultExternalOutput
	}
	bounded := &io.LimitedReader{R: out, N: most + 1}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(nil, externalLine)
	c.told = map[exchange.ID]int{}
	for n := 1; lines.Scan(); n++ {
		if bounded.N <= 0 {
			break
		}
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := c.line(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d of its output: %w", n, err)
		}
	}
	switch err := lines.Err(); {
	case bounded.N <= 0:
		return fmt.Errorf("it wrote more than %d bytes", most)
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("it wrote a line of more than %d bytes", externalLine)
	case err != nil && !errors.Is(err, os.ErrClosed):
		return fmt.Errorf("read its output: %w", err)
	}
	return nil
}

func (c *externalRun) line(text []byte) error {
	var l outsideLine
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return fmt.Errorf("%s is no verdict: %w", shown(string(text)), err)
	}
	_, behind := d.Token()
	switch {
	case behind != io.EOF:
		return fmt.Errorf("%s: something stands behind the object", shown(string(text)))
	case l.Case == "":
		return fmt.Errorf("%s names no case", shown(string(text)))
	case !slices.Contains(statusWords, l.Status) || l.Lenient != "" && !slices.Contains(statusWords, l.Lenient):
		return fmt.Errorf("%s: the status is none of %v", shown(string(text)), statusWords)
	}
	if l.Status != exchange.VerdictOK && l.Reason == "" {
		l.Reason = "the command gave no reason"
	}
	c.told[l.Case]++
	c.report.verdicts[l.Case] = GateVerdict{Gate: c.report.Told.Gate, Version: l.Version, Status: l.Status, Lenient: l.Lenient,
		Reason: strings.Join(strings.Fields(l.Reason), " "), Detail: l.Detail}
	return nil
}

// conclude drops the verdicts that cannot be used: all of them when there is a problem, those about exchanges that the
// command was not given, and those of exchanges that it judged more than once.
func (c *externalRun) conclude(problem error) {
	r := c.report
	if problem != nil {
		r.Told.Why = strings.Join(strings.Fields(problem.Error()), " ")
		r.verdicts = nil
		return
	}
	for id, n := range c.told {
		switch {
		case !c.given[id]:
			r.Told.Unknown += n
			delete(r.verdicts, id)
		case n > 1:
			r.verdicts[id] = GateVerdict{Gate: r.Told.Gate, Status: exchange.VerdictNotRun, Reason: fmt.Sprintf("the command gave %d verdicts", n)}
		default:
			r.Told.Verdicts++
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	most int
	b    []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > t.most {
		t.b = append(t.b[:0], t.b[len(t.b)-t.most:]...)
	}
	return len(p), nil
}

// words is what was written, for the end of a reason.
func (t *tail) words() string {
	if len(t.b) == 0 {
		return ""
	}
	return ": " + strings.ToValidUTF8(string(t.b), "·")
}
