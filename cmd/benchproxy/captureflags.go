package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

const (
	defaultListen = "127.0.0.1:8090"
	defaultAdmin  = "127.0.0.1:8091"
	adminOff      = "off"
)

// proxyFlags are the flags of every command that puts a proxy in front of an engine.
func proxyFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "upstream",
			Usage: "`[NAME=]URL` of an engine (or BENCHPROXY_UPSTREAM): http://, https:// or unix:/socket, or a target of the config; repeat it for one listener each"},
		configFlag(),
		&cli.StringFlag{Name: "listen", Value: defaultListen, Usage: "`ADDR` clients are pointed at"},
		&cli.StringFlag{Name: "admin", Value: defaultAdmin, Usage: "`ADDR` of health and read API, or off"},
		&cli.StringFlag{Name: "admin-key-file", Usage: "`FILE` with a key that readers of --admin must send (or BENCHPROXY_ADMIN_KEY, where other commands take it from)"},
		traceURLFlag(),
		&cli.StringFlag{Name: "api-key-file", Usage: "`FILE` with a key that clients must send (or BENCHPROXY_API_KEY)"},
		&cli.StringSliceFlag{Name: "header", Usage: "`\"NAME: VALUE\"` added when sending to the engine; repeatable"},
		&cli.BoolFlag{Name: "add-usage", Usage: "ask the engine for the token counts of streams whose client does not, and keep them from the client"},
		&cli.BoolFlag{Name: "insecure", Usage: "allow listening beyond this machine without an API key"},
		&cli.BoolFlag{Name: "keep-host", Usage: "forward the client's Host header"},
		&cli.StringFlag{Name: "tls-cert", Usage: "PEM `FILE` to serve clients TLS with"},
		&cli.StringFlag{Name: "tls-key", Usage: "PEM `FILE` with its key"},
		&cli.IntFlag{Name: "max-request", Value: proxy.DefaultMaxRequest >> 20, Usage: "largest request body, in `MIB`"},
		maxBodyFlag(), budgetFlag(),
		&cli.DurationFlag{Name: "drain", Value: 10 * time.Second, Usage: "`DURATION` that running exchanges may take to end after the first Ctrl-C"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no line per exchange"},
		jsonFlag(),
	}, engineFlags()...)
}

// maxBodyFlag and budgetFlag bound what a command keeps of exchanges in memory.
func maxBodyFlag() cli.Flag {
	return &cli.IntFlag{Name: "max-body", Value: proxy.DefaultMaxBody >> 20, Usage: "what is kept of one body, in `MIB`; the rest is counted and hashed"}
}

func budgetFlag() cli.Flag {
	return &cli.IntFlag{Name: "budget", Value: proxy.DefaultBudget >> 20, Usage: "what is kept of all running exchanges together, in `MIB`"}
}

// bounds reads them, in bytes.
func bounds(c *cli.Context) (maxBody, budget int64, err error) {
	for _, name := range []string{"max-body", "budget"} {
		if n := c.Int(name); n < 1 || n > maxMIB {
			return 0, 0, usagef("--%s %d is not from 1 to %d MiB", name, n, maxMIB)
		}
	}
	return int64(c.Int("max-body")) << 20, int64(c.Int("budget")) << 20, nil
}

// engineFlags are the flags of every command that sends to engines: how to reach one, and what is known of it.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "upstream-key-file", Usage: "`FILE` with the engine's key, added when sending (or BENCHPROXY_UPSTREAM_KEY)"},
		&cli.StringFlag{Name: "engine-label", Usage: "`ENGINE[@VERSION]` to believe as the engine; what it has loaded is still read"},
		&cli.BoolFlag{Name: "no-identify", Usage: "ask the engine nothing: what it is and has loaded stays unknown"},
		&cli.StringFlag{Name: "device", Usage: "`DEVICE` you asked the engine to run on (gpu, cuda, metal, cpu ...), to note a fallback to the CPU"},
		&cli.StringFlag{Name: "format", Usage: "read every answer as this `DIALECT`, whatever the path: " + strings.Join(formats(), ", ")},
		&cli.StringFlag{Name: "upstream-ca", Usage: "PEM `FILE` of certificates to trust for https upstreams"},
		&cli.DurationFlag{Name: "connect-timeout", Value: proxy.DefaultConnectTimeout, Usage: "longest `DURATION` of reaching the engine"},
		&cli.DurationFlag{Name: "header-timeout", Usage: "longest `DURATION` of the wait for a response head (default: none, a prefill may take long)"},
		&cli.DurationFlag{Name: "idle-timeout", Value: proxy.DefaultIdleTimeout, Usage: "longest `DURATION` of silence inside a body"},
	}
}

// maxMIB is the largest size a flag takes, so that it stays a number of bytes.
const maxMIB = 1 << 20

