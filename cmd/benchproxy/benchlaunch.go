package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/engines/models"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// spec is what the server of a group is started with.
func (b *benching) spec(g *matrix.Group) (launch.Spec, error) {
	profile, err := b.profileOf(g)
	if err != nil {
		return launch.Spec{}, err
	}
	l := &g.Launch
	o := launch.Options{
		Registry: &l.Registry, Program: l.Program, File: l.File, Model: cmp.Or(l.Model.Weights, l.Model.Name), MMProj: l.Model.Projector, Drafter: l.Drafter,
		ServedName: l.Model.Name, Port: l.Port, Devices: l.Devices, Context: l.Window, Slots: l.Slots, MaxTokens: l.MaxTokens, TP: g.TP, SplitMode: l.SplitMode,
		CPUMoE: l.CPUMoE, CPUMoEThreads: g.CPUMoEThreads, Draft: l.Draft, DraftDepth: g.Depth, Device: g.Device, Spelling: l.Spelling, Class: l.Class,
	}
	if l.Model.Weights == "" {
		o.ServedName = "" // the name is what it is started with
	}
	if g.MTP && o.Drafter == "" {
		o.Drafter = l.Model.MTPDraft
	}
	if o.Program == "" && profile.ID == simID {
		o.Program = ownProgram()
	}
	spec, err := launch.Plan(profile, o)
	if err != nil {
		return spec, err
	}
	spec.Environ, spec.Group = b.Environ(), deviceGroup(g)
	spec.Warn = func(text string) { note(b.Stderr, "%s", text) }
	spec.Times.Ready = time.Duration(l.ReadyS) * time.Second
	if t := b.c.Duration("ready-timeout"); t > 0 {
		spec.Times.Ready = t
	}
	_, spec.LogFile = b.logPath(g)
	if dir, ok := b.dataDir(); ok {
		spec.StateDir = filepath.Join(dir, "engines")
	}
	return spec, nil
}

// server looks at what a group would be measured on now, for results that would be kept. It is nil where that cannot be had.
func (b *benching) server(g *matrix.Group) *matrix.Server {
	ctx := b.c.Context
	if g.Launch.Transport != matrix.TransportServer {
		up, err := b.reach(g)
		if err != nil {
			return nil
		}
		d := b.identify(ctx, up)
		if errors.Is(d.err, exchange.ErrUnreachable) {
			return nil
		}
		return &matrix.Server{Identity: &d.is.Identity}
	}
	spec, err := b.spec(g)
	if err != nil {
		return nil
	}
	now := &matrix.Server{ModelFiles: filesDigest(g)}
	id, err := launch.IdentityOf(ctx, spec)
	switch {
	case errors.Is(err, launch.ErrMissing):
		return nil
	case err != nil:
		now.Why = err.Error()
	default:
		now.Launch, now.Build, now.Why = id.Digest, id.Build, id.Why
	}
	return now
}

// identify asks a server that runs already what it is.
func (b *benching) identify(ctx context.Context, up upstream) discovery {
	look := newIdentifier(captureSettings{upstreams: []upstream{up}}, b.config.Catalog).targets[0]
	look.options.Turn, look.options.Traffic = nil, nil // nothing else runs yet
	d, err := b.config.Catalog.Identify(ctx, look.do, look.url, look.options)
	return discovery{by: look, is: d, err: err}
}

// filesDigest is a digest of sizes and times of the model files of a group: what tells that one was put in the place of
// another without reading them. It is "" when there are none, or one cannot be had.
func filesDigest(g *matrix.Group) string {
	f := g.Launch.Model
	sum, n := sha256.New(), 0
	for _, path := range []string{f.Weights, f.Projector, f.MTPDraft, f.Drafter, g.Launch.Drafter} {
		if path == "" {
			continue
		}
		parts, err := models.Shards(filepath.Base(path))
		if err != nil {
			return ""
		}
		for _, name := range parts {
			st, err := os.Stat(filepath.Join(filepath.Dir(path), name))
			if err != nil {
				return ""
			}
			n++
			fmt.Fprintf(sum, "%q %d %d\n", name, st.Size(), st.ModTime().UnixNano())
		}
	}
	if n == 0 {
		return ""
	}
	return "f1:" + hex.EncodeToString(sum.Sum(nil)[:8])
}
