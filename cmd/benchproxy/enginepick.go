package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
	"github.com/benchproxy/benchproxy/proxy"
)

func (p *program) pickCommand() *cli.Command {
	return &cli.Command{
		Name:      "pick",
		Usage:     "rank the installed builds of an engine by how fast they are",
		ArgsUsage: "[DIR|FILE ...]",
		Description: "It finds the builds of --engine in PATH and below the directories, and starts each with the model, one after the other,\n" +
			"for --repeats requests of a long prompt and of a long answer. The fastest decoder comes first; a tie within 3 % is broken\n" +
			"by prefill. One build in several places is one. A baseline that is not the fastest build inflates every comparison, so name its path and tag. Without\n" +
			"--model the builds are listed with version and devices, unranked.\n\n" +
			"   benchproxy engines pick --model model.gguf ~/llama.cpp /opt/builds",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "engine", Value: "llamacpp", Usage: "`ID` of the engine"},
			&cli.UintFlag{Name: "repeats", Value: 3, Usage: "`N` requests of each kind for a build; the median counts"},
			&cli.UintFlag{Name: "prompt", Value: 2000, Usage: "`WORDS` of the long prompt"},
			&cli.UintFlag{Name: "answer", Value: 128, Usage: "`TOKENS` of the long answer"},
			configFlag(), jsonFlag(),
		}, launchFlags()...),
		Action: p.interruptible(p.enginesPick),
	}
}

// picked is a build with what was measured of it.
type picked struct {
	launch.Build
	Rank     int      `json:"rank,omitempty"`
	Decode   *sampled `json:"decode"`  // tokens a second of the stream window; null when no answer counted
	Prefill  *sampled `json:"prefill"` // prompt tokens over the time to the first one
	Asked    string   `json:"requested_device,omitempty"`
	Observed *string  `json:"observed_device"`
	Fallback bool     `json:"cpu_fallback"`
	Log      string   `json:"log,omitempty"`
}

// sampled is a median with what it is the median of.
type sampled struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// sampledOf is nil for no samples.
func sampledOf(samples []float64) *sampled {
	if len(samples) == 0 {
		return nil
	}
	slices.Sort(samples)
	return &sampled{Median: stat.Quantile(samples, 0.5), Min: samples[0], Max: samples[len(samples)-1], N: len(samples)}
}

func (p *program) enginesPick(c *cli.Context) error {
	catalog, err := p.catalog(c)
	if err != nil {
		return err
	}
	profile, ok := catalog.Lookup(c.String("engine"))
	if !ok {
		return usagef("there is no engine %q; 'benchproxy engines ls' lists them", c.String("engine"))
	}
	if c.IsSet("binary") {
		return usagef("--binary names one build, and pick compares several: name it as a FILE")
	}
	search := launch.Search{Engine: profile, Roots: c.Args().Slice(), Environ: p.Environ(), Asking: func(path string) { note(p.Stderr, "asking %s", printable(path)) }}
	if dir, ok := p.dataDir(); ok {
		search.StateDir = filepath.Join(dir, "engines")
	}
	builds, err := launch.Builds(c.Context, search)
	if err != nil {
		return err
	}
	if len(builds) == 0 {
		return usagef("there is no %s in PATH or below what was named; name a directory that has one", profile.Launch.Program)
	}
	list := make([]picked, len(builds))
	for i, b := range builds {
		list[i].Build = b
		if c.String("model") == "" || b.Error != "" {
			continue
		}
		note(p.Stderr, "measuring %d of %d: %s", i+1, len(builds), printable(b.Path))
		s := captureSettings{upstreams: make([]upstream, 1), catalog: catalog}
		if err := p.launchSettings(c, &s); err != nil {
			return err
		}
		s.launch.Program = b.Path
		if err := p.tryBuild(c, s.launch, &list[i]); err != nil {
			if c.Context.Err() != nil {
				return err
			}
			list[i].Error = err.Error()
		}
	}
	rank(list)
	return p.printPicked(c, list)
}

// tryBuild starts a build, measures it and ends it.
func (p *program) tryBuild(c *cli.Context, spec *launch.Spec, to *picked) (err error) {
	to.Log, to.Asked = spec.LogFile, spec.Asked
	proc, err := launch.Start(c.Context, *spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proc.Close()) }()
	if err := proc.WaitReady(c.Context); err != nil {
		return err
	}
	up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: spec.Engine.ID, URL: proc.URL()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	b := buildBench{session: proxy.NewSession(proxy.SessionOptions{Harness: version()}), up: up, model: cmp.Or(filepath.Base(spec.Model), "model")}
	err = b.measure(c.Context, int(c.Uint("repeats")), pickRequests(int(c.Uint("prompt")), int(c.Uint("answer"))), to)
	to.Observed = proc.Status().Device // after the requests: some show it only when they compute
	to.Fallback = engines.CPUFallback(&spec.Asked, to.Observed)
	return err
}

