package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/test/load/reverseproxy/streaming"
)

// insideNames are the targets that can run in this process.
var insideNames = []string{direct, proxied, records, compare}

// inside is a target that runs in this process, where the runtime counts what it allocates.
type inside struct {
	addr   string
	stored atomic.Int64 // records acknowledged
	store  *recorder.Store
	writer *recorder.Writer // nil when nothing is recorded
	server interface{ Close() error }
	up     *proxy.Upstream
	wg     sync.WaitGroup
	served error
}

// openInside makes the target of that name in front of engine; dir is for its store.
func openInside(name, engine, dir string) (*inside, error) {
	in := &inside{}
	var err error
	switch name {
	case direct:
		u, err := url.Parse(engine)
		if err != nil {
			return nil, err
		}
		in.addr = u.Host
		return in, nil
	case compare:
		err = in.openCompare(engine)
	case records:
		if err = in.openStore(dir); err == nil {
			err = in.openProxy(engine, in.writer)
		}
	default:
		err = in.openProxy(engine, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s in this process: %w", name, err), in.Close())
	}
	return in, nil
}

func (in *inside) openCompare(engine string) error {
	u, err := url.Parse(engine)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: streaming.New(u)}
	in.server = srv
	return in.serve(func(ln net.Listener) error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

// openStore makes a store and a writer as `benchproxy record` does.
func (in *inside) openStore(dir string) (err error) {
	if in.store, err = recorder.Open(dir, recorder.Options{Harness: "bench"}); err != nil {
		return err
	}
	in.writer, err = in.store.NewWriter(exchange.Run{Mode: "record"}, recorder.WriterOptions{
		Derive:   func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) },
		OnStored: func(exchange.Summary) { in.stored.Add(1) },
	})
	return err
}

func (in *inside) openProxy(engine string, sink *recorder.Writer) (err error) {
	o := proxy.SessionOptions{Mode: "proxy"}
	if sink != nil {
		o.Mode, o.Sink = "record", sink
	}
	if in.up, err = proxy.NewUpstream(proxy.UpstreamOptions{Name: "engine", URL: engine}); err != nil {
		return err
	}
	srv, err := proxy.NewServer(proxy.ServerOptions{Session: proxy.NewSession(o), Upstream: in.up})
	if err != nil {
		return err
	}
	in.server = srv
	return in.serve(srv.Serve)
}

func (in *inside) serve(serve func(net.Listener) error) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	in.addr = ln.Addr().String()
	in.wg.Go(func() { in.served = serve(ln) })
	return nil
}

// Close ends the target.
func (in *inside) Close() error {
	var errs []error
	if in.server != nil {
		if err := in.server.Close(); !errors.Is(err, context.Canceled) { // the clients' idle connections were cut
			errs = append(errs, err)
		}
		in.wg.Wait()
		errs = append(errs, in.served)
	}
	if in.up != nil {
		errs = append(errs, in.up.Close())
	}
	if in.writer != nil {
		_, err := in.writer.Close(context.Background())
		errs = append(errs, err)
	}
	if in.store != nil {
		errs = append(errs, in.store.Close())
	}
	return errors.Join(errs...)
}
