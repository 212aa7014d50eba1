package clients

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/test/clients/recorded"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// addingUsage starts a proxy of its own with --add-usage and gives its URL, its store, and what ends it.
func addingUsage(ctx context.Context, t *testing.T) (url string, store recorded.Store, end func()) {
	t.Helper()
	store = recorded.Store{Binary: os.Getenv("TEST_BENCHPROXY"), Dir: filepath.Join(t.TempDir(), "store")}
	cmd := exec.CommandContext(ctx, store.Binary, "record", "--upstream", engine(t), "--listen", "127.0.0.1:0", "--admin", "off",
		"--store", store.Dir, "--add-usage", "--no-identify", "-q")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(stderr)
	listening := regexp.MustCompile(`^(http://\S+)  ->  `)
	for url == "" {
		line, err := read.ReadString('\n')
		if err != nil {
			t.Fatalf("the proxy did not start: %v", err)
		}
		if m := listening.FindStringSubmatch(line); m != nil {
			url = m[1]
		}
	}
	return url, store, func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, read) // to its end
		if err := cmd.Wait(); err != nil {
			t.Errorf("the proxy ended with %v", err)
		}
	}
}

// chunks are the chunks of a streamed chat as the client got them, without their id and time, which are of each answer.
func chunks(ctx context.Context, base string, p openai.ChatCompletionNewParams) (got []string, usage int64, err error) {
	c := openai.NewClient(option.WithAPIKey(secret), option.WithMaxRetries(0), option.WithBaseURL(base+"/v1"))
	s := c.Chat.Completions.NewStreaming(ctx, p)
	own := regexp.MustCompile(`"(id|created)":("[^"]*"|\d+)`)
	for s.Next() {
		chunk := s.Current()
		usage += chunk.Usage.CompletionTokens
		got = append(got, own.ReplaceAllString(chunk.RawJSON(), `"$1":0`))
	}
	return got, usage, s.Err()
}

// TestAddUsageIsNotSeen holds that a client of a proxy that asks for usage gets, chunk by chunk, what it gets from the
// engine, and that the record has the engine's counts.
func TestAddUsageIsNotSeen(t *testing.T) {
	s := recorded.Begin(t)
	proxy, store, end := addingUsage(s.Ctx, t)
	plain := func(change func(*openai.ChatCompletionNewParams)) openai.ChatCompletionNewParams {
		p := params("a tale of three rivers", 24)
		p.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
		change(&p)
		return p
	}
	tool := openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "look", Parameters: shared.FunctionParameters{
		"type": "object", "properties": map[string]any{"at": map[string]any{"type": "string"}}}})
	samples := []struct {
		name  string
		p     openai.ChatCompletionNewParams
		usage bool // the client asks for it
		basis string
	}{
		{"plain", plain(func(*openai.ChatCompletionNewParams) {}), false, "reported"},
		{"two choices", plain(func(p *openai.ChatCompletionNewParams) { p.N = openai.Int(2) }), false, "reported"},
		{"tools", plain(func(p *openai.ChatCompletionNewParams) { p.Tools = []openai.ChatCompletionToolUnionParam{tool} }), false, "reported"},
		{"logprobs", plain(func(p *openai.ChatCompletionNewParams) { p.Logprobs = openai.Bool(true); p.TopLogprobs = openai.Int(2) }), false, "reported"},
		{"the client asks", params("a tale of three rivers", 24), true, "reported"},
		{"the client forbids", plain(func(p *openai.ChatCompletionNewParams) {
			p.StreamOptions.IncludeUsage = param.NewOpt(false)
		}), false, "estimated"},
	}
	for _, c := range samples {
		direct, want, err := chunks(s.Ctx, engine(t), c.p)
		if err != nil {
			t.Fatalf("%s, without a proxy: %v", c.name, err)
		}
		got, usage, err := chunks(s.Ctx, proxy, c.p)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !slices.Equal(got, direct) {
			t.Errorf("%s: the client got\n%q\nand from the engine\n%q", c.name, got, direct)
		}
		if usage != want || (usage > 0) != c.usage {
			t.Errorf("%s: the client was told of %d tokens, by the engine of %d", c.name, usage, want)
		}
	}
	end()
	list, err := store.List(s.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	mustValue(t, "exchanges", len(list), len(samples))
	for i, x := range list {
		mustValue(t, samples[i].name+": outcome", x.Outcome, "complete")
		mustValue(t, samples[i].name+": basis", x.Basis["completion_tokens"], samples[i].basis)
	}
	forget(s.Ctx, t) // the engine's account is that of the other tests
}
