package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Auth is how requests over HTTP say who sends them. Headers may hold keys: they are never told.
type Auth struct {
	Headers []exchange.Header
	TLS     *tls.Config // nil is the system's defaults
}

// grpcProtocol is OTLP over gRPC; all else is over HTTP.
const grpcProtocol = "grpc"

// unixScheme begins an endpoint that is a socket of this machine.
const unixScheme = "unix://"

// otlp is a variable of the exporter: the one for traces goes before the one for all signals. name is that of the one that
// says something.
func (e *environment) otlp(what string) (name, value string) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	for _, name := range []string{prefix + "TRACES_" + what, prefix + what} {
		if v := e.get(name); v != "" {
			return name, v
		}
	}
	return "", ""
}

func (e *environment) protocol(s *Settings) {
	switch name, v := e.otlp("PROTOCOL"); v {
	case "":
	case grpcProtocol, "http/protobuf":
		s.Protocol = v
	default:
		e.note("%s %q is not spoken here; it is %s", name, v, s.Protocol)
	}
}

// timeout is how long a request of the exporter may take.
func (e *environment) timeout() time.Duration {
	name, _ := e.otlp("TIMEOUT")
	return time.Duration(e.number(cmp.Or(name, "OTEL_EXPORTER_OTLP_TIMEOUT"), 10_000)) * time.Millisecond
}

func (e *environment) gzip() bool {
	switch name, v := e.otlp("COMPRESSION"); v {
	case "gzip":
		return true
	case "", "none":
	default:
		e.note("%s %q is not known here; there is gzip and none", name, v)
	}
	return false
}

// endpoint is where spans are to be sent, "" when nobody says so. That of traces is taken as it is; that of all signals
// gets the path of traces.
func (e *environment) endpoint(protocol string) (string, error) {
	name, v := e.otlp("ENDPOINT")
	if v == "" {
		return "", nil
	}
	if path, ok := strings.CutPrefix(v, "unix:"); ok {
		if path = strings.TrimPrefix(path, "//"); !strings.HasPrefix(path, "/") {
			return "", fmt.Errorf("%w: %s %q is not unix:///PATH", exchange.ErrUsage, name, v)
		}
		return unixScheme + path, nil
	}
	if protocol == grpcProtocol && !strings.Contains(v, "://") { // its exporters take host:port too
		v = e.grpcScheme() + v
	}
	u, err := url.Parse(v)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%w: %s %q is not http://HOST:PORT or https://", exchange.ErrUsage, name, withoutUser(v))
	}
	if protocol != grpcProtocol && !strings.Contains(name, "_TRACES_") {
		u.Path = strings.TrimSuffix(u.Path, "/") + tracesPath
	}
	return u.String(), nil
}

// grpcScheme is that of an endpoint of gRPC without one. A collector beside this program has no TLS.
func (e *environment) grpcScheme() string {
	if _, v := e.otlp("INSECURE"); strings.EqualFold(v, "false") {
		return "https://"
	}
	return "http://"
}

// headers go with every request. Of one that cannot be read only its number is told: it may hold a key.
func (e *environment) headers() (out []exchange.Header) {
	name, v := e.otlp("HEADERS")
	if v == "" {
		return nil
	}
	n := 0
	for part := range strings.SplitSeq(v, ",") {
		n++
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, text, ok := strings.Cut(part, "=")
		text, err := url.PathUnescape(strings.TrimSpace(text))
		if key = strings.TrimSpace(key); !ok || err != nil || !isToken(key) || strings.ContainsAny(text, "\r\n\x00") {
			e.note("%s: its header %d is not NAME=VALUE with a value in percent coding; it is left out", name, n)
			continue
		}
		out = append(out, exchange.Header{Name: key, Value: text})
	}
	return out
}

// isToken reports whether s may be the name of a header.
func isToken(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(strings.ToLower(s), letters) == ""
}

// certificates are those that a collector must show, and those that it is shown; nil where no variable names any. What
// cannot be read is left out: then no request succeeds that needs it.
func (e *environment) certificates(readFile func(string) ([]byte, error)) *tls.Config {
	c := tls.Config{MinVersion: tls.VersionTLS12}
	used := false
	if name, path := e.otlp("CERTIFICATE"); path != "" {
		pem, err := readFile(path)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s holds no certificate in PEM", path)
		}
		if err != nil {
			e.note("%s: %v", name, err)
		} else {
			c.RootCAs, used = pool, true
		}
	}
	certName, cert := e.otlp("CLIENT_CERTIFICATE")
	keyName, key := e.otlp("CLIENT_KEY")
	switch {
	case cert == "" && key == "":
	case cert == "" || key == "":
		e.note("%s names one of certificate and key, and a client needs both", cmp.Or(certName, keyName))
	default:
		pair, err := keyPair(readFile, cert, key)
		if err != nil {
			e.note("%s: %v", certName, err)
		} else {
			c.Certificates, used = []tls.Certificate{pair}, true
		}
	}
	if !used {
		return nil
	}
	return &c
}

func keyPair(readFile func(string) ([]byte, error), cert, key string) (pair tls.Certificate, err error) {
	certPEM, err := readFile(cert)
	if err != nil {
		return pair, err
	}
	keyPEM, err := readFile(key)
	if err != nil {
		return pair, err
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return pair, fmt.Errorf("read %s and %s: %w", cert, key, err)
	}
	return pair, nil
}

// withoutUser is an endpoint for people, without the name and password that may stand before its host.
func withoutUser(endpoint string) string {
	at := strings.LastIndexByte(endpoint, '@')
	if at < 0 {
		return endpoint
	}
	scheme, _, found := strings.Cut(endpoint[:at], "//")
	if found {
		scheme += "//"
	} else {
		scheme = ""
	}
	return scheme + redact.Mask + endpoint[at:]
}

// tracesPath is where a collector takes spans over HTTP.
const tracesPath = "/v1/traces"

func defaultEndpoint(protocol string) string {
	if protocol == "grpc" {
		return defaultGRPC
	}
	return defaultHTTP + tracesPath
}
