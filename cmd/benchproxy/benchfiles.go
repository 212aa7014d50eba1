package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines/models"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// download fetches the model files that the plan needs and that are not there. A file that cannot be had is told; the
// start of its engine fails then.
func (b *benching) download(ctx context.Context) error {
	mode := models.Mode(b.config.Defaults.Download)
	if mode == models.ModeNever {
		return nil
	}
	var files []models.File
	var errs []error
	for i := range b.config.Models {
		m := &b.config.Models[i]
		for _, src := range m.Sources {
			if !b.needs(m.ID, src.Path) || !src.Known() || mode == models.ModeAuto && isThere(src.Path) {
				continue
			}
			found, err := models.Resolve(sourceURL(src), models.Place{Out: src.Path})
			errs, files = append(errs, err), append(files, found...)
		}
	}
	if err := errors.Join(errs...); err != nil || len(files) == 0 {
		return err
	}
	puller, err := models.New(models.Options{Mode: mode, Token: b.Getenv("HF_TOKEN")})
	if err != nil {
		return err
	}
	newPullBar(b.env, puller.Progress).during(func() { _, err = puller.Run(ctx, files) })
	return err
}

// needs reports whether a cell that is to run needs a file of a model.
func (b *benching) needs(model, path string) bool {
	return slices.ContainsFunc(b.plan.Groups, func(g matrix.Group) bool {
		f := g.Launch.Model
		return g.Model == model && g.Runs() > 0 && slices.Contains([]string{f.Weights, f.Projector, f.MTPDraft, f.Drafter, g.Launch.Drafter}, path)
	})
}

// sourceURL is a source in the words of models pull.
func sourceURL(s matrix.FileSource) string {
	name := s.URL
	if name == "" {
		name = filepath.Base(s.Path)
	}
	switch {
	case strings.Contains(name, "://"):
		return name
	case s.Base != "":
		return strings.TrimRight(s.Base, "/") + "/" + name
	case s.Revision != "":
		return "hf://" + s.Repo + "@" + s.Revision + "/" + name
	}
	return "hf://" + s.Repo + "/" + name
}
