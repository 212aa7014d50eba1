package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// CaptureOptions say how a captured report is judged.
type CaptureOptions struct {
	Harness string    // version of benchproxy
	ToolSum string    // hex SHA-256 of the program that judges
	Now     time.Time // for the document
}

// captureMost bounds a captured report, in bytes.
const captureMost = 1 << 30

// IsCapturedReport reports whether a file begins as a captured report does: with an object of the keys of one. Ours never
// do.
func IsCapturedReport(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, captureMost))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false, nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false, nil
		}
		switch key {
		case "run_complete", "execution_plan", "harness_sha256":
			return true, nil
		case "schema", "log", "custom_id":
			return false, nil
		}
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return false, nil
		}
	}
	return false, nil
}

// RevalidateCaptured judges a captured report. The error wraps exchange.ErrIncomplete for one of an incomplete run and
// exchange.ErrMiss for one that is no evidence, and tells why.
func RevalidateCaptured(ctx context.Context, path string, o CaptureOptions) (*Captured, error) {
	fail := func(err error) error {
		return &exchange.Error{Op: "revalidate report", Object: filepath.Base(path), Side: exchange.SideClient, Cause: err}
	}
	raw, err := readBounded(path)
	if err != nil {
		return nil, fail(err)
	}
	var report capturedReport
	if err := json.Unmarshal(raw, &report); err != nil {
		return nil, fail(fmt.Errorf("%w: %w", exchange.ErrMiss, err))
	}
	if err := report.check(); err != nil {
		return nil, fail(err)
	}
	sum := sha256.Sum256(raw)
	c := &Captured{
		Mode: ModeCaptured, Created: float64(o.Now.UnixMilli()) / 1e3, Source: filepath.Base(path), SourceSum: hex.EncodeToString(sum[:]),
		InferenceSum: report.Harness, HarnessSum: map[string]string{}, ToolSum: o.ToolSum, Harness: o.Harness, Complete: true,
		Recorded: len(report.Cases), Summary: map[string]CapturedSummary{},
		Limits: []string{
			"No request was sent: the answers are those of the report, and so is every number.",
			"Only answers that the report holds were judged; other scenarios need their tool calls and reasoning.",
			"A case that failed when it was captured stays failed.",
			"A wave with one failing member is no sample of throughput.",
		},
	}
	if len(c.InferenceSum) == 0 {
		c.InferenceSum = json.RawMessage("null")
	}
	for i := range report.Cases {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := c.judge(&report.Cases[i]); err != nil {
			return nil, fail(err)
		}
	}
	c.judgeWaves(&report)
	if again, err := readBounded(path); err != nil || sha256.Sum256(again) != sum {
		return nil, fail(fmt.Errorf("%w: it was changed while it was judged", exchange.ErrDamaged))
	}
	return c, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, captureMost+1))
	if err == nil && len(b) > captureMost {
		err = fmt.Errorf("%w of %d bytes", errTooLarge, captureMost)
	}
	return b, err
}

// judge judges one case.
func (c *Captured) judge(in *capturedCase) error {
	key, _ := in.key() // check has read it
	out := CapturedCase{Tag: in.Tag, Scenario: in.Scenario, Concurrency: key.concurrency, Repeat: key.repeat, Original: in.Status,
		Status: exchange.VerdictOK, Tokens: json.RawMessage("null")}
	why, err := c.fault(in, &out)
	if err != nil {
		return err
	}
	switch {
	case why != "":
		out.Status, out.Detail = exchange.VerdictFail, why
	case in.Status != "ok":
		out.Status, out.Detail = exchange.VerdictFail, strings.TrimSpace("original failed case remains failed: "+in.Detail)
	}
	if out.Status == exchange.VerdictOK {
		c.Passed++
	} else {
		c.Failed++
	}
	c.Cases = append(c.Cases, out)
	return nil
}

// fault is what the gate of today finds wrong with a case, "" for nothing. It fills in what the document repeats of it.
func (c *Captured) fault(in *capturedCase, out *CapturedCase) (string, error) {
	if len(in.Turns) != 1 {
		return fmt.Sprintf("it has %d turns, want 1", len(in.Turns)), nil
	}
	t := &in.Turns[0]
	out.RequestSum, out.MetricsSum = hexDigest(t.Request), hexDigest(t.Metrics)
	var m capturedMetrics
	if err := json.Unmarshal(t.Metrics, &m); err != nil {
		return "its metrics cannot be read: " + err.Error(), nil
	}
	out.Finish = m.Finish
	if len(m.Tokens) > 0 {
		out.Tokens = m.Tokens
	}
	if !m.UsagePresent {
		return "the engine reported no usage", nil
	}
	var asked struct {
		MaxTokens plainNumber `json:"max_tokens"`
	}
	if err := json.Unmarshal(t.Request, &asked); err != nil {
		return "its request cannot be read: " + err.Error(), nil
	}
	if m.Finish != nil && *m.Finish != "length" && *m.Finish != "stop" { // the report's own word counts, whatever others mean the same
		return fmt.Sprintf("the finish reason is %q, neither length nor stop", *m.Finish), nil
	}
	budget, whole := wholeNumber(asked.MaxTokens)
	if !whole || budget <= 0 {
		return fmt.Sprintf("the budget of its request is %q, no whole number from 1", asked.MaxTokens), nil
	}
	x, err := capturedExchange(t, &m)
	if err != nil {
		return "", err
	}
	checks, _ := gates.ForScenario(in.Scenario) // check knows that there are some
	check := checks[len(checks)-1]
	check.Params = json.RawMessage(fmt.Sprintf(`{"budget":%d}`, budget))
	v, _, err := gates.Judge(gates.Prepare(&exchange.Case{ID: in.Tag, Scenario: in.Scenario, Exchanges: []*exchange.Exchange{x}}), check)
	if err != nil {
		return "", err
	}
	if g, _ := gates.Lookup(check.Gate); g != nil {
		c.HarnessSum[fmt.Sprintf("%s/%d", g.ID, g.Version)] = hexSum([]byte(g.Explain))
	}
	if v.Status == exchange.VerdictOK {
		return "", nil
	}
	return v.Reason, nil
}

