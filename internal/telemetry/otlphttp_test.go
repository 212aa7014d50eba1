package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// answers is a collector without a network: it answers in their order, and then as the last.
type answers struct {
	mu    sync.Mutex
	list  []*http.Response
	times []time.Time
}

func answer(status int, body string, headers ...string) *http.Response {
	r := &http.Response{StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Header: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Body = io.NopCloser(strings.NewReader(body))
	return r
}

// RoundTrip answers a request.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, clock.Now())
	return a.list[min(len(a.times), len(a.list))-1], nil
}

// through is a rig whose spans go over HTTP, through a transport of the test.
func through(t *testing.T, via http.RoundTripper, vars ...string) *rig {
	t.Helper()
	return newRig(t, func(o *Options) {
		o.Exporter = func(context.Context) (sdktrace.SpanExporter, error) {
			e := newOTLPHTTP(&o.Settings)
			e.client.Transport = via
			return e, nil
		}
	}, append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"}, vars...)...)
}

// TestBusyCollectors holds how often and when a collector is asked again that has no time, and what is lost.
func TestBusyCollectors(t *testing.T) {
	ok := answer(200, "")
	for name, x := range map[string]struct {
		answers []*http.Response
		vars    []string
		at      []time.Duration // of the requests, from the first
		want    Counts
	}{
		"pauses double":       {[]*http.Response{answer(429, ""), answer(502, ""), answer(503, ""), answer(504, ""), ok}, nil, []time.Duration{0, 1, 3, 7, 15}, Counts{Exported: 2}},
		"it says when":        {[]*http.Response{answer(503, "", "Retry-After", "3"), ok}, nil, []time.Duration{0, 3}, Counts{Exported: 2}},
		"it says a date":      {[]*http.Response{answer(429, "", "Retry-After", time.Date(2000, 1, 1, 0, 0, 9, 0, time.UTC).Format(http.TimeFormat)), ok}, nil, []time.Duration{0, 4}, Counts{Exported: 2}},
		"it says nonsense":    {[]*http.Response{answer(429, "", "Retry-After", "-soon"), ok}, nil, []time.Duration{0, 1}, Counts{Exported: 2}},
		"too long":            {[]*http.Response{answer(503, "", "Retry-After", "3600"), ok}, nil, []time.Duration{0}, Counts{Lost: 2}},
		"never ready":         {[]*http.Response{answer(503, "")}, []string{"OTEL_BSP_EXPORT_TIMEOUT", "8000"}, []time.Duration{0, 1, 3, 7}, Counts{Lost: 2}},
		"not for its load":    {[]*http.Response{answer(500, ""), ok}, nil, []time.Duration{0}, Counts{Lost: 2}},
		"not with redirects":  {[]*http.Response{answer(307, "", "Location", "http://elsewhere"), ok}, nil, []time.Duration{0}, Counts{Lost: 2}},
		"a yes is never late": {[]*http.Response{ok}, nil, []time.Duration{0}, Counts{Exported: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &answers{list: x.answers}
				r := through(t, to, x.vars...)
				r.pass(wholeAnswer(), true)
				time.Sleep(time.Minute) // of the bubble: the batch and all pauses are over
				if got := r.Close(); got != x.want || len(r.trouble) != min(int(x.want.Lost), 1) {
					t.Errorf("counts are %+v, told %q", got, r.trouble)
				}
				var at []time.Duration
				for _, when := range to.times {
					at = append(at, when.Sub(to.times[0])/time.Second)
				}
				if fmt.Sprint(at) != fmt.Sprint(x.at) {
					t.Errorf("it is asked after %v s, want %v", at, x.at)
				}
			})
		})
	}
}

