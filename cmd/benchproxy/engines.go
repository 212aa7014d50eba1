package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/weights"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/proxy"
)

func (p *program) enginesCommand() *cli.Command {
	return &cli.Command{
		Name:  "engines",
		Usage: "know the inference engines, and find out which one answers",
		Subcommands: []*cli.Command{
			{
				Name:   "ls",
				Usage:  "list the engines that are known, and what proves them",
				Flags:  []cli.Flag{configFlag(), jsonFlag()},
				Action: p.enginesList,
			},
			{
				Name:      "identify",
				Usage:     "find out which engine answers at a URL, and what it has loaded",
				ArgsUsage: "URL",
				Description: "It sends up to about a dozen small GET requests, never one that generates, and stops at the first proof. Without\n" +
					"proof the engine is \"unknown\". URL may also be the name of a target of the config.\n\n" +
					"   benchproxy engines identify http://127.0.0.1:8080",
				Flags:  append(probeFlags(), configFlag()),
				Action: p.interruptible(p.enginesIdentify),
			},
			{
				Name:      "check",
				Usage:     "check that engines can be reached, and show what they serve",
				ArgsUsage: "[[NAME=]URL ...]",
				Description: "Without arguments it checks the targets of the config. It ends with 5 when one cannot be reached.\n" +
					"With --capabilities each served model gets five small requests, and its answers show what it does.\n\n" +
					"   benchproxy engines check llama=http://127.0.0.1:8080 vllm=http://127.0.0.1:8000",
				Flags: append(probeFlags(), configFlag(),
					&cli.BoolFlag{Name: "capabilities", Usage: "ask the model, too: tools, tool_choice, parallel calls, structured output"}),
				Action: p.interruptible(p.enginesCheck),
			},
			p.launchCommand(),
			p.pickCommand(),
			{
				Name:      "weights",
				Usage:     "say what a local GGUF model file holds, with its digest",
				ArgsUsage: "FILE",
				Description: "The digest is the sha256 of the file, as an engine or a model hub states it; of a split file it is that of the list\n" +
					"of its shards' digests.",
				Flags:  []cli.Flag{jsonFlag()},
				Action: p.interruptible(p.enginesWeights),
			},
		},
	}
}

func (p *program) enginesWeights(c *cli.Context) error {
	if err := exactArgs(c, "FILE"); err != nil {
		return err
	}
	f, err := weights.ReadGGUF(c.Args().First())
	if err != nil {
		return err
	}
	if f.Digest, err = weights.Digest(c.Context, c.Args().First()); err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(struct {
			Schema int `json:"schema"`
			exchange.Weights
		}{1, f})
	}
	fmt.Fprintf(p.Stdout, "%s\n", printable(f.Name))
	printRows(p.Stdout, []namedValue{{"model", f.Model}, {"architecture", f.Architecture}, {"quantization", knownText(f.Quantization)},
		{"parameters", knownNumber(f.Parameters)}, {"context", knownNumber(f.Context)}, {"bytes", strconv.FormatInt(f.Bytes, 10)},
		{"shards", strconv.Itoa(f.Shards)}, {"digest", f.Digest}})
	return nil
}

func knownText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func knownNumber(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func probeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "key-file", Usage: "`FILE` with the engine's key, sent to the URL's own origin only (or BENCHPROXY_UPSTREAM_KEY)"},
		&cli.StringFlag{Name: "model", Usage: "`NAME` that requests will ask for (default: what the engine serves)"},
		&cli.BoolFlag{Name: "pick", Usage: "where several models are listed and none is said to be loaded, ask which one is meant"},
		&cli.StringFlag{Name: "device", Usage: "`DEVICE` you asked the engine to run on (gpu, cuda, metal, cpu ...), to note a fallback to the CPU"},
		&cli.StringFlag{Name: "upstream-ca", Usage: "PEM `FILE` of certificates to trust for https"},
		jsonFlag(),
	}
}

