package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines/models"
	"github.com/benchproxy/benchproxy/engines/weights"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func (p *program) modelsCommand() *cli.Command {
	return &cli.Command{
		Name:  "models",
		Usage: "make model files exist on this machine",
		Subcommands: []*cli.Command{{
			Name: "pull", Usage: "download models, or go on with it", ArgsUsage: "MODEL...",
			Description: "A MODEL is hf://OWNER/REPO/FILE (REPO@REVISION for another than main), a URL, ollama:NAME or prism:NAME, which those\n" +
				"daemons pull themselves. One part of a split GGUF stands for all. A download that was cut goes on where it stopped when\n" +
				"the server proves that the file is still the same; size and sha256 are checked where the hub tells them. The token of\n" +
				"HF_TOKEN goes to the hub alone, never to a mirror or to where the hub leads.\n\n" +
				"   benchproxy models pull hf://ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "dir", Usage: "`DIR` of the model files (default: BENCHPROXY_MODELS, else models in the user data directory)"},
				&cli.StringFlag{Name: "out", Usage: "`FILE` to put the one model in, in the place of DIR/OWNER/REPO/FILE"},
				&cli.StringFlag{Name: "download", Value: string(models.ModeAuto), Usage: "`MODE`: auto fetches what is missing, never does not, force fetches everything anew"},
				&cli.StringFlag{Name: "hub", Usage: "base `URL` of the hub (default: HF_ENDPOINT, else " + models.DefaultHub + ")"},
				&cli.StringFlag{Name: "mirror", Usage: "base `URL` that hf:// names lead to in the place of the hub, without a token"},
				&cli.StringFlag{Name: "token-file", Usage: "`FILE` with the token of the hub (or HF_TOKEN)"},
				&cli.IntFlag{Name: "parallel", Value: 3, Usage: "`N` files at once"},
				&cli.IntFlag{Name: "tries", Value: 5, Usage: "give a file up after `N` attempts that bring nothing"},
				&cli.DurationFlag{Name: "stall", Value: models.DefaultStall, Usage: "try again when a server sent nothing for `TIME`"},
				&cli.StringFlag{Name: "ollama", Usage: "base `URL` of Ollama (default: " + models.DefaultOllama + ")"},
				&cli.BoolFlag{Name: "digest", Usage: "digest also files that were there, which takes as long as reading them"},
				jsonFlag(),
			},
			Action: p.interruptible(p.modelsPull),
		}},
	}
}

// modelsDir is where model files go that --out does not place: the flag, BENCHPROXY_MODELS, or models beside the recordings.
func (p *program) modelsDir(c *cli.Context) (string, error) {
	if dir := cmp.Or(c.String("dir"), p.Getenv("BENCHPROXY_MODELS")); dir != "" || c.String("out") != "" {
		return dir, nil
	}
	data, ok := p.dataDir()
	if !ok {
		return "", usagef("there is no home directory to keep models in; name one with --dir DIR or BENCHPROXY_MODELS")
	}
	return filepath.Join(data, "models"), nil
}

// modelsPulled is what models pull prints.
type modelsPulled struct {
	Schema  int                `json:"schema"`
	Files   []models.Result    `json:"files"`
	Weights []exchange.Weights `json:"weights"` // of the GGUF files, a split one once
	Daemons []daemonPulled     `json:"daemons"`
}

type daemonPulled struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func (p *program) modelsPull(c *cli.Context) error {
	job, err := p.modelsJob(c)
	if err != nil {
		return err
	}
	out, err := job.Run(c.Context)
	if c.Context.Err() != nil {
		return context.Cause(c.Context)
	}
	if c.Bool("json") {
		err = errors.Join(err, json.NewEncoder(p.Stdout).Encode(out))
	} else {
		p.printPulled(out)
	}
	return err
}

// modelsJob is one command's pulls.
type modelsJob struct {
	p       *program
	digest  bool
	puller  *models.Puller
	files   []models.File
	daemons []*models.DaemonPull
	names   []daemonPulled
}

