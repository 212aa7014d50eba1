package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/web"
	"github.com/benchproxy/benchproxy/recorder"
)

func (p *program) uiCommand() *cli.Command {
	return &cli.Command{
		Name:  "ui",
		Usage: "look at the recordings in a browser",
		Description: "Serves the runs and exchanges of a store as pages, and the read API beside them, until Ctrl-C. While a proxy\n" +
			"records into the store, its own admin listener shows the same pages and what runs now; ui then prints that address\n" +
			"and ends. Nothing is written.\n\n" +
			"   benchproxy ui\n" +
			"   benchproxy ui --store DIR --trace-url 'http://localhost:16686/trace/{trace}'",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.StringFlag{Name: "listen", Value: defaultAdmin, Usage: "`ADDR` of the pages"},
			&cli.StringFlag{Name: "admin-key-file", Usage: "`FILE` with a key that readers must send, a browser as the password (or BENCHPROXY_ADMIN_KEY)"},
			&cli.BoolFlag{Name: "insecure", Usage: "allow listening beyond this machine without a key"},
			traceURLFlag(),
			jsonFlag(),
		},
		Action: p.ui,
	}
}

// traceURLFlag says where the trace of an exchange can be looked at.
func traceURLFlag() cli.Flag {
	return &cli.StringFlag{Name: "trace-url", Usage: "`URL` at which a trace can be looked at, with {trace} for its id"}
}

// traceURL reads it.
func traceURL(c *cli.Context) (string, error) {
	u := c.String("trace-url")
	if u == "" {
		return "", nil
	}
	if !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") || !strings.Contains(u, "{trace}") {
		return "", usagef("--trace-url %q is not an http URL with {trace} in it", u)
	}
	return u, nil
}

func (p *program) ui(c *cli.Context) error {
	if err := exactArgs(c); err != nil {
		return err
	}
	dir, err := p.storeDir(c)
	if err != nil {
		return err
	}
	key, err := p.adminKey(c)
	if err != nil {
		return err
	}
	trace, err := traceURL(c)
	if err != nil {
		return err
	}
	addr := c.String("listen")
	if !loopback(addr) && key == "" && !c.Bool("insecure") {
		return usagef("%s would show recordings to other machines; keep it on loopback, give it a key with --admin-key-file, or say --insecure", addr)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nothingRecorded(dir)
	}
	ln, err := listen(addr, c.IsSet("listen"))
	if err != nil {
		return err
	}
	store, err := recorder.Open(dir, recorder.Options{Harness: version(), Admin: ln.Addr().String(), Log: p.log()})
	if err != nil {
		return p.shownElsewhere(c, dir, errors.Join(err, ln.Close()))
	}
	if url := "http://" + ln.Addr().String() + "/"; c.Bool("json") {
		err = p.tellPage(c, url)
	} else {
		note(p.Stderr, "%s shows %s; Ctrl-C ends it", url, dir)
	}
	if err != nil {
		return errors.Join(err, ln.Close(), store.Close())
	}
	return errors.Join(p.servePages(c.Context, ln, pagesOf(store, key, trace)), store.Close())
}

// nothingRecorded is the error of a store that is not there.
func nothingRecorded(dir string) error {
	return &exchange.Error{Op: "open store", Object: dir, Side: exchange.SideStore, Cause: exchange.ErrMiss,
		Hint: "nothing was recorded there yet; name another with --store DIR"}
}

// shownElsewhere tells the page of the process that has the store open; without one the error stands.
func (p *program) shownElsewhere(c *cli.Context, dir string, err error) error {
	owner, ok := recorder.ReadOwner(dir)
	if !ok || owner.Admin == "" || !errors.Is(err, exchange.ErrLocked) {
		return err
	}
	note(p.Stderr, "process %d has the store open and shows it itself:", owner.PID)
	return p.tellPage(c, "http://"+owner.Admin+"/")
}

// tellPage says where the page is.
func (p *program) tellPage(c *cli.Context, url string) error {
	if c.Bool("json") {
		return json.NewEncoder(p.Stdout).Encode(map[string]any{"schema": 1, "url": url})
	}
	_, err := fmt.Fprintln(p.Stdout, url)
	return err
}

// pagesOf are the pages of a store that nothing records into.
func pagesOf(store *recorder.Store, key, trace string) web.Options {
	return web.Options{
		Store: store, Key: key, TraceURL: trace,
		Stats:  func() (any, error) { return store.Stats() },
		Check:  func(ctx context.Context) (any, error) { return store.Check(ctx) },
		Health: func() any { return web.Health{Schema: 1, Status: "ok", Version: version()} },
	}
}

// servePages answers on ln until a signal comes.
func (p *program) servePages(ctx context.Context, ln net.Listener, o web.Options) error {
	pages := &pageServer{Server: web.NewServer(o), failed: make(chan error, 1)}
	pages.start(ln)
	var err error
	select {
	case <-ctx.Done():
	case <-p.Signals:
	case err = <-pages.failed:
		pages.failed <- nil
	}
	return errors.Join(err, pages.Close())
}

// pageServer is an admin listener at work.
type pageServer struct {
	*web.Server
	failed chan error // what Serve came to
}

func (s *pageServer) start(ln net.Listener) { go func() { s.failed <- s.Serve(ln) }() }

// Close ends it and waits until it has ended.
func (s *pageServer) Close() error { return errors.Join(s.Server.Close(), <-s.failed) }