func (p *program) enginesList(c *cli.Context) error {
	if err := exactArgs(c); err != nil {
		return err
	}
	catalog, err := p.catalog(c)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "engines": catalog.Profiles()})
	}
	t := table{cols: []column{{head: "ID"}, {head: "NAME"}, {head: "KIND"}, {head: "USAGE"}, {head: "PROVED BY"}}}
	for _, e := range catalog.Profiles() {
		usage := e.Requests.Usage
		if usage == "" {
			usage = "-"
		}
		t.add(e.ID, e.Name, e.Kind, usage, proofText(e.Recognize))
	}
	t.print(p.Stdout)
	return nil
}

// proofText names what proves an engine.
func proofText(r engines.Recognize) string {
	parts := append([]string{}, r.Hosts...)
	for _, ns := range r.Namespace {
		parts = append(parts, "metrics "+ns)
	}
	if r.Version != nil {
		parts = append(parts, r.Version.Path)
	}
	for _, d := range r.Declared {
		parts = append(parts, d.In+" "+d.Name)
	}
	if len(r.Headers) > 0 {
		parts = append(parts, "header "+r.Headers[0])
	}
	for _, s := range r.Shapes {
		parts = append(parts, "shape of "+s.Paths[0])
	}
	for _, n := range r.Native {
		parts = append(parts, n.Path)
	}
	switch {
	case len(parts) == 0 && len(r.Behind) > 0:
		return "what a front in front of it says; else nothing: name it with --engine-label"
	case len(parts) == 0:
		return "nothing; name it with --engine-label"
	}
	return strings.Join(parts, ", ")
}

// asked is one engine of a check.
type asked struct {
	exchange.Deployment
	Name      string `json:"name"`
	URL       string `json:"url"`
	Reachable bool   `json:"reachable"`
	Error     string `json:"error,omitempty"`
	// Capabilities are what the model's answers showed; null when it was not asked.
	Capabilities *engines.Capabilities `json:"capabilities,omitempty"`
	err          error
}

func (p *program) enginesIdentify(c *cli.Context) error {
	if err := exactArgs(c, "URL"); err != nil {
		return err
	}
	found, err := p.ask(c, c.Args().Slice())
	if err != nil {
		return err
	}
	a := found[0]
	if a.err != nil {
		return a.err
	}
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(struct {
			Schema int `json:"schema"`
			asked
		}{1, a})
	}
	catalog, err := p.catalog(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "%s\n", engineText(catalog, a.Identity))
	rows := []namedValue{{"id", a.Engine}, {"evidence", a.Evidence}}
	if a.Inner != nil {
		rows = append(rows, namedValue{"in front of", engineText(catalog, *a.Inner)})
	}
	rows = append(rows, deploymentFields(a.Deployment)...)
	printRows(p.Stdout, append(rows, namedValue{"fingerprint",
		fmt.Sprintf("%s, %d fields known, %d unknown", a.Fingerprint.Digest, len(a.Fingerprint.Known), len(a.Fingerprint.Unknown))}))
	return nil
}

type namedValue struct{ name, value string }

// deploymentFields are the known fields beside the identity, as text; an unknown one is "".
func deploymentFields(d exchange.Deployment) []namedValue {
	drafting := ""
	if d.Drafting != nil {
		drafting = map[bool]string{true: "yes", false: "no"}[*d.Drafting]
		if d.DraftMethod != nil {
			drafting += ", " + *d.DraftMethod
		}
	}
	models := ""
	if n := len(d.Models); n > 1 {
		models = fmt.Sprintf("%d: %s", n, strings.Join(d.Models[:min(n, 10)], ", "))
	}
	return []namedValue{{"model", knownText(d.Model)}, {"models", models}, {"file", knownText(d.ModelRoot)}, {"quantization", knownText(d.Quantization)},
		{"parameters", knownNumber(d.Parameters)}, {"window", knownNumber(d.Window)}, {"slots", knownNumber(d.Slots)}, {"gpus", knownNumber(d.GPUs)},
		{"device", deviceText(d)}, {"drafting", drafting}, {"weights", knownText(d.WeightsDigest)}}
}

func deviceText(d exchange.Deployment) string {
	if d.ObservedDevice == nil {
		return ""
	}
	if d.CPUFallback {
		return *d.ObservedDevice + ", though " + *d.RequestedDevice + " was asked for"
	}
	return *d.ObservedDevice
}

