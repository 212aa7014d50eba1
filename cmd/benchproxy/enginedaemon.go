package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
)

// daemonSettings say which engine is used that runs as a daemon, and is found by its own file.
type daemonSettings struct {
	profile engines.Profile
	model   string // to load, and to unload at the end; "" for none
	times   launch.Times
}

// daemonFlags are those flags of a launch that mean something for an engine that runs already.
var daemonFlags = map[string]bool{"model": true, "ready-timeout": true, "size": true, "reap": true}

// daemonSettings reads how a daemon is used. One that is given a command is started by it, as any engine.
func (p *program) daemonSettings(c *cli.Context, profile engines.Profile) (*daemonSettings, error) {
	if profile.Daemon == nil || c.String("engine-command") != "" {
		return nil, nil
	}
	for _, f := range launchFlags() {
		if name := f.Names()[0]; c.IsSet(name) && !daemonFlags[name] {
			return nil, usagef("--%s says how an engine is started, and %s runs as a daemon that is only found", name, profile.Name)
		}
	}
	if c.Command.Name == launchName && len(p.rest) > 0 {
		return nil, usagef("%s runs as a daemon that is only found: it takes no arguments", profile.Name)
	}
	d := &daemonSettings{profile: profile, model: c.String("model"), times: launch.Times{Ready: connectTime, Load: launch.ReadyTime(c.String("size"))}}
	if c.IsSet("ready-timeout") {
		d.times.Ready = c.Duration("ready-timeout")
	}
	return d, nil
}

// findDaemon finds the daemon of an engine by the file in the home directory of the user.
func (p *program) findDaemon(profile engines.Profile) (*launch.Daemon, error) {
	home := p.Getenv("HOME")
	if runtime.GOOS == "windows" {
		home = p.Getenv("USERPROFILE")
	}
	if home == "" {
		return nil, usagef("there is no home directory in which the daemon of %s could say where it listens; name its URL", profile.Name)
	}
	d, err := launch.FindDaemon(home, profile)
	if err == nil {
		d.Environ = p.Environ()
	}
	return d, err
}

// startDaemon finds a daemon, waits until it answers and has it load the model.
func (p *program) startDaemon(ctx context.Context, s *captureSettings) (*launched, error) {
	d, err := p.findDaemon(s.daemon.profile)
	if err != nil {
		return nil, err
	}
	o := launch.ConnectOptions{Engine: s.daemon.profile, Daemon: d, Times: s.daemon.times}
	if credentials := s.upstreams[0].credentials; credentials != nil {
		o.Headers = credentials()
	}
	server := launch.Connect(o)
	if err := server.WaitReady(ctx); err != nil {
		return nil, err
	}
	note(p.Stderr, "%s runs at %s, as %s says", s.daemon.profile.ID, server.URL(), d.File)
	if err := server.Load(ctx, s.daemon.model); err != nil {
		return nil, errors.Join(err, server.Unload(context.Background(), s.daemon.model))
	}
	return &launched{server: server, model: s.daemon.model, stop: make(chan struct{})}, nil
}

// holdsOnRequest reports whether an engine that somebody else runs holds a model because we asked for it: it was told to
// load it, or loads what requests name. One that was started with its model is left as it is.
func holdsOnRequest(p engines.Profile) bool {
	return p.Unload != nil && (p.Load != nil || p.Launch != nil && p.Launch.Serves == engines.ServesRequested)
}

// releaseTime is how long an engine may take to free the memory of a model.
const releaseTime = time.Minute

// freeModel has an engine that somebody else runs free the memory of a model that it held for us, so that the next one has
// it. What does not succeed is told, and stops nothing.
func (p *program) freeModel(server launch.Server, model string) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	if err := server.Unload(ctx, model); err != nil {
		note(p.Stderr, "%v", err)
	}
}
