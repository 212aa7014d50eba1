package telemetry

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// maxAnswer bounds what is read of a collector's answer, in bytes.
const maxAnswer = 64 << 10

// The pause before a collector that has no time is asked again doubles from the first to the longest, where it does not say
// how long it wants to be left alone.
const (
	firstPause   = time.Second
	longestPause = 16 * time.Second
)

// otlpHTTP exports spans by OTLP over HTTP. It is asked from one goroutine.
//
// It follows no redirect: where that led, headers with keys would go too, and any page would pass for a collector.
type otlpHTTP struct {
	client  *http.Client
	idle    func() // ends the connections that are kept
	url     string
	headers http.Header
	gzip    bool
	body    protobuf // memory that is used again
}

func newOTLPHTTP(s *Settings) *otlpHTTP {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.Auth.TLS, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: s.Timeout,
	}
	e := &otlpHTTP{url: s.Endpoint, headers: http.Header{}, gzip: s.Gzip, idle: transport.CloseIdleConnections}
	if path, ok := strings.CutPrefix(s.Endpoint, unixScheme); ok {
		e.url, transport.Proxy = "http://localhost"+tracesPath, nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	e.client = &http.Client{
		Transport: transport, Timeout: s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.headers.Set("User-Agent", "benchproxy")
	for _, h := range s.Auth.Headers {
		e.headers.Set(h.Name, h.Value)
	}
	e.headers.Set("Content-Type", "application/x-protobuf")
	if e.gzip {
		e.headers.Set("Content-Encoding", "gzip")
	}
	return e
}

// ExportSpans sends spans until the collector takes them, refuses them, or ctx ends.
func (e *otlpHTTP) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.body = e.body[:0]
	e.body.spans(spans)
	body, err := e.coded()
	if err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := e.send(ctx, body)
		var busy *busyError
		if !errors.As(err, &busy) || !waits(ctx, cmp.Or(busy.after, pause)) {
			return err
		}
	}
}

// coded is the body as it is sent.
func (e *otlpHTTP) coded() ([]byte, error) {
	if !e.gzip {
		return e.body, nil
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(e.body); err != nil {
		return nil, fmt.Errorf("pack spans: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack spans: %w", err)
	}
	return out.Bytes(), nil
}

// waits waits for d; false means that it is not to be waited for: ctx ends before.
func waits(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && clock.Until(end) < d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send makes one request.
func (e *otlpHTTP) send(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	req.Header = e.headers.Clone()
	resp, err := e.client.Do(req)
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if resp.StatusCode/100 != 2 {
		return refusal(resp, answer)
	}
	if err != nil {
		return fmt.Errorf("read answer to spans: %w", err)
	}
	return taken(resp, answer)
}

// taken is an error where a collector that said yes did not take all, or where what said yes is no collector.
func taken(resp *http.Response, answer []byte) error {
	if len(answer) > maxAnswer {
		return fmt.Errorf("read answer to spans: it is longer than %d bytes", maxAnswer)
	}
	read := readPartial
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") { // some answer so whatever they are asked in
		read = readPartialJSON
	}
	p, ok := read(answer)
	if !ok {
		return errors.New("read answer to spans: it is not one of OTLP")
	}
	if p.rejected > 0 {
		return &rejectedError{partial: p}
	}
	return nil // a text without a count is a hint
}

// refusal is a status that is none of success.
func refusal(resp *http.Response, answer []byte) error {
	why := resp.Status
	if text := readStatus(answer); text != "" && len(answer) <= maxAnswer {
		why += ": " + text
	} else if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/plain") {
		why += ": " + cut(string(answer), maxTold)
	}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		why += ", which is not followed: the endpoint must be the collector's own"
	}
	err := fmt.Errorf("the collector answered %s", why)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &busyError{error: err, after: retryAfter(resp.Header.Get("Retry-After"))}
	}
	return err
}

// busyError is a refusal of a collector that may take the same later.
type busyError struct {
	error
	after time.Duration // that it asks for; 0 where it does not
}

// retryAfter reads seconds or a date; 0 is neither.
func retryAfter(v string) time.Duration {
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(clock.Until(at), 0)
	}
	return 0
}

// rejectedError says that some spans of a request were not taken.
type rejectedError struct{ partial }

func (e *rejectedError) Error() string {
	return fmt.Sprintf("the collector did not take %d of the spans it got: %s", e.rejected, cmp.Or(e.why, "it does not say why"))
}

// Shutdown ends the connections.
func (e *otlpHTTP) Shutdown(context.Context) error {
	e.idle()
	return nil
}