// checkBounds refuses sizes and durations that make no sense. The packages below would take 0 for their default.
func checkBounds(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		switch f.(type) {
		case *cli.IntFlag:
			if n := c.Int(name); c.IsSet(name) && (n < 1 || n > maxMIB) {
				return usagef("--%s %d is not from 1 to %d MiB", name, n, maxMIB)
			}
		case *cli.DurationFlag:
			if d := c.Duration(name); d < 0 || d == 0 && c.IsSet(name) && name != "header-timeout" && name != "drain" {
				return usagef("--%s %s is not a duration to wait", name, d)
			}
		}
	}
	return nil
}

// upstream is one --upstream.
type upstream struct {
	name, url   string
	label       string // engine as the user names it
	model       string // that requests will name, "" for what it serves
	dialect     string // of its answers, whatever the path
	session     string // header that carries one value a conversation, "" for none
	credentials func() []exchange.Header
}

// inherit takes what the flags say of all upstreams, for what this one's target leaves open.
func (u *upstream) inherit(credentials func() []exchange.Header, label string) {
	if u.credentials == nil {
		u.credentials = credentials
	}
	if label != "" {
		u.label = label
	}
}

// nameAndURL matches "name=URL": a short name, and then something with a scheme.
var nameAndURL = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)=((?:https?://|unix:).+)$`)

// upstreams reads the --upstream flags. A single one without a name is called "engine".
func (p *program) upstreams(c *cli.Context) ([]upstream, error) {
	if id := launchedID(c); id != "" {
		return launchedUpstream(c, id)
	}
	var out []upstream
	seen := map[string]bool{}
	named := c.StringSlice("upstream")
	if v := p.Getenv("BENCHPROXY_UPSTREAM"); len(named) == 0 && v != "" {
		named = []string{v}
	}
	cfg, err := p.readConfig(c)
	if err != nil {
		return nil, err
	}
	for i, v := range named {
		u, err := p.named(cfg, v)
		if err != nil {
			return nil, err
		}
		switch {
		case u.name != "":
		case i > 0:
			u.name = fmt.Sprintf("engine%d", i+1)
		default:
			u.name = "engine"
		}
		if seen[u.name] {
			return nil, usagef("two upstreams are called %q", u.name)
		}
		seen[u.name] = true
		out = append(out, u)
	}
	if len(out) == 0 {
		return nil, usagef("no engine is named; say --upstream URL")
	}
	return out, nil
}

// newRun is the run a capture writes.
func newRun(mode, name string, ups []upstream) exchange.Run {
	now := clock.Now()
	r := exchange.Run{ID: exchange.NewID(now), Name: name, Mode: mode, State: exchange.RunOpen, Started: now.UTC().Round(0),
		Upstreams: map[string]string{}, Harness: version()}
	for _, u := range ups {
		r.Upstreams[u.name] = redact.URL(u.url)
	}
	return r
}

// settings reads the flags that all capturing commands share.
func (p *program) settings(c *cli.Context, mode string) (captureSettings, error) {
	s := captureSettings{
		listen: c.String("listen"), listenExplicit: c.IsSet("listen"), admin: c.String("admin"), adminExplicit: c.IsSet("admin"),
		drain: c.Duration("drain"),
	}
	var err error
	if s.upstreams, err = p.upstreams(c); err != nil {
		return s, err
	}
	credentials, err := p.added(c)
	if err != nil {
		return s, err
	}
	if err := checkStated(c); err != nil {
		return s, err
	}
	for i := range s.upstreams {
		s.upstreams[i].inherit(credentials, c.String("engine-label"))
	}
	if s.server.TLS, s.upstream.TLS, err = tlsConfigs(c); err != nil {
		return s, err
	}
	if s.server.Key, err = p.secret(c, "api-key-file", "BENCHPROXY_API_KEY"); err != nil {
		return s, err
	}
	if err := proxy.CheckBind(s.listen, s.server.Key, c.Bool("insecure")); err != nil {
		return s, err
	}
	if err := p.adminSettings(c, &s); err != nil {
		return s, err
	}
	dialect, err := dialectFor(c.String("format"), s.upstreams)
	if err != nil {
		return s, err
	}
	if err := checkBounds(c); err != nil {
		return s, err
	}
	s.session = proxy.SessionOptions{Identity: identity(c.String("engine-label")), Dialect: dialect}
	if s.session.MaxBody, s.session.Budget, err = bounds(c); err != nil {
		return s, err
	}
	s.identify, s.device = !c.Bool("no-identify"), c.String("device")
	if s.catalog, err = p.catalog(c); err != nil {
		return s, err
	}
	s.server.MaxRequest = c.Int("max-request") << 20
	if s.server.Rewrite, err = usageRewrite(c, dialect); err != nil {
		return s, err
	}
	s.upstream.KeepHost = c.Bool("keep-host")
	s.upstream.ConnectTimeout = c.Duration("connect-timeout")
	s.upstream.HeaderTimeout = c.Duration("header-timeout")
	s.upstream.IdleTimeout = c.Duration("idle-timeout")
	switch {
	case c.Bool("json"):
		s.form = boardJSON
	case c.Bool("quiet"):
		s.form = boardQuiet
	}
	s.run = newRun(mode, c.String("run"), s.upstreams)
	s.run.MadeBy = redact.Args(p.Args)
	if launchedID(c) != "" {
		return s, p.launchSettings(c, &s)
	}
	return s, nil
}

// adminSettings reads who may read the admin listener.
func (p *program) adminSettings(c *cli.Context, s *captureSettings) (err error) {
	if s.adminKey, err = p.adminKey(c); err != nil {
		return err
	}
	s.adminKey = cmp.Or(s.adminKey, s.server.Key)
	if s.traceURL, err = traceURL(c); err != nil {
		return err
	}
	if s.admin != adminOff && !loopback(s.admin) && s.adminKey == "" && !c.Bool("insecure") {
		return usagef("the admin listener %s would show recordings to other machines; keep it on loopback, give it a key with --admin-key-file, or say --insecure", s.admin)
	}
	return nil
}

// dialectFor is what answers are read as: --format, else what the targets say, which must agree, for one run reads all its
// answers alike. "" is by path.
func dialectFor(format string, ups []upstream) (string, error) {
	if format != "" {
		if !slices.Contains(formats(), format) {
			return "", usagef("there is no dialect %q; there is %s", format, strings.Join(formats(), ", "))
		}
		return format, nil
	}
	for _, u := range ups {
		if u.dialect != ups[0].dialect {
			return "", usagef("the targets %s and %s have different dialects; record them in runs of their own, or say --format", ups[0].name, u.name)
		}
	}
	if len(ups) == 0 {
		return "", nil
	}
	return ups[0].dialect, nil
}

// formats are the dialects --format knows.
func formats() []string {
	var out []string
	for _, d := range wire.Dialects() {
		out = append(out, string(d))
	}
	return out
}

// secret reads a key from the file of a flag, else from a variable. Keys are never taken from the command line, where
// every process can read them.
func (p *program) secret(c *cli.Context, flag, variable string) (string, error) {
	path := c.String(flag)
	if path == "" {
		return strings.TrimSpace(p.Getenv(variable)), nil
	}
	key, err := keyOf(path)
	if err != nil {
		return "", usagef("read --%s: %v", flag, err)
	}
	return key, nil
}

// keyOf reads a key from a file of one line.
func keyOf(path string) (string, error) {
	b, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(b))
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return "", fmt.Errorf("%s must hold exactly one line", path)
	}
	return key, nil
}

