package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/web"
	"github.com/benchproxy/benchproxy/recorder"
)

// reading is a store as reading commands see it: opened here, or asked through the proxy that owns it.
type reading interface {
	Runs() ([]exchange.Run, error)
	Run(idOrName string) (exchange.Run, error)
	Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error]
	Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error)
	Detail(ctx context.Context, id exchange.ID) (exchange.Detail, error)
	Bytes(ctx context.Context, id exchange.ID, side, part string) (io.ReadCloser, error)
	Stats(ctx context.Context) (json.RawMessage, error)
	Check(ctx context.Context) (json.RawMessage, error)
	Close()
}

// openReading opens the store of a command. When a proxy holds it, its admin listener is asked instead.
func (p *program) openReading(c *cli.Context) (reading, error) {
	dir, err := p.storeDir(c)
	if err != nil {
		return nil, err
	}
	return p.openReadingIn(c, dir)
}

func (p *program) openReadingIn(c *cli.Context, dir string) (reading, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nothingRecorded(dir)
	}
	store, err := recorder.Open(dir, recorder.Options{Harness: version(), Log: p.log()})
	if err == nil {
		return local{store}, nil
	}
	owner, ok := recorder.ReadOwner(dir)
	if !ok || owner.Admin == "" || !errors.Is(err, exchange.ErrLocked) {
		return nil, err
	}
	key, err := p.adminKey(c)
	if err != nil {
		return nil, err
	}
	return remote{web.NewClient(owner.Admin, key)}, nil
}

// adminKey is the key of admin listeners, "" when there is none. Without one of its own it is that of the clients: who may
// not ask the engine may not read what others asked.
func (p *program) adminKey(c *cli.Context) (string, error) {
	key, err := p.secret(c, "admin-key-file", "BENCHPROXY_ADMIN_KEY")
	return cmp.Or(key, strings.TrimSpace(p.Getenv("BENCHPROXY_API_KEY"))), err
}

// local reads a store that this process opened.
type local struct{ *recorder.Store }

func (l local) Close() { _ = l.Store.Close() } // nothing was written

func (l local) Detail(_ context.Context, id exchange.ID) (exchange.Detail, error) {
	return detailOf(l.Exchange(id))
}

func (l local) Bytes(_ context.Context, id exchange.ID, side, part string) (io.ReadCloser, error) {
	x, _, err := l.Exchange(id)
	return partOf(x, side, part, err)
}

func (l local) Stats(context.Context) (json.RawMessage, error) {
	s, err := l.Store.Stats()
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

func (l local) Check(ctx context.Context) (json.RawMessage, error) {
	r, err := l.Store.Check(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// remote reads the store of a running proxy. What is derived is derived here: that process measures.
type remote struct{ *web.Client }

func (r remote) Detail(_ context.Context, id exchange.ID) (exchange.Detail, error) {
	return detailOf(r.Exchange(id))
}

func (r remote) Bytes(_ context.Context, id exchange.ID, side, part string) (io.ReadCloser, error) {
	x, _, err := r.Exchange(id)
	return partOf(x, side, part, err)
}

func detailOf(x *exchange.Exchange, row exchange.Summary, err error) (exchange.Detail, error) {
	if err != nil {
		return exchange.Detail{}, err
	}
	return measure.Detail(x, row), nil
}

// partOf is the head or the body of a side.
func partOf(x *exchange.Exchange, side, part string, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	head, body := x.Request.Head, x.Request.Body
	if side == "response" {
		head, body = x.Response.Head, x.Response.Body
	}
	if part == "head" {
		return io.NopCloser(bytes.NewReader(head)), nil
	}
	return io.NopCloser(body.Reader()), nil
}
