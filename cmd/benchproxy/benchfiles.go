package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchproxy/benchproxy/engines/models"
	"github.com/benchproxy/benchproxy/replay/matrix"
	"github.com/benchproxy/benchproxy/replay/scenario"
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
	bar := newPullBar(b.env, puller.Progress)
	drawing, stop := context.WithCancel(context.Background())
	var drawn sync.WaitGroup
	drawn.Go(func() { bar.Run(drawing) })
	_, err = puller.Run(ctx, files)
	stop()
	drawn.Wait()
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

// frames are pictures of the video that the config names, nil for the built-in ones. Without ffmpeg there are none, and the
// scenario is skipped.
func (b *benching) frames(ctx context.Context) ([][]byte, error) {
	video := b.config.Paths.Video
	if video == "" {
		return nil, nil
	}
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		note(b.Stderr, "%s cannot be taken apart: ffmpeg is not installed", video)
		return [][]byte{}, nil
	}
	dir, err := os.MkdirTemp("", "benchproxy-frames-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // pictures that were read
	n := strconv.Itoa(scenario.VideoFrames())
	cmd := exec.CommandContext(ctx, ffmpeg, "-v", "error", "-i", video, "-vf", "thumbnail=30,scale=512:-2", "-frames:v", n, filepath.Join(dir, "%03d.png"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("take %s apart: %w: %s", video, err, strings.TrimSpace(string(out)))
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	out := [][]byte{}
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}
