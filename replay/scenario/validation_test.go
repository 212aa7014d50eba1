package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestValidationSuite(t *testing.T) {
	var names []string
	for _, s := range Suite(SuiteValidation) {
		names = append(names, s.TagName())
		if s.Blocking || s.Alone || !s.validated {
			t.Errorf("%s: blocking %v, alone %v", s.ID, s.Blocking, s.Alone)
		}
	}
	want := strings.Fields("short short_zh decode decode_8k json json_schema json_unicode long_8k long_32k long_64k multi_turn tool_round_trip agentic")
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("scenarios (-want +got)\n%s", diff)
	}
	plan := Plan(Suite(SuiteValidation), []int{1, 4}, 3)
	if len(plan) != 195 {
		t.Errorf("%d cases, want 195", len(plan))
	}
	tags := map[string]bool{}
	for _, m := range plan {
		tags[m.Tag()] = true
	}
	if len(tags) != 195 || !tags["agentic-c4-r2-i3"] || !tags["short_zh-c1-r0-i0"] {
		t.Errorf("%d tags", len(tags))
	}
}

// TestValidationChecks holds the checks against those that captured reports are judged by.
func TestValidationChecks(t *testing.T) {
	compared := 0
	for _, s := range Suite(SuiteValidation) {
		want, known := gates.ForScenario(s.TagName())
		if !known || s.usesTools() {
			continue // a live case of tools is judged by all its turns
		}
		compared++
		form := func(checks []exchange.Check) (out []string) {
			for _, c := range checks {
				b, err := canon.Interchange([]byte(fmt.Sprintf("[%s]", c.Params)))
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, c.Gate+string(b))
			}
			return out
		}
		if diff := cmp.Diff(form(want), form(s.Case("x", Options{}).Checks)); diff != "" {
			t.Errorf("%s (-captured +live)\n%s", s.ID, diff)
		}
	}
	if compared != 9 {
		t.Errorf("%d scenarios compared", compared)
	}
}

func TestValidationRequests(t *testing.T) {
	for _, s := range Suite(SuiteValidation) {
		r := request(t, s.ID, Options{Tag: "a-c1-r0-i0", Stream: true, Model: "m"})
		var b struct {
			Messages    []struct{ Content string }
			Temperature *int
			TopP        int  `json:"top_p"`
			TopK        *int `json:"top_k"`
			Seed        int
			MaxTokens   int             `json:"max_tokens"`
			Format      json.RawMessage `json:"response_format"`
		}
		if err := json.Unmarshal(r.Body, &b); err != nil {
			t.Fatal(err)
		}
		want := 256
		if strings.HasPrefix(s.ID, "decode") {
			want = 512
		}
		if !strings.HasPrefix(b.Messages[0].Content, "[validation a-c1-r0-i0]\n") || *b.Temperature != 0 || b.TopP != 1 || *b.TopK != 0 || b.Seed != 42 || b.MaxTokens != want {
			t.Errorf("%s: %.200s", s.ID, r.Body)
		}
		if (b.Format != nil) != strings.HasPrefix(s.ID, "json") {
			t.Errorf("%s: response_format %s", s.ID, b.Format)
		}
		if over := request(t, s.ID, Options{MaxTokens: 99}); !strings.Contains(string(over.Body), `"max_tokens":99`) {
			t.Errorf("%s: the limit of the options is not that of the request", s.ID)
		}
	}
}

func TestMultiTurnWantsItsFirstAnswer(t *testing.T) {
	s, _ := Lookup("multi_turn")
	_, err := s.Request(Options{}, []Answer{{Content: strings.Repeat("no ", 100)}})
	if !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), `behind turn 1/2: the answer is "no no`) || len(err.Error()) > 200 {
		t.Errorf("%v", err)
	}
}