// pickRequest is one of the two requests a build is measured with.
type pickRequest struct {
	metric string
	words  int
	tokens int
	counts func(a *measure.Analysis) bool
}

// pickRequests are a long prompt with a short answer, and a short prompt with a long answer.
func pickRequests(prompt, answer int) []pickRequest {
	return []pickRequest{
		{metric: measure.PrefillTPS, words: prompt, tokens: 4, counts: func(*measure.Analysis) bool { return true }},
		{metric: measure.DecodeTPS, words: 24, tokens: answer, counts: func(a *measure.Analysis) bool {
			n := a.Figures[measure.CompletionTokens]
			return n.Present() && measure.LoomCounts(int64(n.Value), int64(answer))
		}},
	}
}

// buildBench sends the requests to one build.
type buildBench struct {
	session *proxy.Session
	up      *proxy.Upstream
	model   string
	sent    int
}

// measure sends each request once to warm up and then for its samples. No two prompts begin alike, so that no cache has any.
func (b *buildBench) measure(ctx context.Context, repeats int, requests []pickRequest, to *picked) error {
	for _, r := range requests {
		var samples []float64
		for i := range max(repeats, 1) + 1 {
			x := b.session.Do(ctx, b.up, b.call(r), nil)
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			a := measure.Analyze(x)
			if a.Outcome != exchange.OutcomeComplete {
				return fmt.Errorf("a request for %s ended as %s", r.metric, a.Outcome)
			}
			if f := a.Figures[r.metric]; i > 0 && f.Present() && r.counts(a) {
				samples = append(samples, f.Value)
			}
		}
		if r.metric == measure.DecodeTPS {
			to.Decode = sampledOf(samples)
		} else {
			to.Prefill = sampledOf(samples)
		}
	}
	if to.Decode == nil {
		return errNothingCounted
	}
	return nil
}

// errNothingCounted says that a build answers, and gives no rate.
var errNothingCounted = errors.New("no answer gave a rate of decoding: they came in one piece, without usage, or were shorter than half of --answer")

func (b *buildBench) call(r pickRequest) proxy.Call {
	b.sent++
	words := []string{fmt.Sprintf("Request %d.", b.sent)}
	for i := range r.words {
		words = append(words, fmt.Sprintf("item%d", (i*7919+b.sent*104729)%10007))
	}
	words = append(words, "Write a long story about a lighthouse and its keeper.")
	body, err := json.Marshal(map[string]any{
		"model": b.model, "stream": true, "temperature": 0, "max_tokens": r.tokens, "stream_options": map[string]any{"include_usage": true},
		"messages": []map[string]string{{"role": "user", "content": strings.Join(words, " ")}},
	})
	if err != nil { // strings and numbers are always JSON
		panic(err)
	}
	return proxy.Call{Method: http.MethodPost, Target: "/v1/chat/completions", Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}, Body: body}
}

// pickTie is how near two decode rates are that prefill decides between.
const pickTie = 0.03

// rank sorts the builds, the best first, and numbers those that were measured. One that computes on the CPU though a GPU
// was asked for is not ranked: it is another thing that was measured.
func rank(list []picked) {
	slices.SortStableFunc(list, func(a, b picked) int { return -compareRates(a.ranked(), b.ranked()) })
	for i := 1; i < len(list); i++ { // among neighbors that tie, the faster prefill goes first
		for j := i; j > 0 && tied(list[j-1], list[j]) && compareRates(list[j].Prefill, list[j-1].Prefill) > 0; j-- {
			list[j-1], list[j] = list[j], list[j-1]
		}
	}
	for i := range list {
		if list[i].ranked() != nil {
			list[i].Rank = i + 1
		}
	}
}

// ranked is the rate that a build is ranked by, nil for none.
func (b *picked) ranked() *sampled {
	if b.Fallback {
		return nil
	}
	return b.Decode
}

// compareRates orders rates; one that is not there is the lowest.
func compareRates(a, b *sampled) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(a.Median, b.Median)
}

func tied(a, b picked) bool {
	x, y := a.ranked(), b.ranked()
	return x != nil && y != nil && max(x.Median, y.Median) <= (1+pickTie)*min(x.Median, y.Median)
}