// capturedExchange makes an exchange of what a report tells of one, so that the gate of live answers judges it.
func capturedExchange(t *capturedTurn, m *capturedMetrics) (*exchange.Exchange, error) {
	body, err := appendJSON(nil, map[string]any{
		"choices": []any{map[string]any{"index": 0, "finish_reason": m.Finish, "message": m.Message}},
		"usage":   map[string]json.RawMessage{"completion_tokens": orNull(m.Tokens)},
	})
	if err != nil {
		return nil, fmt.Errorf("write captured answer: %w", err)
	}
	x := &exchange.Exchange{
		Request:  exchange.Request{Method: "POST", Target: "/v1/chat/completions", Body: exchange.NewBody(bytes.Clone(t.Request))},
		Response: exchange.Response{Status: 200, Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}, Body: exchange.NewBody(body)},
		End:      exchange.EndEOF, State: exchange.StateStored,
	}
	x.Timeline.SendStart, x.Timeline.BodyEnd = exchange.MarkAt(0), exchange.MarkAt(1)
	return x, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// hexDigest is the digest of a JSON text by the interchange recipe, in hex; that of its bytes where it has none.
func hexDigest(raw json.RawMessage) string {
	if d, err := canon.Digest(raw); err == nil {
		return strings.TrimPrefix(d, exchange.DigestPrefix)
	}
	return hexSum(raw)
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// judgeWaves says which waves may be compared, and what these come to.
func (c *Captured) judgeWaves(r *capturedReport) {
	failed := map[capturedKey]bool{}
	members := map[capturedKey][]int{}
	for i := range c.Cases {
		key, _ := r.Cases[i].key()
		members[key] = append(members[key], i)
		failed[key] = failed[key] || c.Cases[i].Status != exchange.VerdictOK
	}
	type group struct {
		CapturedSummary
		aggregate, wall []float64
	}
	groups := map[string]*group{}
	for _, w := range r.Waves {
		key, _ := w.key()
		out := CapturedWave{Scenario: key.scenario, Concurrency: key.concurrency, Repeat: key.repeat, WallMS: w.WallMS, TPS: w.TPS,
			Original: w.AllPassed, AllPassed: !failed[key], Eligible: !failed[key] && w.AllPassed}
		if w.Generated != "" {
			out.Generated = &w.Generated
		}
		c.Waves = append(c.Waves, out)
		name := fmt.Sprintf("%s@c%d", key.scenario, key.concurrency)
		g := groups[name]
		if g == nil {
			g = &group{}
			g.DecodeSamples, g.TTFTSamples, g.PrefillSamples = []float64{}, []float64{}, []float64{}
			groups[name] = g
		}
		if !out.Eligible {
			continue
		}
		g.Waves++
		g.aggregate = sampled(g.aggregate, w.TPS)
		for _, i := range members[key] {
			var m capturedMetrics
			_ = json.Unmarshal(r.Cases[i].Turns[0].Metrics, &m) // fault has read it
			g.Passed++
			g.Total++
			g.DecodeSamples, g.TTFTSamples = sampled(g.DecodeSamples, m.DecodeTPS), sampled(g.TTFTSamples, m.TTFT)
			g.PrefillSamples, g.wall = sampled(g.PrefillSamples, m.PrefillTPS), sampled(g.wall, r.Cases[i].WallMS)
		}
	}
	for name, g := range groups {
		g.Aggregate, g.DecodeTPS, g.TTFT = median(g.aggregate), median(g.DecodeSamples), median(g.TTFTSamples)
		g.PrefillTPS, g.WallMS = median(g.PrefillSamples), median(g.wall)
		c.Summary[name] = g.CapturedSummary
	}
}

// sampled appends a value above 0: the tool writes 0 for what it does not know.
func sampled(list []float64, v *float64) []float64 {
	if v == nil || *v <= 0 {
		return list
	}
	return append(list, *v)
}

func median(samples []float64) *float64 { return stat.Summarize(samples).Median }
