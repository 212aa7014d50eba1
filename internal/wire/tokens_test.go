package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// answered is an exchange with a body as the engine sent it.
func answered(path, request, contentType, body string) *exchange.Exchange {
	x := exchangeOf(exchange.NewBody([]byte(body)), len(body))
	x.Request = exchange.Request{Method: "POST", Target: path, Body: exchange.NewBody([]byte(request))}
	x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: contentType}}
	return x
}

// pieces are the texts of tokens, and "#id" in the place of one that is not told.
func piecesOf(tokens []Token) (out []string) {
	for _, t := range tokens {
		if out = append(out, t.Text); !t.Spelled {
			out[len(out)-1] = "#"
		}
	}
	return out
}

func idList(tokens []Token) (out []int64) {
	for _, t := range tokens {
		out = append(out, t.ID)
	}
	return out
}

// TestTokensOfCaptures holds the tokens of every real answer that lists them against its text and its usage.
func TestTokensOfCaptures(t *testing.T) {
	listed := 0
	for _, c := range wiretest.Captures(t) {
		x := c.Exchange()
		tr, l := Parse(x), Tokens(x)
		if len(l.Generated) == 0 {
			if tr.LogprobEntries > 0 {
				t.Errorf("%s: %d entries and no token (%s)", c.ID(), tr.LogprobEntries, l.Cut)
			}
			continue
		}
		listed++
		if l.Cut != "" {
			t.Errorf("%s: cut: %s", c.ID(), l.Cut)
		}
		if len(tr.Choices) > 1 || !l.Texts() {
			continue
		}
		if text := strings.Join(piecesOf(l.Generated), ""); !strings.HasPrefix(text, tr.Choice0().Text) {
			t.Errorf("%s: tokens spell %q, the answer says %q", c.ID(), text, tr.Choice0().Text)
		}
		for i, tok := range l.Generated {
			if tok.Logprob == nil || *tok.Logprob > 0 {
				t.Errorf("%s: token %d has log-probability %v", c.ID(), i, tok.Logprob)
			}
		}
	}
	if listed < 10 {
		t.Fatalf("only %d captures list tokens", listed)
	}
	t.Logf("%d captures list tokens", listed)
}

func TestTokensOfLlamaServer(t *testing.T) {
	for name, want := range map[string]struct {
		ids   []int64
		text  []string
		scale Scale
		top   int
	}{
		"completion-nprobs":              {[]int64{3511, 7398, 8378, 9347}, []string{"stalve", "fopl", " cuz", "nem"}, ScaleRaw, 3},
		"completion-stream-nprobs":       {[]int64{3511, 7398, 8378, 9347}, []string{"stalve", "fopl", " cuz", "nem"}, ScaleRaw, 3},
		"completion-nprobs-postsampling": {[]int64{3511, 7398, 8378}, []string{"stalve", "fopl", " cuz"}, ScalePostSampling, 0},
		"v1-completions-logprobs":        {[]int64{3511, 7398, 8378, 9347}, []string{"stalve", "fopl", " cuz", "nem"}, ScaleRaw, 2},
	} {
		l := Tokens(wiretest.LoadCapture(t, "llama-server/"+name).Exchange())
		if d := cmp.Diff(want.ids, idList(l.Generated)); d != "" || l.Scale != want.scale || l.Cut != "" {
			t.Errorf("%s: scale %q, cut %q, ids (-want +got)\n%s", name, l.Scale, l.Cut, d)
		}
		if d := cmp.Diff(want.text, piecesOf(l.Generated)); d != "" {
			t.Errorf("%s: texts (-want +got)\n%s", name, d)
		}
		if want.top > 0 && len(l.Generated[0].Top) != want.top {
			t.Errorf("%s: %d in the first list, want %d", name, len(l.Generated[0].Top), want.top)
		}
	}
}