// TestHaystacks holds that documents have their size, hide what they hide where they say, and say nothing else like it.
func TestHaystacks(t *testing.T) {
	for _, tokens := range []int{1, 40, 1 << 10, 8 << 10, 64 << 10} {
		doc := haystack("x", tokens, hiddenCodes())
		body := doc[strings.Index(doc, "\n\n"):strings.LastIndex(doc, "\n\n")]
		chars := charsOf(tokens)
		if len(body) < chars || tokens >= 1<<10 && len(body) > chars+600 || !utf8.ValidString(doc) {
			t.Errorf("%d tokens: %d characters, want about %d", tokens, len(body), chars)
		}
		for _, c := range hiddenCodes() {
			at := strings.Index(body, c.Code)
			if strings.Count(doc, c.Code) != 1 || at < 0 {
				t.Fatalf("%d tokens: %s is there %d times", tokens, c.Code, strings.Count(doc, c.Code))
			}
			if depth := float64(at) / float64(len(body)); tokens >= 1<<10 && (depth < c.Depth-0.03 || depth > c.Depth+0.06) {
				t.Errorf("%d tokens: %s at %.3f, want %.1f", tokens, c.Code, depth, c.Depth)
			}
		}
		if strings.ContainsAny(strings.NewReplacer("4821", "", "7392", "", "1605", "").Replace(body), "0123456789{}") {
			t.Errorf("%d tokens: other numbers, or places that were not filled", tokens)
		}
	}
}

// TestProse holds that the text does not repeat itself and is the same for ever: the sentence below is part of the key of
// what was recorded.
func TestProse(t *testing.T) {
	p := newProse(proseSeed("long_8k"))
	if got, want := p.sentence(), firstSentence; got != want {
		t.Errorf("the first sentence is %q, was %q", got, want)
	}
	known := map[string]int{}
	for range 3000 {
		known[p.sentence()]++
	}
	if len(known) < 2950 {
		t.Errorf("%d of 3000 sentences are different", len(known))
	}
	if document(1, 500, nil) == document(2, 500, nil) {
		t.Error("two seeds make one text")
	}
}

const firstSentence = "The owner of the sawmill repaired a bundle of tide tables behind the bakery, and nobody in the street spoke of it again."

// TestDigest is the recipe of other tools by hand, and what does and does not take part.
func TestDigest(t *testing.T) {
	digest := func(id string, o Options) string {
		t.Helper()
		s, _ := Lookup(id)
		d, err := s.Digest(o)
		if err != nil || len(d) != 64 {
			t.Fatalf("%s: %q, %v", id, d, err)
		}
		return d
	}
	hand := `{"max_tokens":256,"messages":[{"content":"[validation short-c1-r0-i0]\nWhat is 17 plus 25? Answer with the number alone, without any other ` +
		`word or sign.","role":"user"}],"response_format":null,"sampling":{"frequency_penalty":0,"presence_penalty":0,"repeat_penalty":1,"seed":42,` +
		`"temperature":0,"top_k":0,"top_p":1},"stream":true,"thinking":false,"tools":null}`
	want, err := canon.Digest([]byte(hand))
	if err != nil {
		t.Fatal(err)
	}
	base := Options{Tag: "short-c1-r0-i0", Stream: true}
	if got := digest("short", base); exchange.DigestPrefix+got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	same := base
	same.Model, same.SerialTools = "m", true // neither the model nor a policy of tools is part of a question without any
	if digest("short", same) != digest("short", base) {
		t.Error("the model is part of the digest")
	}
	seen := []string{digest("agentic_validation", base)}
	for name, change := range map[string]func(*Options){
		"tag": func(o *Options) { o.Tag = "short-c1-r0-i1" }, "stream": func(o *Options) { o.Stream = false },
		"thinking": func(o *Options) { o.Thinking = true }, "limit": func(o *Options) { o.MaxTokens = 3 },
		"serial": func(o *Options) { o.SerialTools = true }, "structured": func(o *Options) { o.StructuredResults = true },
	} {
		o := base
		change(&o)
		d := digest("agentic_validation", o)
		if slices.Contains(seen, d) {
			t.Errorf("%s is no part of the digest", name)
		}
		seen = append(seen, d)
	}
}
