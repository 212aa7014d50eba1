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
			"by prefill. A baseline that is not the fastest build inflates every comparison, so name its path and tag. Without\n" +
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
	Rank       int      `json:"rank,omitempty"`
	DecodeTPS  *float64 `json:"decode_tps"`  // median of the stream window
	PrefillTPS *float64 `json:"prefill_tps"` // median of prompt over time to first token
	Samples    int      `json:"samples"`     // answers that counted for decode
	Observed   *string  `json:"observed_device"`
	Log        string   `json:"log,omitempty"`
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
	builds, err := launch.Builds(c.Context, profile, c.Args().Slice(), p.Environ())
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
		note(p.Stderr, "%d of %d: %s", i+1, len(builds), b.Path)
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
	proc, err := launch.Start(c.Context, *spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proc.Close()) }()
	if err := proc.WaitReady(c.Context); err != nil {
		return err
	}
	to.Observed, to.Log = proc.Status().Device, spec.LogFile
	up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: spec.Engine.ID, URL: proc.URL()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	b := buildBench{session: proxy.NewSession(proxy.SessionOptions{Harness: version()}), up: up, model: cmp.Or(filepath.Base(spec.Model), "model")}
	return b.measure(c.Context, int(c.Uint("repeats")), pickRequests(int(c.Uint("prompt")), int(c.Uint("answer"))), to)
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
		if len(samples) == 0 {
			continue // null says so
		}
		slices.Sort(samples)
		median := stat.Quantile(samples, 0.5)
		if r.metric == measure.DecodeTPS {
			to.DecodeTPS, to.Samples = &median, len(samples)
		} else {
			to.PrefillTPS = &median
		}
	}
	return nil
}

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

// rank sorts the builds, the best first, and numbers those that were measured.
func rank(list []picked) {
	slices.SortStableFunc(list, func(a, b picked) int { return -compareRates(a.DecodeTPS, b.DecodeTPS) })
	for i := 1; i < len(list); i++ { // among neighbors that tie, the faster prefill goes first
		for j := i; j > 0 && tied(list[j-1], list[j]) && compareRates(list[j].PrefillTPS, list[j-1].PrefillTPS) > 0; j-- {
			list[j-1], list[j] = list[j], list[j-1]
		}
	}
	n := 0
	for i := range list {
		if list[i].DecodeTPS != nil {
			n++
			list[i].Rank = n
		}
	}
}

// compareRates orders rates; one that is not there is the lowest.
func compareRates(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

func tied(a, b picked) bool {
	return a.DecodeTPS != nil && b.DecodeTPS != nil && max(*a.DecodeTPS, *b.DecodeTPS) <= (1+pickTie)*min(*a.DecodeTPS, *b.DecodeTPS)
}

func (p *program) printPicked(c *cli.Context, list []picked) error {
	var failed error
	if c.String("model") != "" && list[0].DecodeTPS == nil {
		failed = fmt.Errorf("no build could be measured")
	}
	if c.Bool("json") {
		return errors.Join(json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "engine": c.String("engine"), "builds": list}), failed)
	}
	t := table{cols: []column{{head: "RANK", right: true}, {head: "DECODE", right: true}, {head: "PREFILL", right: true}, {head: "DEVICE"}, {head: "TAG"}, {head: "VERSION"}, {head: "PATH"}}}
	for _, b := range list {
		device := b.Observed
		if device == nil {
			device = b.Device
		}
		place := "-"
		if b.Rank > 0 {
			place = fmt.Sprint(b.Rank)
		}
		t.add(place, pickedRate(b.DecodeTPS), pickedRate(b.PrefillTPS), cmp.Or(printable(knownText(device)), "-"), cmp.Or(printable(b.Tag), "-"), cmp.Or(printable(b.Version), "-"), printable(b.Path))
	}
	t.print(p.Stdout)
	for _, b := range list {
		if b.Error != "" {
			note(p.Stderr, "%s: %s", printable(b.Path), b.Error)
		}
	}
	return failed
}

func pickedRate(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *v)
}
