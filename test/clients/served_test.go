package clients

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
)

// served asks a stand-in that answers from what was recorded of the same sample, with no engine anywhere, and holds that the
// client gets the same from it.
func (c sample) served(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b, err := os.ReadFile(answerFile(t))
	if err != nil {
		t.Fatalf("the sample was not recorded before: %v", err)
	}
	var want answer
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	got, err := c.run(ctx, engine(t))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("from the stand-in the client got\n%+v\nand from the engine\n%+v", got, want)
	}
}

// keep saves what a client got, for the time when the engine is gone.
func (a answer) keep(t *testing.T) {
	t.Helper()
	b, err := json.Marshal(a)
	if err == nil {
		err = os.WriteFile(answerFile(t), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answerFile is where what a client got in this test is kept.
func answerFile(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TEST_ANSWERS")
	if dir == "" {
		t.Fatal("TEST_ANSWERS is not set: run this through its script")
	}
	return filepath.Join(dir, url.PathEscape(t.Name()))
}

// TestChat asks with the official client of chat, as the samples of the other clients do.
func TestChat(t *testing.T) {
	const path = "/v1/chat/completions"
	for _, c := range []sample{
		{"plain", path, false, func(ctx context.Context, base string) (answer, error) {
			p := params("a plain sample", 20)
			p.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
			c := openAI(base)
			got, err := c.Chat.Completions.New(ctx, p)
			if err != nil {
				return answer{}, err
			}
			return chatAnswer(got), nil
		}},
		{"streamed", path, true, func(ctx context.Context, base string) (answer, error) {
			acc, err := streamOf(ctx, openAI(base), params("a streamed sample", 30))
			if err != nil {
				return answer{}, err
			}
			return chatAnswer(&acc.ChatCompletion), nil
		}},
	} {
		t.Run(c.name, c.through)
	}
}

func chatAnswer(c *openai.ChatCompletion) answer {
	return answer{Text: c.Choices[0].Message.Content, Finish: c.Choices[0].FinishReason, Prompt: c.Usage.PromptTokens, Completion: c.Usage.CompletionTokens}
}