// modelsJob reads the command line. Nothing is asked before all of it is known to be right.
func (p *program) modelsJob(c *cli.Context) (*modelsJob, error) {
	if c.Args().Len() == 0 {
		return nil, usagef("models pull takes MODEL..., for instance hf://OWNER/REPO/FILE")
	}
	if c.String("out") != "" && c.Args().Len() > 1 {
		return nil, usagef("--out names the place of one model, and %d are to be pulled", c.Args().Len())
	}
	token, err := p.secret(c, "token-file", "HF_TOKEN")
	if err != nil {
		return nil, err
	}
	hub := cmp.Or(c.String("hub"), p.Getenv("HF_ENDPOINT"))
	job := &modelsJob{p: p, digest: c.Bool("digest")}
	job.puller, err = models.New(models.Options{Mode: models.Mode(c.String("download")), Hub: hub, Token: token,
		Parallel: c.Int("parallel"), Tries: c.Int("tries"), Stall: c.Duration("stall")})
	if err != nil {
		return nil, err
	}
	place := models.Place{Hub: hub, Mirror: c.String("mirror"), Out: c.String("out")}
	for _, ref := range c.Args().Slice() {
		d, kept, err := models.DaemonOf(ref)
		if err != nil {
			return nil, err
		}
		if kept {
			job.names = append(job.names, daemonPulled{d.Kind, d.Name})
			job.daemons = append(job.daemons, models.NewDaemonPull(d, models.DaemonOptions{Ollama: c.String("ollama"), Tries: c.Int("tries")}))
			continue
		}
		if place.Dir, err = p.modelsDir(c); err != nil {
			return nil, err
		}
		files, err := models.Resolve(ref, place)
		if err != nil {
			return nil, err
		}
		job.files = append(job.files, files...)
	}
	return job, nil
}

// Run pulls everything, files at once and then a daemon after the other, and shows how far it is. What failed does not
// keep the rest from being pulled.
func (j *modelsJob) Run(ctx context.Context) (modelsPulled, error) {
	out := modelsPulled{Schema: 1, Files: []models.Result{}, Weights: []exchange.Weights{}, Daemons: []daemonPulled{}}
	var errs []error
	var results []models.Result
	newPullBar(j.p.env, j.look).during(func() {
		var err error
		results, err = j.puller.Run(ctx, j.files)
		errs = append(errs, err)
		for i, d := range j.daemons {
			err := d.Run(ctx)
			if errs = append(errs, err); err == nil {
				out.Daemons = append(out.Daemons, j.names[i])
			}
		}
	})
	for _, r := range results {
		if r.Kept || r.SHA256 != "" { // the others failed, and the error says how
			out.Files = append(out.Files, r)
		}
	}
	weights, err := j.weigh(ctx, out.Files)
	out.Weights = append(out.Weights, weights...)
	return out, errors.Join(append(errs, err)...)
}

func (j *modelsJob) look() []models.Progress {
	all := j.puller.Progress()
	for _, d := range j.daemons {
		all = append(all, d.Progress())
	}
	return all
}

// weigh reads what the GGUF files state.
func (j *modelsJob) weigh(ctx context.Context, files []models.Result) ([]exchange.Weights, error) {
	var out []exchange.Weights
	var errs []error
	for _, f := range files {
		name := filepath.Base(f.Path)
		shards, err := models.Shards(name)
		if err != nil || name != shards[0] || !strings.EqualFold(filepath.Ext(name), ".gguf") {
			continue // another part stands for all
		}
		w, err := weights.ReadGGUF(f.Path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(shards) == 1 {
			w.Digest = f.SHA256
		}
		if w.Digest == "" && (j.digest || !f.Kept) {
			if w.Digest, err = weights.Digest(ctx, f.Path); err != nil {
				errs = append(errs, err)
			}
		}
		out = append(out, w)
	}
	return out, errors.Join(errs...)
}

func (p *program) printPulled(out modelsPulled) {
	t := table{cols: []column{{head: "file"}, {head: "size", right: true}, {head: "checked"}, {head: "sha256"}}}
	for _, f := range out.Files {
		checked := f.Checked
		if f.Kept {
			checked = "was there"
		}
		t.add(printable(f.Path), bytesText(f.Bytes), checked, strings.TrimPrefix(f.SHA256, exchange.DigestPrefix))
	}
	if len(t.rows) > 0 {
		t.print(p.Stdout)
	}
	for _, w := range out.Weights {
		fmt.Fprintf(p.Stdout, "\n%s\n", printable(w.Name))
		printRows(p.Stdout, weightRows(w))
	}
	for _, d := range out.Daemons {
		fmt.Fprintf(p.Stdout, "%s:%s was pulled\n", d.Kind, printable(d.Name))
	}
}

// weightRows are the lines about a model file, its name left out.
func weightRows(w exchange.Weights) []namedValue {
	return []namedValue{{"model", w.Model}, {"architecture", w.Architecture}, {"quantization", knownText(w.Quantization)},
		{"parameters", knownNumber(w.Parameters)}, {"context", knownNumber(w.Context)}, {"digest", w.Digest}}
}
