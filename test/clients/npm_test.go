package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TestNPM asks with the clients of npm, each in a process of its own, as their users run them.
func TestNPM(t *testing.T) {
	if os.Getenv("TEST_NPM") == "" {
		t.Fatal("TEST_NPM is not set: run this through its script")
	}
	const chat, responses, messages = "/v1/chat/completions", "/v1/responses", "/v1/messages"
	for _, c := range []sample{
		{name: "openai chat", path: chat},
		{name: "openai chat streamed", path: chat, stream: true},
		{name: "openai chat tools streamed", path: chat, stream: true},
		{name: "openai responses", path: responses},
		{name: "openai responses streamed", path: responses, stream: true},
		{name: "openai responses tools streamed", path: responses, stream: true},
		{name: "openai embeddings", path: "/v1/embeddings"},
		{name: "anthropic", path: messages},
		{name: "anthropic streamed", path: messages, stream: true},
		{name: "anthropic tools streamed", path: messages, stream: true},
		{name: "ai", path: chat},
		{name: "ai streamed", path: chat, stream: true},
		{name: "ai tools streamed", path: chat, stream: true},
		{name: "ollama chat", path: "/api/chat"},
		{name: "ollama chat streamed", path: "/api/chat", stream: true},
		{name: "ollama chat tools streamed", path: "/api/chat", stream: true},
		{name: "ollama generate streamed", path: "/api/generate", stream: true},
		{name: "ollama embed", path: "/api/embed"},
	} {
		c.run = node(c.name)
		t.Run(c.name, c.through)
	}
}

// node runs one case of clients.mjs.
func node(name string) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, base string) (answer, error) {
		var a answer
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, "node", "clients.mjs", name)
		cmd.Dir = os.Getenv("TEST_NPM")
		cmd.Env = append(os.Environ(), "TEST_KEY="+secret)
		if base != "" {
			cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+base+"/v1", "ANTHROPIC_BASE_URL="+base, "OLLAMA_HOST="+base)
		}
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return a, fmt.Errorf("run node clients.mjs %q: %w: %s", name, err, stderr.String())
		}
		if err := json.Unmarshal(out, &a); err != nil {
			return a, fmt.Errorf("read what clients.mjs printed: %w: %s", err, out)
		}
		return a, nil
	}
}
