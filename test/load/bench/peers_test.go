package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asPeer makes this test program stand in for a peer: it answers on the address that the variable holds.
const asPeer = "BENCH_TEST_PEER"

func TestMain(m *testing.M) {
	if addr := os.Getenv(asPeer); addr != "" {
		err := http.ListenAndServe(addr, http.NotFoundHandler())
		_, _ = io.WriteString(os.Stderr, err.Error())
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == asCollector { // as the program itself would
		if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestConfigurations(t *testing.T) {
	s := settings{Listen: "127.0.0.1:7001", Engine: "127.0.0.1:7002", Workers: 3}
	for name, want := range map[string][]string{
		nginx: {
			"listen 127.0.0.1:7001 ", "server 127.0.0.1:7002;", "worker_processes 3;", "proxy_buffering off;",
			"proxy_http_version 1.1;", "access_log off;", "keepalive 2048;", "daemon off;", "proxy_next_upstream off;",
		},
		haproxy: {"bind 127.0.0.1:7001 ", "server engine 127.0.0.1:7002 ", "nbthread 3", "option http-no-delay", "http-reuse always"},
	} {
		s.Dir = t.TempDir()
		path, err := configure(name, s)
		if err != nil {
			t.Fatal(err)
		}
		text := readFile(path)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q:\n%s", name, w, text)
			}
		}
		if strings.Contains(text, "{{") || strings.Contains(text, "user root") || filepath.Dir(path) != s.Dir {
			t.Errorf("%s at %s:\n%s", name, path, text)
		}
		for _, f := range strings.Fields(text) { // every file of the peer is in its own folder
			if len(f) > 1 && f[0] == '/' && !strings.HasPrefix(f, s.Dir+"/") {
				t.Errorf("%s writes to %s", name, f)
			}
		}
	}
	s.Root = true
	if path, err := configure(nginx, s); err != nil || !strings.Contains(readFile(path), "user root;") {
		t.Errorf("nginx of root would give its workers to another user: %v", err)
	}
}

func TestConfigurationThatCannotBe(t *testing.T) {
	if _, err := configure("envoy", settings{Dir: t.TempDir()}); err == nil {
		t.Error("a peer that nobody knows is configured")
	}
	if _, err := configure(nginx, settings{Dir: "/nowhere/at/all"}); err == nil {
		t.Error("a configuration is where none can be")
	}
}

// started is a target whose peer is this test program, run with args of a shell.
func started(t *testing.T, path string, args func(dir, config string) []string) (*target, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	x := &target{name: nginx}
	t.Cleanup(x.Close)
	return x, x.startPeer(ctx, peer{name: nginx, args: args}, path, "127.0.0.1:1")
}

func TestPeerStartsAndLeavesNothing(t *testing.T) {
	shell := `addr=$(sed -n 's/.*listen \([^ ]*\) .*/\1/p' "$1"); ` + asPeer + `="$addr" "$2" & trap "kill $!; wait; exit 0" TERM; wait`
	x, err := started(t, "/bin/sh", func(_, config string) []string { return []string{"-c", shell, "sh", config, os.Args[0]} })
	if err != nil {
		t.Fatal(err)
	}
	if d, err := x.cpu(); err != nil || d <= 0 {
		t.Errorf("processor time %s, %v", d, err)
	}
	if n, err := x.resident(); err != nil || n < 2<<20 { // the shell's and the program's
		t.Errorf("memory %d, %v", n, err)
	}
	x.Close()
	if _, err := os.Stat(x.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
	if c, err := net.Dial("tcp", x.addr); err == nil {
		t.Error("it still takes connections")
		c.Close()
	}
	if _, err := x.cpu(); err == nil {
		t.Error("a peer that has ended has used the processor")
	}
	if _, err := x.resident(); err == nil {
		t.Error("a peer that has ended has memory")
	}
}

func TestPeerThatDoesNotStart(t *testing.T) {
	for name, x := range map[string]struct{ path, script, want string }{
		"no path":        {"", "", "-nginx PATH"},
		"no program":     {"/nowhere/nginx", "", "no such file"},
		"ends at once":   {"/bin/sh", "echo no such directive >&2; exit 1", "no such directive"},
		"ends with fine": {"/bin/sh", "exit 0", "it ended"},
	} {
		_, err := started(t, x.path, func(string, string) []string { return []string{"-c", x.script} })
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for says, want := range map[string]string{
		"nginx version: nginx/1.22.1":                                        "1.22.1",
		"HAProxy version 2.6.12-1+deb12u3 2025/10/03 - https://haproxy.org/": "2.6.12-1+deb12u3",
		"something else": "",
	} {
		path := filepath.Join(t.TempDir(), "peer")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+says+"' >&2\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := versionOf(t.Context(), peer{name: nginx}, path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", says, got, err)
		}
		cfg := config{peers: map[string]string{nginx: path}}
		if r := newReport(cfg); (r.name(t.Context(), cfg) == nil) != (want != "") || want != "" && r.Versions[1].Version != want {
			t.Errorf("%q: versions %v", says, r.Versions)
		}
	}
}

func TestMachine(t *testing.T) {
	m := here()
	m.ended()
	if m.CPUs < 1 || m.Kernel == "" || m.MemoryMB < 1 || m.LoadAfter == "" {
		t.Errorf("%+v", m)
	}
	a, b := ticksOf("cpu  10 20 30 40 0 0 0 100 7 7"), ticksOf("cpu  20 40 60 80 0 0 0 200 9 9")
	if got := a.stolen(b); got == nil || *got != 50 {
		t.Errorf("stolen %s, want 50", number(got))
	}
	if got := a.stolen(ticksOf("")); got != nil {
		t.Errorf("a system that does not count has had %g %% stolen", *got)
	}
	if got := field("a b\t: c d\nnext: 1\n", "a b"); got != "c d" {
		t.Errorf("field %q", got)
	}
	if got := field("a: b\n", "c") + readFile("/nowhere/at/all"); got != "" {
		t.Errorf("what is not there says %q", got)
	}
	m.Stolen, m.Virtual = nil, true
	if s := m.String(); !strings.Contains(s, "(virtual)") || !strings.Contains(s, "stolen unknown") {
		t.Error(s)
	}
}

func TestChoose(t *testing.T) {
	cfg, err := parse([]string{"-benchproxy", "x", "-targets", "nginx,record", "-only", "load,json", "-nginx", "/n"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cfg.targets, ",") + " " + strings.Join(cfg.only, ","); got != "direct,record,nginx json,load" || cfg.peers[nginx] != "/n" {
		t.Errorf("%s, peers %v", got, cfg.peers)
	}
	if !cfg.has("json") || cfg.has("gone") {
		t.Errorf("%v", cfg.only)
	}
}
