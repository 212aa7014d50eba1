package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// keyboard is an input that may be a terminal.
type keyboard struct {
	io.Reader
	io.Writer
}

// atTerminal is a program whose user types what is given.
func atTerminal(typed io.Reader, stderr io.Writer, tty bool) *program {
	return &program{env: env{Stdin: keyboard{Reader: typed}, Stdout: io.Discard, Stderr: stderr,
		TTY: func(io.Writer) (int, bool) { return 80, tty }}}
}

func TestPickModelOfSeveral(t *testing.T) {
	several := &exchange.Deployment{Models: []string{"qwen", "llama", "3"}}
	one := "only"
	for name, c := range map[string]struct {
		d     *exchange.Deployment
		typed string
		tty   bool
		asked string
		want  string // "" for a usage error
	}{
		"by number":            {several, "2\n", true, "", "llama"},
		"by name":              {several, "qwen\n", true, "", "qwen"},
		"a name like a number": {several, "3\n", true, "", "3"},
		"without a line end":   {several, "2", true, "", "llama"},
		"the second try":       {several, "9\n1\n", true, "", "qwen"},
		"three bad tries":      {several, "x\n\n0\n1\n", true, "", ""},
		"nothing typed":        {several, "", true, "", ""},
		"no terminal":          {several, "1\n", false, "", ""},
		"asked for":            {several, "", false, "mine", "mine"},
		"one is loaded":        {&exchange.Deployment{Model: &one, Models: several.Models}, "", true, "", "only"},
		"none is listed":       {&exchange.Deployment{}, "1\n", true, "", ""},
	} {
		var stderr bytes.Buffer
		got, err := atTerminal(strings.NewReader(c.typed), &stderr, c.tty).pickModel(t.Context(), c.d, c.asked)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %q, %v\n%s", name, got, err, stderr.String())
		}
		if c.want == "" && len(c.d.Models) > 0 && !strings.Contains(err.Error(), "name one of qwen, llama, 3") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// TestAQuestionEndsWithItsCommand holds that nobody waits for an answer that does not come.
func TestAQuestionEndsWithItsCommand(t *testing.T) {
	typed, closeTyped := io.Pipe()
	defer func() { _ = closeTyped.Close() }() // always nil
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	var stderr stopper
	stderr.stop = func() { cancel(stop) }
	if _, err := atTerminal(typed, &stderr, true).pickModel(ctx, &exchange.Deployment{Models: []string{"a", "b"}}, ""); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

// stopper calls stop when the question is asked.
type stopper struct{ stop func() }

func (s *stopper) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("Which")) {
		s.stop()
	}
	return len(p), nil
}

// several is an engine that lists two models and loads what is asked for.
func several(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/models" {
		http.NotFound(w, r)
		return
	}
	fmt.Fprint(w, `{"object":"list","data":[{"id":"small","max_model_len":1000},{"id":"large","max_model_len":2000}]}`)
}

func TestEnginesPick(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(several))
	defer engine.Close()
	for name, c := range map[string]struct {
		args  []string
		typed string
		tty   bool
		code  int
		says  string
	}{
		"identify asks":               {[]string{"engines", "identify", "--pick", engine.URL}, "2\n", true, 0, "2000"},
		"identify without a terminal": {[]string{"engines", "identify", "--pick", engine.URL}, "2\n", false, 2, "name one of small, large"},
		"identify without --pick":     {[]string{"engines", "identify", engine.URL}, "", true, 0, "2: small, large"},
		"check asks":                  {[]string{"engines", "check", "--pick", engine.URL}, "small\n", true, 0, "1000"},
		"a model that is named":       {[]string{"engines", "check", "--pick", "--model", "large", engine.URL}, "", false, 0, "2000"},
	} {
		var out bytes.Buffer
		p := atTerminal(strings.NewReader(c.typed), &out, c.tty)
		p.Args, p.Stdout, p.Getenv = c.args, &out, func(string) string { return "" }
		if code := run(t.Context(), p.env); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: code %d\n%s", name, code, out.String())
		}
	}
}
