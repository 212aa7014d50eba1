package models

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// DefaultOllama is where Ollama listens.
const DefaultOllama = "http://127.0.0.1:11434"

// DaemonOptions say how a daemon is reached. The zero value of a field is its default.
type DaemonOptions struct {
	Ollama    string            // base URL; "" = DefaultOllama
	Prism     string            // the program of Prism's command line; "" = prism, of the search path
	Stall     time.Duration     // how long Ollama may say nothing; 0 = 5 min: it says nothing while it checks what came
	Transport http.RoundTripper // nil = HTTP, without the proxies of the environment
	Tries     int               // attempts that bring nothing; 0 = 3
}

// DaemonPull makes a daemon pull a model. What was pulled before is kept by the daemon, so that it goes on by itself.
type DaemonPull struct {
	d Daemon
	o DaemonOptions

	mu     sync.Mutex
	state  Progress
	layers map[string]layer
}

// layer is a file of a model as Ollama speaks of it.
type layer struct{ have, size int64 }

// NewDaemonPull is a pull of a daemon's model.
func NewDaemonPull(d Daemon, o DaemonOptions) *DaemonPull {
	o.Ollama, o.Prism = strings.TrimRight(cmp.Or(o.Ollama, DefaultOllama), "/"), cmp.Or(o.Prism, "prism")
	o.Stall, o.Tries = cmp.Or(o.Stall, 5*time.Minute), cmp.Or(o.Tries, 3)
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy = nil
		o.Transport = t
	}
	return &DaemonPull{d: d, o: o, state: Progress{Path: d.Kind + ":" + d.Name, Phase: PhaseQueued, Size: -1}, layers: map[string]layer{}}
}

// Progress is how far the pull is. Of Prism nothing but the phase is known.
func (p *DaemonPull) Progress() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *DaemonPull) phase(phase Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Phase = phase
}

// Run pulls the model. The error wraps exchange.ErrUnreachable where no daemon answers, and exchange.ErrMiss where its
// program is not installed.
func (p *DaemonPull) Run(ctx context.Context) (err error) {
	defer func() {
		if err == nil {
			p.phase(PhaseDone)
		} else {
			p.phase(PhaseFailed)
		}
	}()
	if p.d.Kind == KindPrism {
		return p.prism(ctx)
	}
	for tries := 0; ; {
		before := p.Progress().Have
		p.phase(PhaseLoading)
		err := p.ollama(ctx)
		var f *fault
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return p.failed(context.Cause(ctx), "")
		case !errors.As(err, &f) || !f.retry:
			return p.failed(err, "")
		}
		if p.Progress().Have > before {
			tries = 0
		}
		if tries++; tries >= p.o.Tries {
			return p.failed(fmt.Errorf("%d attempts: %w", tries, err), "start Ollama, or name its URL")
		}
		p.phase(PhaseWaiting)
		if err := sleep(ctx, backoff(tries)); err != nil {
			return p.failed(err, "")
		}
	}
}

func (p *DaemonPull) failed(err error, hint string) error {
	return &exchange.Error{Op: "pull model", Object: p.d.Kind + ":" + p.d.Name, Side: exchange.SideEngine, Cause: err, Hint: hint}
}

// prism lets Prism's own command line pull the model: its server has no call for that.
func (p *DaemonPull) prism(ctx context.Context) error {
	p.phase(PhaseLoading)
	program, err := exec.LookPath(p.o.Prism)
	if err != nil {
		return p.failed(fmt.Errorf("%w: %w", exchange.ErrMiss, err), "install Prism's command line, which pulls its models")
	}
	var tail bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "pull", p.d.Name)
	cmd.Stdout, cmd.Stderr = io.Discard, &lastBytes{&tail, 2000}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if said := strings.TrimSpace(redact.Text(tail.String())); said != "" {
			err = fmt.Errorf("%w: %s", err, said[strings.LastIndexByte(said, '\n')+1:])
		}
		return p.failed(err, "")
	}
	return nil
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	*bytes.Buffer
	most int
}

func (l *lastBytes) Write(b []byte) (int, error) {
	l.Buffer.Write(b)
	l.Next(max(0, l.Len()-l.most))
	return len(b), nil
}

// pullEvent is a line of Ollama's answer.
type pullEvent struct {
	Status    string `json:"status"`
	Digest    string `json:"digest"`
	Total     int64  `json:"total"`
	Completed int64  `json:"completed"`
	Error     string `json:"error"`
}

// ollama asks once, and reads until the daemon says that it has all.
func (p *DaemonPull) ollama(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	watchdog := time.AfterFunc(p.o.Stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	body, err := json.Marshal(map[string]any{"model": p.d.Name, "stream": true})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.o.Ollama+"/api/pull", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", exchange.ErrUsage, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: p.o.Transport}).Do(req)
	if err != nil {
		return &fault{cause: fmt.Errorf("%w: %w", exchange.ErrUnreachable, unanswered(ctx, err)), retry: true}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return p.refused(resp)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		watchdog.Reset(p.o.Stall)
		var e pullEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // a later version may say more
		}
		if e.Error != "" {
			return final("Ollama says: %s", e.Error)
		}
		if e.Status == "success" {
			return nil
		}
		p.heard(e)
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return &fault{cause: errStalled, retry: true}
	}
	return again("Ollama ended its answer without success: %v", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

func (p *DaemonPull) refused(resp *http.Response) error {
	var e pullEvent
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what it says is told where it says something
	if json.Unmarshal(b, &e) == nil && e.Error != "" {
		e.Error = ": " + e.Error
	}
	f := final("Ollama answers %s%s", resp.Status, e.Error)
	f.retry = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
	return f
}

// heard adds up how far the layers are.
func (p *DaemonPull) heard(e pullEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasPrefix(e.Status, "verifying") || strings.HasPrefix(e.Status, "writing") {
		p.state.Phase = PhaseVerifying
	}
	if e.Digest == "" {
		return
	}
	l := p.layers[e.Digest]
	p.layers[e.Digest] = layer{max(l.have, e.Completed), max(l.size, e.Total)}
	p.state.Have, p.state.Size = 0, 0
	for _, l := range p.layers {
		p.state.Have += l.have
		p.state.Size += l.size
	}
}
