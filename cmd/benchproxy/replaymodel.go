package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay"
)

// modelsLooked bounds the requests whose models are looked at before the first is sent: to read all bodies of a long run
// for it would take longer than a refusal.
const modelsLooked = 256

// settleModel chooses the model to ask for where a target lists several and the workload's is none of them: a person at a
// terminal is asked, elsewhere the error lists them. An engine of one model answers under any name, or refuses; it is
// asked as recorded. --model, also with the recorded name, leaves nothing to choose.
func (r *replaying) settleModel(ctx context.Context, w *replay.Workload) error {
	if r.s.plan.Changes.Model != "" || r.s.plan.Changes.EditsModel() {
		return nil
	}
	if err := r.discover(ctx); err != nil {
		return err
	}
	asked, err := modelsAsked(w)
	if err != nil {
		return err
	}
	for i, f := range r.found {
		lost := notServed(&f.is, asked)
		if f.err != nil || len(f.is.Models) < 2 || lost == "" {
			continue
		}
		open := f.is
		open.Model = nil // which one is loaded does not say which one is meant
		model, err := (&program{env: r.env}).pickModel(ctx, &open, r.s.plan.Changes.Model)
		if err != nil {
			return fmt.Errorf("%s does not serve %s, which the workload asks for: %w (--model NAME)", r.s.targets[i].name, printable(lost), err)
		}
		r.s.plan.Changes.Model = model
	}
	return r.servedByAll()
}

// servedByAll holds that the model that was chosen is one of every target that lists several.
func (r *replaying) servedByAll() error {
	model := r.s.plan.Changes.Model
	for i, f := range r.found {
		if model != "" && f.err == nil && len(f.is.Models) > 1 && !engines.Serves(&f.is, model) {
			return usagef("%s does not serve %s: these targets have no model in common that was chosen; replay to each in a run of its own",
				r.s.targets[i].name, printable(model))
		}
	}
	return nil
}

// notServed is the first of the models that an engine does not list, "" for none.
func notServed(d *exchange.Deployment, models []string) string {
	for _, m := range models {
		if !engines.Serves(d, m) {
			return m
		}
	}
	return ""
}

// modelsAsked are the models that the first requests of a workload name.
func modelsAsked(w *replay.Workload) (models []string, err error) {
	for i := range w.Items[:min(len(w.Items), modelsLooked)] {
		it := &w.Items[i]
		if wire.DialectOf(it.Target) == wire.DialectNone {
			continue
		}
		body, err := it.Payload()
		if err != nil {
			return nil, fmt.Errorf("read request %s: %w", it.ID, err)
		}
		if m := strings.TrimSpace(wire.ReadRequest(it.Target, it.Headers, body).Model); m != "" && !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	return models, nil
}
