package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// lister is an engine that lists models and notes which ones requests name.
type lister struct {
	models []string
	mu     sync.Mutex
	asked  []string
}

func (l *lister) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		var entries []string
		for _, m := range l.models {
			entries = append(entries, fmt.Sprintf(`{"id":%q,"object":"model"}`, m))
		}
		fmt.Fprintf(w, `{"object":"list","data":[%s]}`, strings.Join(entries, ","))
	case "/v1/chat/completions":
		body := make([]byte, 4096)
		n, _ := r.Body.Read(body)
		_, rest, _ := strings.Cut(string(body[:n]), `"model":"`)
		model, _, _ := strings.Cut(rest, `"`)
		l.mu.Lock()
		l.asked = append(l.asked, model)
		l.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	default:
		http.NotFound(w, r)
	}
}

// TestReplayToAnEngineOfOtherModels holds which model is asked for where the workload's is not served.
func TestReplayToAnEngineOfOtherModels(t *testing.T) {
	workload := writeWorkload(t, `{"model":"old","messages":[{"role":"user","content":"a"}]}`, `{"model":"old","messages":[{"role":"user","content":"b"}]}`)
	several := []string{"qwen", "llama"}
	for name, tc := range map[string]struct {
		models [][]string // by target
		typed  string
		tty    bool
		args   []string
		code   int
		want   string // model that is asked for
		told   string
	}{
		"several, elsewhere":       {models: [][]string{several}, typed: "1\n", code: 2, told: "the engine lists 2 models; name one of qwen, llama"},
		"several, at a terminal":   {models: [][]string{several}, typed: "2\n", tty: true, want: "llama", told: "Which one"},
		"several, with the name":   {models: [][]string{{"qwen", "old"}}, want: "old"},
		"several, said to be kept": {models: [][]string{several}, args: []string{"--model", "old"}, want: "old"},
		"several, set by an edit":  {models: [][]string{several}, args: []string{"--set", `model="qwen"`}, want: "qwen"},
		"nobody was asked":         {models: [][]string{several}, args: []string{"--no-identify"}, want: "old"},
		"one":                      {models: [][]string{{"qwen"}}, want: "old"},
		"none":                     {models: [][]string{nil}, want: "old"},
		"targets of other models":  {models: [][]string{several, {"x", "y"}}, typed: "1\n", tty: true, code: 2, told: "does not serve qwen"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"replay", workload, "--store", t.TempDir(), "-q"}, tc.args...)
			var engines []*lister
			for i, models := range tc.models {
				l := &lister{models: models}
				s := httptest.NewServer(l)
				defer s.Close()
				engines = append(engines, l)
				args = append(args, "--target", fmt.Sprintf("t%d=%s", i, s.URL))
			}
			var out, messages strings.Builder
			e := quietEnv(&messages)
			e.Args, e.Stdout, e.Stdin = args, &out, keyboard{Reader: strings.NewReader(tc.typed)}
			e.Getenv, e.Environ = func(string) string { return "" }, func() []string { return nil }
			e.TTY = func(io.Writer) (int, bool) { return 80, tc.tty }
			if code := run(t.Context(), e); code != tc.code || !strings.Contains(messages.String(), tc.told) {
				t.Errorf("exit code %d, want %d; said %s", code, tc.code, messages.String())
			}
			for _, l := range engines {
				for _, m := range l.asked {
					if m != tc.want {
						t.Errorf("asked for %q, want %q", m, tc.want)
					}
				}
				if (len(l.asked) > 0) != (tc.want != "") {
					t.Errorf("%d requests were sent", len(l.asked))
				}
			}
		})
	}
}
