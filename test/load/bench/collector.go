package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/test/load/rig"
)

// asCollector is the argument by which this program is a collector and nothing else.
const asCollector = "collector"

// collect is a collector of spans that does as little as one can: it reads what it is sent and says that all is well. It
// runs behind everything else, so that what is measured is the tracing of a proxy and not a collector's work on the same
// processors. It ends with ctx.
func collect(ctx context.Context, stdout io.Writer) error {
	if err := yieldProcessor(); err != nil {
		return fmt.Errorf("lower priority of collector: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for spans: %w", err)
	}
	fmt.Fprintf(stdout, "http://%s\n", ln.Addr())
	var got received
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return // it is heard by who sent it
		}
		got.requests.Add(1)
		got.bytes.Add(n)
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer is one that took all
	})
	mux.HandleFunc("GET /received", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]int64{"requests": got.requests.Load(), "bytes": got.bytes.Load()})
	})
	srv := &http.Server{Handler: mux}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // it has nothing to lose
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// received is what a collector was sent.
type received struct{ requests, bytes atomic.Int64 }

// collector is one that runs beside the measurement.
type collector struct {
	*rig.Process
	url string
}

func startCollector(ctx context.Context) (*collector, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find collector: %w", err)
	}
	p, err := rig.Start(self, asCollector)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	m, err := p.Out.Match(ctx, regexp.MustCompile(`(http://\S+)\n`))
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("start collector: %w: %s", err, p.Err.Tail())
	}
	return &collector{Process: p, url: m[1]}, nil
}

// tracing are the variables that make a proxy trace, as its name says.
func (b *bench) tracing(ctx context.Context, name string) (vars []string, err error) {
	if b.spans == nil {
		if b.spans, err = startCollector(ctx); err != nil {
			return nil, err
		}
	}
	vars = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + b.spans.url}
	if name == unsampled {
		vars = append(vars, "OTEL_TRACES_SAMPLER=always_off")
	}
	return vars, nil
}

// exported makes sure that what was to be traced was: the figures of a proxy that sent nothing are none of tracing. Spans
// wait some seconds for others before they are sent.
func (b *bench) exported(ctx context.Context) error {
	i := slices.IndexFunc(b.targets, func(t *target) bool { return t.name == traced })
	if i < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err := rig.Poll(ctx, func() (bool, error) {
		n, err := b.spans.received(ctx)
		return n > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for spans of %s: %w: %s", traced, err, b.targets[i].proxy.Err.Tail())
	}
	return nil
}

// received is how many requests with spans came.
func (c *collector) received(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/received", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask collector: %w", err)
	}
	defer resp.Body.Close()
	var doc struct{ Requests int64 }
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		return 0, fmt.Errorf("ask collector: %w", err)
	}
	return doc.Requests, nil
}