// TestPartialSuccess holds that a collector that takes some spans is believed, in both forms of its answer.
func TestPartialSuccess(t *testing.T) {
	some := func(rejected uint64, why string) string {
		var p protobuf
		at := p.open(1)
		p.varint(1, rejected)
		p.text(2, why)
		p.close(at)
		return string(p)
	}
	json := []string{"Content-Type", "application/json; charset=utf-8"}
	for name, x := range map[string]struct {
		answer *http.Response
		want   Counts
		told   string
	}{
		"one":               {answer(200, some(1, "too old, key sk-aaaaaaaaaaaaaaaaaaaaaaaa")), Counts{1, 1}, "did not take 1 of the spans it got: too old"},
		"more than sent":    {answer(200, some(99, "")), Counts{0, 2}, "it does not say why"},
		"less than none":    {answer(200, some(1<<63, "x")), Counts{2, 0}, ""},
		"a hint":            {answer(200, some(0, "use gRPC")), Counts{2, 0}, ""},
		"JSON":              {answer(200, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}`, json...), Counts{1, 1}, "no"},
		"JSON, a number":    {answer(200, `{"partialSuccess":{"rejectedSpans":2}}`, json...), Counts{0, 2}, "does not say"},
		"JSON, empty":       {answer(200, `{}`, json...), Counts{2, 0}, ""},
		"JSON, nothing":     {answer(200, ``, json...), Counts{2, 0}, ""},
		"JSON, none":        {answer(200, `<html>`, json...), Counts{0, 2}, "not one of OTLP"},
		"JSON, a fraction":  {answer(200, `{"partialSuccess":{"rejectedSpans":0.5}}`, json...), Counts{0, 2}, "not one of OTLP"},
		"a web page":        {answer(200, `<html>hello</html>`, "Content-Type", "text/html"), Counts{0, 2}, "not one of OTLP"},
		"long":              {answer(200, strings.Repeat("x", maxAnswer+1)), Counts{0, 2}, "longer than"},
		"a status":          {answer(400, "\x08\x03\x12\x06no way"), Counts{0, 2}, "answered 400 Bad Request: no way"},
		"a plain text":      {answer(401, "Bearer sk-aaaaaaaaaaaaaaaaaaaaaaaa", "Content-Type", "text/plain"), Counts{0, 2}, "answered 401 Unauthorized: "},
		"elsewhere":         {answer(302, "", "Location", "http://e"), Counts{0, 2}, "which is not followed"},
		"an unknown status": {answer(999, ""), Counts{0, 2}, "answered 999"},
	} {
		r := through(t, &answers{list: []*http.Response{x.answer}})
		r.pass(wholeAnswer(), true)
		got, told := r.Close(), strings.Join(r.trouble, "\n")
		if got != x.want || (told == "") != (x.told == "") || !strings.Contains(told, x.told) || strings.Contains(told, "sk-aaaa") {
			t.Errorf("%s: counts %+v, told %q", name, got, told)
		}
	}
}

// TestEndIsBounded holds that a collector that never answers, or asks for patience, holds up the end no longer than the time
// of the last flush, and that the spans are counted.
func TestEndIsBounded(t *testing.T) {
	for name, via := range map[string]http.RoundTripper{
		"silent": trip(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }),
		"busy":   &answers{list: []*http.Response{answer(503, "", "Retry-After", "20")}},
		"endless": trip(func(r *http.Request) (*http.Response, error) {
			resp := answer(200, "")
			resp.Body = io.NopCloser(slowly{r.Context()})
			return resp, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := through(t, via, "OTEL_EXPORTER_OTLP_TIMEOUT", "600000", "OTEL_BSP_EXPORT_TIMEOUT", "600000")
				r.pass(wholeAnswer(), true)
				began := clock.Now()
				if got := r.Close(); got != (Counts{Lost: 2}) || clock.Since(began) > flushTime {
					t.Errorf("counts %+v after %s", got, clock.Since(began))
				}
			})
		})
	}
}

type trip func(*http.Request) (*http.Response, error)

// RoundTrip is the function.
func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slowly gives a byte every second, until its context ends.
type slowly struct{ ctx context.Context }

func (s slowly) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		p[0] = 0
		return 1, nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// got is what a collector of a test was sent.
type got struct {
	mu      sync.Mutex
	headers http.Header
	body    []byte
	n       int
}

// ServeHTTP keeps a request.
func (g *got) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.headers, g.n = r.Header.Clone(), g.n+1
	g.headers.Set("Host", r.Host+r.URL.Path)
	g.body, _ = io.ReadAll(r.Body) // of a request that was cut, what came
}

// send passes an exchange to a collector over HTTP, as variables say.
func send(t *testing.T, readFile func(string) ([]byte, error), pairs ...string) *rig {
	t.Helper()
	env := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	s, err := ReadSettings(func(name string) string { return env[name] }, readFile)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *Options) { o.Exporter, o.Settings = nil, s })
	r.pass(wholeAnswer(), true)
	return r
}

// TestHeadersOfTheExporter holds what a collector is sent beside spans, packed or not, with credentials of either kind.
func TestHeadersOfTheExporter(t *testing.T) {
	var to got
	collector := httptest.NewServer(&to)
	defer collector.Close()
	at := strings.TrimPrefix(collector.URL, "http://")
	r := send(t, nil, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hunter2@"+at+"/in/", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
		"OTEL_EXPORTER_OTLP_HEADERS", "X-Key=a%20b%2C, x-other =1,content-type=text/plain,,=bad,no pair,a b=c,line=%0d")
	if n := r.Close(); n != (Counts{Exported: 2}) || to.n != 1 {
		t.Fatalf("counts %+v in %d requests, told %q", n, to.n, r.trouble)
	}
	h := to.headers
	for name, want := range map[string]string{"X-Key": "a b,", "X-Other": "1", "Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", "Host": at + "/in/v1/traces",
		"Authorization": "Basic bWU6aHVudGVyMg=="} {
		if h.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, h.Get(name), want)
		}
	}
	if len(r.o.Settings.Notes) != 4 || strings.Contains(strings.Join(r.o.Settings.Notes, ""), "bad") {
		t.Errorf("notes are %q", r.o.Settings.Notes)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(to.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(unpacked)
	if whole := fields(body, func(int, uint64, []byte) {}); err != nil || !whole || len(body) < 500 {
		t.Errorf("the body has %d bytes, %v", len(body), err)
	}
	r = send(t, nil, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL+"/as/it/is", "OTEL_EXPORTER_OTLP_HEADERS", "x-all=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-traces=2",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none")
	r.Close()
	if h := to.headers; h.Get("X-All") != "" || h.Get("X-Traces") != "2" || h.Get("Content-Encoding") != "" || h.Get("Host") != at+"/as/it/is" {
		t.Errorf("the headers are %v", h)
	}
	collector.Close()
	r = send(t, nil, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hunter2@"+at, "OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter3")
	if n := r.Close(); n != (Counts{Lost: 2}) || len(r.trouble) != 1 || strings.Contains(r.trouble[0], "hunter") {
		t.Errorf("counts %+v, told %q", n, r.trouble)
	}
}

// TestSocketOfACollector holds that a collector may listen on a socket of this machine.
func TestSocketOfACollector(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var to got
	collector := &httptest.Server{Listener: ln, Config: &http.Server{Handler: &to}}
	collector.Start()
	defer collector.Close()
	for _, scheme := range []string{"unix:", "unix://"} {
		r := send(t, nil, "OTEL_EXPORTER_OTLP_ENDPOINT", scheme+path)
		if n := r.Close(); n != (Counts{Exported: 2}) || to.headers.Get("Host") != "localhost/v1/traces" {
			t.Errorf("counts %+v, told %q; asked %v", n, r.trouble, to.headers)
		}
	}
	r := send(t, nil, "OTEL_EXPORTER_OTLP_ENDPOINT", "unix:///nowhere", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_BSP_EXPORT_TIMEOUT", "50")
	if n := r.Close(); n != (Counts{Lost: 2}) || len(r.trouble) != 1 {
		t.Errorf("counts %+v, told %q", n, r.trouble)
	}
}

// pair makes a certificate that signs itself, in PEM with its key.
func pair(t *testing.T) (cert, key []byte) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})
}

// TestCertificatesOfACollector holds that a collector with a certificate of its own is believed by it alone, is shown the
// client's, and is not followed elsewhere; and that what cannot be read is told with its variable and costs spans alone.
func TestCertificatesOfACollector(t *testing.T) {
	var to, elsewhere got
	other := httptest.NewServer(&elsewhere)
	defer other.Close()
	cert, key := pair(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(cert)
	mux := http.NewServeMux()
	mux.Handle("/v1/traces", &to)
	mux.Handle("/away/v1/traces", http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	collector := httptest.NewUnstartedServer(mux)
	collector.TLS = &tls.Config{ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	collector.Config.ErrorLog = nil
	collector.StartTLS()
	defer collector.Close()
	files := map[string][]byte{"ca": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw}), "cert": cert, "key": key, "none": []byte("x")}
	read := func(path string) ([]byte, error) {
		if b, ok := files[path]; ok {
			return b, nil
		}
		return nil, errors.New("open " + path + ": no such file")
	}
	const ca, c, k = "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"
	for name, x := range map[string]struct {
		vars []string
		want Counts
		note string
	}{
		"both":             {[]string{ca, "ca", c, "cert", k, "key"}, Counts{Exported: 2}, ""},
		"of traces":        {[]string{ca, "nowhere", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "ca", c, "cert", k, "key"}, Counts{Exported: 2}, ""},
		"not known":        {[]string{c, "cert", k, "key"}, Counts{Lost: 2}, ""},
		"not shown":        {[]string{ca, "ca"}, Counts{Lost: 2}, ""},
		"redirect":         {[]string{ca, "ca", c, "cert", k, "key", "OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL + "/away"}, Counts{Lost: 2}, ""},
		"missing file":     {[]string{ca, "nowhere"}, Counts{Lost: 2}, ca + ": open nowhere"},
		"no certificate":   {[]string{ca, "none"}, Counts{Lost: 2}, ca + ": none holds no certificate"},
		"no key":           {[]string{ca, "ca", c, "cert"}, Counts{Lost: 2}, c + " names one of"},
		"no client's":      {[]string{ca, "ca", k, "key"}, Counts{Lost: 2}, k + " names one of"},
		"wrong key":        {[]string{ca, "ca", c, "cert", k, "none"}, Counts{Lost: 2}, c + ": read cert and none"},
		"missing key":      {[]string{ca, "ca", c, "cert", k, "nowhere"}, Counts{Lost: 2}, c + ": open nowhere"},
		"missing client's": {[]string{ca, "ca", c, "nowhere", k, "key"}, Counts{Lost: 2}, c + ": open nowhere"},
	} {
		r := send(t, read, append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL}, x.vars...)...)
		n, notes := r.Close(), strings.Join(r.o.Settings.Notes, "\n")
		if n != x.want || (notes == "") != (x.note == "") || !strings.Contains(notes, x.note) {
			t.Errorf("%s: counts %+v, told %q, notes %q", name, n, r.trouble, notes)
		}
	}
	if elsewhere.n != 0 || to.n != 2 {
		t.Errorf("%d requests came, %d went elsewhere", to.n, elsewhere.n)
	}
}
