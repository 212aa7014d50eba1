package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"text/template"
	"time"

	"github.com/benchproxy/benchproxy/test/load/rig"
)

// peer is a proxy that other people made. It runs in the foreground, as whoever runs the bench, on a port and with
// files of its own.
type peer struct {
	name    string
	args    func(dir, config string) []string
	version []string // arguments that print it
}

// peerList are the peers; their configurations are configs/NAME.conf.
var peerList = []peer{
	{name: nginx, version: []string{"-v"}, args: func(dir, config string) []string {
		return []string{"-p", dir, "-e", "stderr", "-c", config}
	}},
	{name: haproxy, version: []string{"-v"}, args: func(_, config string) []string {
		return []string{"-db", "-f", config}
	}},
}

//go:embed configs/*.conf
var configs embed.FS

// settings are what a peer's configuration is made of.
type settings struct {
	Listen  string // host:port for clients
	Engine  string // host:port
	Dir     string // for its files
	Workers int    // processes or threads
	Root    bool   // it is started by root: without a word it would give its workers to another user
}

// configure writes the configuration of a peer into its directory and gives its path.
func configure(name string, s settings) (string, error) {
	t, err := template.ParseFS(configs, "configs/"+name+".conf")
	if err != nil {
		return "", fmt.Errorf("read configuration of %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, s); err != nil {
		return "", fmt.Errorf("make configuration of %s: %w", name, err)
	}
	path := filepath.Join(s.Dir, name+".conf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		return "", fmt.Errorf("write configuration of %s: %w", name, err)
	}
	return path, nil
}

// startPeer starts the program at path in front of the engine and waits until it takes connections.
func (t *target) startPeer(ctx context.Context, p peer, path, engine string) error {
	if path == "" {
		return fmt.Errorf("start %s: its path is not given (-%s PATH)", p.name, p.name)
	}
	dir, err := os.MkdirTemp("", p.name)
	if err != nil {
		return fmt.Errorf("make directory of %s: %w", p.name, err)
	}
	t.dir = dir
	if t.addr, err = freeAddr(); err != nil {
		return err
	}
	config, err := configure(p.name, settings{
		Listen: t.addr, Engine: engine, Dir: dir, Workers: runtime.NumCPU(), Root: os.Geteuid() == 0,
	})
	if err != nil {
		return err
	}
	if t.other, err = rig.StartTree(path, p.args(dir, config)...); err != nil {
		return err
	}
	t.pid = t.other.PID()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return rig.Poll(ctx, func() (bool, error) { return t.listens() })
}

// startTime bounds the start of a peer on a busy machine.
const startTime = 30 * time.Second

// listens is true when the peer takes connections; it is an error when it has ended.
func (t *target) listens() (bool, error) {
	if t.other.Ended() {
		return false, fmt.Errorf("start %s: it ended: %s", t.name, t.other.Err.Tail())
	}
	c, err := net.DialTimeout("tcp", t.addr, time.Second)
	if err != nil {
		return false, nil // not yet
	}
	return true, c.Close()
}

// freeAddr is an address of this machine on which nobody listened just now.
func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}

// versionNumber is in what nginx and haproxy say of themselves.
var versionNumber = regexp.MustCompile(`(?i)version:? *(\S+)`)

// versionOf asks the program at path for its version.
func versionOf(ctx context.Context, p peer, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, p.version...).CombinedOutput()
	m := versionNumber.FindSubmatch(out)
	if err != nil || m == nil {
		return "", fmt.Errorf("ask %s for its version: %w", p.name, errors.Join(err, fmt.Errorf("it said %q", out)))
	}
	return strings.TrimPrefix(string(m[1]), p.name+"/"), nil
}