// TestListsThatDoNotLineUp holds that a list is kept only for the token it is surely of.
func TestListsThatDoNotLineUp(t *testing.T) {
	entry := func(id, text string) string {
		return `{"id":` + id + `,"token":"` + text + `","logprob":-0.1,"top_logprobs":[{"id":` + id + `,"token":"` + text + `","logprob":-0.1}]}`
	}
	completion := func(tokens, entries string) string {
		return `{"content":"ab","tokens":[` + tokens + `],"stop":true,"stop_type":"limit","tokens_predicted":3,"completion_probabilities":[` + entries + `]}`
	}
	for name, test := range map[string]struct {
		body  string
		ids   []int64
		lists int // tokens with a list
		cut   bool
	}{
		"all":                        {completion("1,2,3", entry("1", "a")+","+entry("2", "b")+","+entry("3", "c")), []int64{1, 2, 3}, 3, false},
		"byte token in the middle":   {completion("1,2,3", entry("1", "a")+","+entry("3", "c")), []int64{1, 2, 3}, 1, true},
		"byte token first":           {completion("1,2,3", entry("2", "b")+","+entry("3", "c")), []int64{1, 2, 3}, 0, true},
		"byte token last":            {completion("1,2,3", entry("1", "a")+","+entry("2", "b")), []int64{1, 2, 3}, 2, true},
		"no lists":                   {completion("1,2,3", ""), []int64{1, 2, 3}, 0, false},
		"no ids, a token is missing": {completion("", entry("1", "a")+","+entry("3", "c")), []int64{1}, 1, true},
		"no ids, all there":          {completion("", entry("1", "a")+","+entry("2", "")+","+entry("3", "b")), []int64{1, 2, 3}, 3, false},
	} {
		l := Tokens(answered("/completion", `{"prompt":"x"}`, "application/json", test.body))
		lists := 0
		for _, tok := range l.Generated {
			if tok.Top != nil {
				lists++
			}
		}
		if d := cmp.Diff(test.ids, idList(l.Generated)); d != "" || lists != test.lists || (l.Cut != "") != test.cut {
			t.Errorf("%s: %d lists, cut %q, ids (-want +got)\n%s", name, lists, l.Cut, d)
		}
	}
}

func TestTokensOfOlderBuilds(t *testing.T) {
	body := `{"content":"hi","stop":true,"stopped_limit":true,"tokens_predicted":1,"completion_probabilities":[{"content":"hi","probs":[{"tok_str":"hi","prob":0.5},{"tok_str":"ho","prob":0.25},{"tok_str":"no","prob":0}]}]}`
	l := Tokens(answered("/completion", `{}`, "application/json", body))
	if len(l.Generated) != 1 || l.Scale != ScaleLegacy || l.Generated[0].ID != -1 || l.IDs() || !l.Texts() {
		t.Fatalf("%+v", l)
	}
	got := l.Generated[0]
	if got.Logprob == nil || math.Abs(*got.Logprob-math.Log(0.5)) > 1e-12 || len(got.Top) != 2 || got.Top[1].Text != "ho" {
		t.Errorf("%+v", got)
	}
}

func TestTokensOfVLLM(t *testing.T) {
	body := `data: {"choices":[{"index":0,"delta":{"content":"a"},"token_ids":null}],"prompt_token_ids":[7,8],"prompt_logprobs":[null,{"8":{"logprob":-1.5,"rank":2,"decoded_token":" y"},"9":{"logprob":-0.5,"rank":1,"decoded_token":" z"}}]}

data: {"choices":[{"index":0,"delta":{"content":"de"},"logprobs":{"content":[{"token":"d","logprob":-0.25,"bytes":[100],"top_logprobs":[{"token":"token_id:12","logprob":-0.25},{"token":"e","logprob":-1,"bytes":[195]}]},{"token":"e","logprob":-2,"bytes":null,"top_logprobs":[]}]},"token_ids":[12,13]}]}

data: {"choices":[{"index":1,"delta":{"content":"other"},"token_ids":[99]}]}

data: [DONE]

`
	l := Tokens(answered("/v1/chat/completions", `{}`, "text/event-stream", body))
	if d := cmp.Diff([]int64{12, 13}, idList(l.Generated)); d != "" || l.Cut != "" {
		t.Errorf("cut %q (-want +got)\n%s", l.Cut, d)
	}
	top := l.Generated[0].Top
	if len(top) != 2 || top[0].ID != 12 || top[1].Spelling() != "\xc3" {
		t.Errorf("list %+v", top)
	}
	if d := cmp.Diff([]int64{7, 8}, l.PromptIDs); d != "" || len(l.Prompt) != 2 {
		t.Fatalf("prompt %+v (-want +got)\n%s", l.Prompt, d)
	}
	if p := l.Prompt[1]; p.ID != 8 || p.Text != " y" || *p.Logprob != -1.5 || p.Top[0].ID != 9 {
		t.Errorf("prompt token %+v", p)
	}
}

