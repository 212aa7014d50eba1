package main

import (
	"strings"
	"testing"
)

func TestTargetsAreChecked(t *testing.T) {
	for name, c := range map[string]target{
		"no url":             {},
		"another scheme":     {URL: "ftp://h"},
		"two keys":           {URL: "http://h", KeyEnv: "A", KeyFile: "b"},
		"an unknown dialect": {URL: "http://h", Dialect: "latin"},
		"a split header":     {URL: "http://h", Headers: map[string]string{"A": "b\r\nC: d"}},
		"a session header":   {URL: "http://h", Session: "A: b"},
		"a header's colon":   {URL: "http://h", Headers: map[string]string{"A:": "b"}},
	} {
		if c.check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	good := target{URL: "unix:/run/e.sock", Engine: "vllm@1", Dialect: "chat", Headers: map[string]string{"X-A": "1"}, KeyEnv: "K"}
	if err := good.check(); err != nil {
		t.Error(err)
	}
}

func TestATargetsKeyAndHeadersAreItsCredentials(t *testing.T) {
	p := &program{env: env{Getenv: func(name string) string { return map[string]string{"K": "secret"}[name] }}}
	u, err := p.upstreamOf("a", target{URL: "http://h", Engine: "vllm", Headers: map[string]string{"X-B": "2", "X-A": "1"}, KeyEnv: "K",
		Session: "X-Session"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range u.credentials() {
		got = append(got, h.Name+"="+h.Value)
	}
	if s := strings.Join(got, " "); s != "X-A=1 X-B=2 Authorization=Bearer secret" {
		t.Errorf("credentials %q", s)
	}
	u.inherit(nil, "")
	if u.session != "X-Session" {
		t.Errorf("session header %q", u.session)
	}
	if u.label != "vllm" || u.credentials == nil {
		t.Errorf("a target lost what it says: %+v", u)
	}
}

func TestDialectsOfTargetsAgree(t *testing.T) {
	for _, c := range []struct {
		format string
		ups    []upstream
		want   string
		fails  bool
	}{
		{"", nil, "", false},
		{"chat", []upstream{{dialect: "x"}, {}}, "chat", false},
		{"latin", nil, "", true},
		{"", []upstream{{dialect: "chat"}, {dialect: "chat"}}, "chat", false},
		{"", []upstream{{dialect: "chat"}, {}}, "", true},
	} {
		got, err := dialectFor(c.format, c.ups)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%q of %+v is %q, %v", c.format, c.ups, got, err)
		}
	}
}
