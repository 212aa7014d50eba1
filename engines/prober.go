package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Defaults of Options.
const (
	DefaultProbeTimeout = 5 * time.Second
	DefaultTotal        = 20 * time.Second
	DefaultMaxAnswer    = 4 << 20
)

// Doer sends one request. Client makes one that is safe to probe with.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// ErrWithdrawn is the cause with which Options.Turn ends the context of a probe that has to make room for traffic. Such a
// probe is sent again in its next turn.
var ErrWithdrawn = errors.New("probe withdrawn")

// Options say how a server is asked.
type Options struct {
	Headers      []exchange.Header // sent with each probe, to the origin of the base URL only
	Model        string            // the one that requests will name; "" = the one the server has
	Label        string            // the engine as the user names it, with or without @version; believed
	Requested    string            // device the user asked for: gpu, cuda, metal, cpu ...; "" = not said
	ProbeTimeout time.Duration     // of one probe, its body included; 0 is DefaultProbeTimeout
	Total        time.Duration     // of all probes together, waits for a turn not counted; 0 is DefaultTotal
	MaxAnswer    int64             // bytes read of an answer; 0 is DefaultMaxAnswer
	// Traffic reports whether the server has answered others already. It is then never asked for a path that makes some
	// engine work, not even when all else proved nothing. Nil is no.
	Traffic func() bool
	// Turn is asked before each probe and returns when it may be sent, with the context it is sent under and what to
	// call after it. Nil sends at once.
	Turn func(ctx context.Context) (context.Context, context.CancelFunc, error)
}

// answer is what one probe came to. Status 0 is none.
type answer struct {
	path   string
	status int
	header http.Header
	body   []byte
	doc    any // of a JSON body, numbers as json.Number; nil when it is none
}

// ok reports a status 200 and something else than an HTML page: servers, and what stands before them, give one to any path,
// and neither its text nor its head is about the path that was asked.
func (a *answer) ok() bool { return a.status == http.StatusOK && !a.page() }

// page reports an HTML page, which begins with a tag or says what it is.
func (a *answer) page() bool {
	body := bytes.TrimLeft(bytes.TrimPrefix(a.body, []byte("\xef\xbb\xbf")), " \t\r\n")
	return bytes.HasPrefix(body, []byte("<")) || strings.HasPrefix(strings.ToLower(a.header.Get("Content-Type")), "text/html") && a.doc == nil
}

// object is the body as a JSON object; ok is false for anything else and for other statuses than 200.
func (a *answer) object() (map[string]any, bool) {
	o, isObject := a.doc.(map[string]any)
	return o, isObject && a.ok()
}

// prober asks one server, remembers what it said, and stops when asking is of no use.
type prober struct {
	do       Doer
	base     *url.URL // without a /v1 at its end
	o        Options
	answers  map[string]*answer
	held     []string      // paths that are not asked for now
	released bool          // they were needed after all
	left     time.Duration // of Options.Total
	silent   int           // time-outs without an answer between them
	sent     int
	answered int
	dead     error // why nothing is asked any more
	last     error // why the last probe had no answer
}

// newProber reads the base URL: http or https, a host, perhaps a path prefix, with or without /v1.
func newProber(do Doer, base string, o Options) (*prober, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &exchange.Error{Op: "identify engine", Object: redact.URL(base), Side: exchange.SideClient,
			Cause: fmt.Errorf("%w: not a plain http or https URL", exchange.ErrUsage)}
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	u.RawPath = ""
	if o.ProbeTimeout <= 0 {
		o.ProbeTimeout = DefaultProbeTimeout
	}
	if o.Total <= 0 {
		o.Total = DefaultTotal
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	return &prober{do: do, base: u, o: o, answers: map[string]*answer{}, left: o.Total}, nil
}

// get asks for a path once and remembers the answer.
func (p *prober) get(ctx context.Context, path string) *answer { return p.ask(ctx, path, nil) }

// ask is get, or a POST of body when there is one.
func (p *prober) ask(ctx context.Context, path string, body []byte) *answer {
	if slices.Contains(p.held, path) {
		return &answer{path: path}
	}
	key := path + "\n" + string(body)
	if a := p.answers[key]; a != nil {
		return a
	}
	a := &answer{path: path}
	if p.dead == nil {
		a = p.probe(ctx, path, body)
	}
	p.answers[key] = a
	return a
}

// probe sends one probe, again when it was withdrawn, and draws the consequences of its end.
func (p *prober) probe(ctx context.Context, path string, body []byte) *answer {
	for {
		turn, done, err := p.turn(ctx)
		if err != nil {
			p.dead = err
			return &answer{path: path}
		}
		began := clock.Now()
		a, err := p.send(turn, path, body)
		withdrawn := errors.Is(context.Cause(turn), ErrWithdrawn)
		done()
		p.left -= clock.Since(began)
		if err != nil && withdrawn {
			continue
		}
		p.sent++
		p.conclude(ctx, err)
		return a
	}
}

func (p *prober) turn(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if p.o.Turn == nil {
		return ctx, func() {}, ctx.Err()
	}
	return p.o.Turn(ctx)
}

// conclude counts the end of a probe. A server that cannot be reached, or was silent twice in a row, is not asked again.
func (p *prober) conclude(ctx context.Context, err error) {
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	p.last = err
	switch {
	case err == nil:
		p.answered++
		p.silent = 0
	case ctx.Err() != nil:
		p.dead = ctx.Err()
	case errors.As(err, &op) && op.Op == "dial":
		p.dead = err
	case errors.As(err, &timeout) && timeout.Timeout():
		p.silent++
	}
	if p.dead == nil && (p.silent >= 2 || p.left <= 0) {
		p.dead = fmt.Errorf("it was silent for %s: %w", (p.o.Total - p.left).Round(time.Second), err)
		if err == nil {
			p.dead = fmt.Errorf("the time for probes, %s, is spent", p.o.Total)
		}
	}
}

// send makes the request and reads its whole answer, as far as the bounds allow.
func (p *prober) send(ctx context.Context, path string, body []byte) (*answer, error) {
	a := &answer{path: path}
	ctx, cancel := context.WithTimeout(ctx, min(p.o.ProbeTimeout, p.left))
	defer cancel()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if path == metricsPath {
		req.Header.Set("Accept", "text/plain;version=0.0.4, */*;q=0.1") // Strata answers JSON to anything else
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range p.o.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	resp, err := p.do.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, p.o.MaxAnswer+1))
	if err != nil {
		return &answer{path: path}, err
	}
	a.status, a.header = resp.StatusCode, resp.Header
	if int64(len(a.body)) > p.o.MaxAnswer {
		a.body = nil // half a document says nothing
	}
	a.doc = decodeJSON(a.body)
	return a, nil
}

// decodeJSON is the one JSON value of b, nil when b is anything else.
func decodeJSON(b []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil
	}
	return v
}