func TestTokensOfOtherDialects(t *testing.T) {
	for name, test := range map[string]struct {
		path, request, kind, body string
		ids                       []int64
		text                      []string
		best                      string
		cut                       bool
	}{
		"completions": {"/v1/completions", `{}`, "application/json",
			`{"choices":[{"index":0,"text":"ab","finish_reason":"length","logprobs":{"tokens":["a","bytes:\\xe2\\x98"],"token_logprobs":[-1,-2],"top_logprobs":[{"b":-0.5,"a":-1},null]}}]}`,
			[]int64{-1, -1}, []string{"a", "\xe2\x98"}, "b", false},
		"completions as ids": {"/v1/completions", `{}`, "application/json",
			`{"choices":[{"index":0,"text":"a","logprobs":{"tokens":["token_id:5"],"token_logprobs":[-1],"top_logprobs":[{"token_id:5":-1}]}}]}`,
			[]int64{5}, []string{"#"}, "", false},
		"an echoed prompt": {"/v1/completions", `{"echo":true}`, "application/json",
			`{"choices":[{"index":0,"text":"ab","logprobs":{"tokens":["a"],"token_logprobs":[-1]}}]}`, nil, nil, "", true},
		"ollama": {"/api/chat", `{}`, "application/x-ndjson",
			`{"message":{"content":"a"},"logprobs":[{"token":"a","bytes":[97],"logprob":-1,"top_logprobs":[{"token":"c","bytes":[99],"logprob":-0.5}]}]}` + "\n" + `{"done":true,"eval_count":1}` + "\n",
			[]int64{-1}, []string{"a"}, "c", false},
		"gemini": {"/v1beta/models/m:generateContent", `{}`, "application/json",
			`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","logprobsResult":{"chosenCandidates":[{"token":"a","tokenId":4,"logProbability":-1}],"topCandidates":[{"candidates":[{"token":"a","tokenId":4,"logProbability":-1},{"token":"b","tokenId":5,"logProbability":-0.5}]}]}}]}`,
			[]int64{4}, []string{"a"}, "b", false},
		"responses": {"/v1/responses", `{}`, "text/event-stream",
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\",\"logprobs\":[{\"token\":\"a\",\"logprob\":-1,\"top_logprobs\":[]}]}\n\nevent: response.output_text.done\ndata: {\"type\":\"response.output_text.done\",\"text\":\"a\",\"logprobs\":[{\"token\":\"a\",\"logprob\":-1}]}\n\n",
			[]int64{-1}, []string{"a"}, "", false},
		"sglang, cumulative": {"/generate", `{}`, "text/event-stream",
			`data: {"text":"a","output_ids":[3],"meta_info":{"prompt_tokens":1,"completion_tokens":1,"finish_reason":null,"output_token_logprobs":[[-1,3,"a"]],"output_top_logprobs":[[[-0.5,9,"q"]]],"input_token_logprobs":[[null,8,"x"]]}}` + "\n\n" +
				`data: {"text":"ab","output_ids":[3,4],"meta_info":{"prompt_tokens":1,"completion_tokens":2,"finish_reason":null,"output_token_logprobs":[[-1,3,"a"],[-2,4,"b"]],"output_top_logprobs":[[[-0.5,9,"q"]],[[-1,9,"q"]]],"input_token_logprobs":[[null,8,"x"]]}}` + "\n\ndata: [DONE]\n\n",
			[]int64{3, 4}, []string{"a", "b"}, "q", false},
		"text only": {"/v1/messages", `{}`, "application/json", `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`, nil, nil, "", false},
	} {
		l := Tokens(answered(test.path, test.request, test.kind, test.body))
		if d := cmp.Diff(test.ids, idList(l.Generated)); d != "" || (l.Cut != "") != test.cut {
			t.Errorf("%s: cut %q, ids (-want +got)\n%s", name, l.Cut, d)
			continue
		}
		if d := cmp.Diff(test.text, piecesOf(l.Generated)); d != "" {
			t.Errorf("%s: texts (-want +got)\n%s", name, d)
		}
		if test.best != "" && (len(l.Generated[0].Top) == 0 || l.Generated[0].Top[0].Text != test.best) {
			t.Errorf("%s: list %+v", name, l.Generated[0].Top)
		}
	}
}

func TestPromptIDsOfTheRequest(t *testing.T) {
	body := `{"content":"a","tokens":[1],"stop":true,"tokens_predicted":1}`
	for request, want := range map[string][]int64{`{"prompt":[5,6]}`: {5, 6}, `{"prompt":"a"}`: nil, `{"prompt":[[5],[6]]}`: nil, `{"prompt":["a",6]}`: nil, `nonsense`: nil} {
		l := Tokens(answered("/completion", request, "application/json", body))
		if d := cmp.Diff(want, l.PromptIDs); d != "" {
			t.Errorf("%s (-want +got)\n%s", request, d)
		}
	}
}

// FuzzTokens holds that reading tokens never fails, and that no list is longer than what the wire says.
func FuzzTokens(f *testing.F) {
	f.Add("/completion", `{"content":"a","tokens":[1,2],"completion_probabilities":[{"id":1,"token":"a","logprob":-1}]}`)
	f.Add("/v1/completions", `{"choices":[{"logprobs":{"tokens":["bytes:\\x"],"top_logprobs":[{"a":1}]}}],"prompt_logprobs":[{}]}`)
	f.Add("/generate", `{"output_ids":[1],"meta_info":{"output_token_logprobs":[[1]]}}`)
	f.Fuzz(func(t *testing.T, path, body string) {
		x := answered(path, body, "application/json", body)
		tr, l := Parse(x), Tokens(x)
		if len(l.Generated) > tr.TokenIDs+tr.LogprobEntries {
			t.Errorf("%d tokens of %d ids and %d entries", len(l.Generated), tr.TokenIDs, tr.LogprobEntries)
		}
	})
}