// added are the headers that sending adds: the engine's key and the --header flags.
func (p *program) added(c *cli.Context) (func() []exchange.Header, error) {
	key, err := p.secret(c, "upstream-key-file", "BENCHPROXY_UPSTREAM_KEY")
	if err != nil {
		return nil, err
	}
	var hs []exchange.Header
	if key != "" {
		hs = append(hs, exchange.Header{Name: "Authorization", Value: "Bearer " + key})
	}
	asked, err := headerFlags(c)
	if err != nil {
		return nil, err
	}
	if hs = append(hs, asked...); hs == nil {
		return nil, nil
	}
	return func() []exchange.Header { return hs }, nil
}

// tlsConfigs are the TLS settings of both sides, nil where the defaults serve.
func tlsConfigs(c *cli.Context) (serve, dial *tls.Config, err error) {
	cert, key := c.String("tls-cert"), c.String("tls-key")
	if (cert == "") != (key == "") {
		return nil, nil, usagef("--tls-cert and --tls-key go together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, nil, usagef("read --tls-cert and --tls-key: %v", err)
		}
		serve = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if ca := c.String("upstream-ca"); ca != "" {
		pem, err := os.ReadFile(filepath.Clean(ca))
		if err != nil {
			return nil, nil, usagef("read --upstream-ca: %v", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, nil, usagef("--upstream-ca %s holds no certificate", ca)
		}
		dial = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return serve, dial, nil
}

// checkStated refuses statements about the engine that state nothing.
func checkStated(c *cli.Context) error {
	engine, build, versioned := strings.Cut(c.String("engine-label"), "@")
	switch {
	case c.IsSet("engine-label") && (engine == "" || versioned && build == ""):
		return usagef("--engine-label %q is not ENGINE or ENGINE@VERSION", c.String("engine-label"))
	case c.IsSet("device") && c.String("device") == "":
		return usagef("--device names no device")
	}
	return nil
}

// identity is what --engine-label says.
func identity(label string) exchange.Identity {
	engine, build, _ := strings.Cut(label, "@")
	if engine == "" {
		return exchange.Identity{}
	}
	return exchange.Identity{Engine: engine, Version: build, Basis: "label"}
}

// labels are the --label flags.
func labels(c *cli.Context) (map[string]string, error) {
	out := map[string]string{}
	for _, l := range c.StringSlice("label") {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, usagef("--label %q is not KEY=VALUE", l)
		}
		out[k] = v
	}
	return out, nil
}
