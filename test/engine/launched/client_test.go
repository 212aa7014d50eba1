package launched

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// clientName is the variable that makes this program a client: it holds the model to ask for.
const clientName = "TEST_AS_CLIENT"

func TestMain(m *testing.M) {
	if model := os.Getenv(clientName); model != "" {
		if err := ask(context.Background(), os.Getenv("OPENAI_BASE_URL"), model, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// bodies are the requests of the client, with a place for the model: what a golden is made of, a stream, and an answer that
// a schema binds.
var bodies = []string{
	`{"model":%q,"messages":[{"role":"user","content":"Name three colors."}],"max_tokens":24,"temperature":0,"logprobs":true,"top_logprobs":5}`,
	`{"model":%q,"messages":[{"role":"user","content":"Tell me something long."}],"max_tokens":48,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`,
	`{"model":%q,"messages":[{"role":"user","content":"Which color? Answer as JSON."}],"max_tokens":200,"temperature":0,` +
		`"response_format":{"type":"json_schema","json_schema":{"name":"choice","strict":true,"schema":` +
		`{"type":"object","properties":{"color":{"type":"string","enum":["red","green"]}},"required":["color"],"additionalProperties":false}}}}`,
}

// ask sends the requests one after the other and prints the digest of each answer's body.
func ask(ctx context.Context, base, model string, out io.Writer) error {
	for _, form := range bodies {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", strings.NewReader(fmt.Sprintf(form, model)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d: %s", resp.StatusCode, body)
		}
		if _, err := fmt.Fprintf(out, "answer %x\n", sha256.Sum256(body)); err != nil {
			return err
		}
	}
	return nil
}