func (p *program) enginesCheck(c *cli.Context) error {
	found, err := p.ask(c, c.Args().Slice())
	if err != nil {
		return err
	}
	if c.Bool("capabilities") {
		if err := p.probeCapabilities(c, found); err != nil {
			return err
		}
	}
	var errs []error
	for _, a := range found {
		errs = append(errs, a.err)
	}
	if c.Bool("json") {
		err := json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "engines": found})
		return errors.Join(append(errs, err)...)
	}
	t := table{cols: []column{{head: "NAME"}, {head: "ENGINE"}, {head: "VERSION"}, {head: "MODEL"}, {head: "WINDOW", right: true},
		{head: "SLOTS", right: true}, {head: "QUANT"}, {head: "DEVICE"}, {head: "EVIDENCE"}}}
	for _, a := range found {
		t.add(checkCells(a)...)
	}
	t.print(p.Stdout)
	for _, a := range found {
		printCapabilities(p.Stdout, a)
	}
	return errors.Join(errs...)
}

func checkCells(a asked) []string {
	if !a.Reachable {
		return []string{a.Name, "unreachable", "-", "-", "-", "-", "-", "-", "-"}
	}
	fields := map[string]string{"version": a.Version, "evidence": a.Evidence}
	for _, f := range deploymentFields(a.Deployment) {
		fields[f.name] = f.value
	}
	if fields["model"] == "" && len(a.Models) > 1 {
		fields["model"] = fmt.Sprintf("one of %d", len(a.Models))
	}
	engine := a.Engine
	if a.Inner != nil {
		engine += " -> " + a.Inner.Engine
	}
	cells := []string{a.Name, engine}
	for _, name := range []string{"version", "model", "window", "slots", "quantization", "device", "evidence"} {
		v := printable(fields[name])
		if v == "" {
			v = "-"
		}
		cells = append(cells, v)
	}
	return cells
}

// ask identifies the engines that args name, or all targets of the config, at the same time.
func (p *program) ask(c *cli.Context, args []string) ([]asked, error) {
	ups, err := p.probeTargets(c, args)
	if err != nil {
		return nil, err
	}
	catalog, err := p.catalog(c)
	if err != nil {
		return nil, err
	}
	_, tls, err := tlsConfigs(c)
	if err != nil {
		return nil, err
	}
	q := inquiry{catalog: catalog, upstreams: ups, out: make([]asked, len(ups)), reach: proxy.UpstreamOptions{TLS: tls},
		options: engines.Options{Model: c.String("model"), Requested: c.String("device")}}
	q.Run(c.Context)
	for i, a := range q.out {
		if errors.Is(a.err, exchange.ErrUsage) || c.Context.Err() != nil {
			return nil, errors.Join(a.err, c.Context.Err())
		}
		if a.Reachable && c.Bool("pick") {
			if err := p.pickFor(c.Context, &q, i); err != nil {
				return nil, err
			}
		}
	}
	return q.out, nil
}

// pickFor settles which model of an engine is meant, and reads the engine again where the answer tells more than it did.
func (p *program) pickFor(ctx context.Context, q *inquiry, i int) error {
	a := q.out[i]
	model, err := p.pickModel(ctx, &a.Deployment, q.options.Model)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	if a.Model == nil {
		one := *q
		one.options.Model = model
		q.out[i] = one.one(ctx, q.upstreams[i])
	}
	return q.out[i].err
}

// inquiry identifies several engines at the same time.
type inquiry struct {
	catalog   *engines.Catalog
	upstreams []upstream
	reach     proxy.UpstreamOptions
	options   engines.Options // of all
	out       []asked
}

// Run fills in out.
func (q *inquiry) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range q.upstreams {
		wg.Go(func() { q.out[i] = q.one(ctx, q.upstreams[i]) })
	}
	wg.Wait()
}

func (q *inquiry) one(ctx context.Context, u upstream) asked {
	o := q.options
	o.Label = u.label
	if u.credentials != nil {
		o.Headers = u.credentials()
	}
	url, client := probeAddress(u.url, q.reach)
	d, err := q.catalog.Identify(ctx, engines.Client(client), url, o)
	a := asked{Deployment: d, Name: u.name, URL: redact.URL(u.url), Reachable: err == nil, err: err}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}
