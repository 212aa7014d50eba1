package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// sglangEvent is one event of /generate.
func sglangEvent(text string, ids []int, total int) string {
	b, _ := json.Marshal(map[string]any{"text": text, "output_ids": ids, "meta_info": map[string]any{"completion_tokens": total, "prompt_tokens": 5}})
	return string(b)
}

func TestSGLangTellsCumulativeFromIncremental(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []string
		text   string
		tokens string // of each event
		kinds  string // t for a token event
	}{
		{"cumulative", []string{sglangEvent("a", []int{1}, 1), sglangEvent("ab", []int{1, 2}, 2), sglangEvent("abab", []int{1, 2, 3, 4}, 4)}, "abab", "112", "ttt"},
		{"incremental", []string{sglangEvent("a", []int{1}, 1), sglangEvent("ab", []int{2}, 2), sglangEvent("aba", []int{3, 4}, 4)}, "aababa", "112", "ttt"},
		{"cumulative without ids", []string{`{"text":"a","meta_info":{}}`, `{"text":"aa","meta_info":{}}`}, "aa", "--", "tt"},
		{"incremental without ids", []string{`{"text":"a","meta_info":{}}`, `{"text":"b","meta_info":{}}`, `{"text":"bc","meta_info":{}}`}, "abbc", "---", "ttt"},
		{"a token without text", []string{sglangEvent("a", []int{1}, 1), sglangEvent("a", []int{1, 2}, 2), sglangEvent("ab", []int{1, 2, 3}, 3)}, "ab", "111", "t.t"},
		{"a stop word is taken away", []string{sglangEvent("a", []int{1}, 1), sglangEvent("a END", []int{1, 2}, 2), sglangEvent("a", []int{1, 2}, 2)}, "a", "110", "tt."},
		{"without ids too", []string{`{"text":"a END","meta_info":{}}`, `{"text":"a","meta_info":{}}`}, "a", "--", "t."},
		{"the end is rewritten", []string{sglangEvent("a\ufffd", []int{1}, 1), sglangEvent("aé", []int{1, 2}, 2), sglangEvent("aéb", []int{1, 2, 3}, 3)}, "aéb", "111", "t.t"},
		{"without a tokenizer", []string{`{"output_ids":[1],"meta_info":{"completion_tokens":1}}`, `{"output_ids":[1,2],"meta_info":{"completion_tokens":2}}`}, "", "11", "tt"},
		{"empty first", []string{`{"text":"","output_ids":[],"meta_info":{"completion_tokens":0}}`, sglangEvent("a", []int{1}, 1), sglangEvent("ab", []int{1, 2}, 2)}, "ab", "011", ".tt"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := generate(tc.events...)
			var tokens, kinds strings.Builder
			for _, e := range tr.Events[:len(tc.events)] {
				if e.Tokens < 0 {
					tokens.WriteByte('-')
				} else {
					fmt.Fprint(&tokens, e.Tokens)
				}
				kinds.WriteByte(".t"[e.Kinds&KindText])
			}
			if tr.Choice0().Text != tc.text || tokens.String() != tc.tokens || kinds.String() != tc.kinds {
				t.Errorf("text %q, tokens %s, token events %s; want %q, %s, %s", tr.Choice0().Text, &tokens, &kinds, tc.text, tc.tokens, tc.kinds)
			}
		})
	}
}

func TestSGLangMeta(t *testing.T) {
	tr := generate(
		`{"text":"a","output_ids":[1],"meta_info":{"id":"x","finish_reason":null,"prompt_tokens":6,"completion_tokens":1,"cached_tokens":4,"output_token_logprobs":[[-0.1,1,"a"]]}}`,
		`{"text":"ab","output_ids":[1,2],"meta_info":{"id":"x","finish_reason":{"type":"stop","matched":2},"prompt_tokens":6,"completion_tokens":2,"cached_tokens":4,"e2e_latency":0.5,"queue_time":0.125,`+
			`"spec_verify_ct":1,"spec_accept_token_num":1,"spec_draft_token_num":3,"output_token_logprobs":[[-0.1,1,"a"],[-0.2,2,"b"]]}}`)
	u, tm := tr.Usage, tr.Timings
	if tr.ID != "x" || *u.Prompt != 6 || *u.Completion != 2 || *u.Cached != 4 || u.PerChoice || u.Partial || tr.LogprobEntries != 2 || *tr.FinishReason != "stop" {
		t.Errorf("usage %+v, %d log-probabilities, finish %q", u, tr.LogprobEntries, *tr.FinishReason)
	}
	if *tm.TotalMS != 500 || *tm.QueueMS != 125 || *tm.DraftN != 3 || *tm.DraftAccepted != 1 || *tm.DraftSteps != 1 || tm.DraftSource != draftsOfResponse {
		t.Errorf("timings %+v", tm)
	}
	if tr.Events[0].Running != 1 || tr.Events[1].Running != 2 {
		t.Errorf("running counts %+v", tr.Events)
	}
}

func TestSGLangEnds(t *testing.T) {
	abort := generate(`{"text":"","meta_info":{"finish_reason":{"type":"abort","message":"too long","status_code":400}}}`)
	if abort.Error == nil || abort.Error.Message != "too long" || abort.Error.Code != "400" || abort.DialectEnd {
		t.Errorf("an abort: %+v", abort.Error)
	}
	if old := generate(`{"text":"a","meta_info":{"finish_reason":"length"}}`); *old.FinishReason != "length" || !old.DialectEnd {
		t.Errorf("an older build: %+v", old)
	}
	if cut := generate(sglangEvent("a", []int{1}, 1)); cut.DialectEnd || !cut.Usage.Partial {
		t.Errorf("DONE without a reason: %+v", cut)
	}
}

func TestSGLangOfSeveral(t *testing.T) {
	finished := `"meta_info":{"finish_reason":{"type":"stop"},"prompt_tokens":5,"completion_tokens":1}`
	numbered := generate(`{"index":1,"text":"b",`+finished+`}`, `{"index":0,"text":"a",`+finished+`}`)
	list := sayAt(Info{Path: "/generate", ContentType: "application/json"}, `[{"text":"a",`+finished+`},{"text":"b",`+finished+`}]`)
	for name, tr := range map[string]*Transcript{"numbered events": numbered, "a list": list} {
		if len(tr.Choices) != 2 || tr.Choices[0].Text != "a" || tr.Choices[1].Text != "b" || !tr.Usage.PerChoice || !tr.DialectEnd {
			t.Errorf("%s: %+v, usage %+v", name, tr.Choices, tr.Usage)
		}
	}
	one := sayAt(Info{Path: "/generate", ContentType: "application/json"}, `{"text":"a","output_ids":[1],`+finished+`}`)
	if one.Choice0().Text != "a" || one.Usage.PerChoice || one.Terminator != "json" || one.TokenIDs != 1 {
		t.Errorf("one answer: %+v", one)
	}
}

// FuzzSGLangText holds that a text told as a whole again and again, and the same text told piece by piece, come out as
// it is, with as many token events as there are pieces.
func FuzzSGLangText(f *testing.F) {
	f.Add("a|b|ab|", uint8(1))
	f.Add("aa|aa|aaa", uint8(0))
	f.Add("é|\U0001F600|\\\"", uint8(3))
	f.Fuzz(func(t *testing.T, script string, perPiece uint8) {
		if !utf8.ValidString(script) || len(script) > 4096 {
			return // JSON cannot carry it
		}
		pieces := strings.Split(script, "|")
		var cumulative, incremental []string
		so, total, filled := "", 0, 0
		n := 1 + int(perPiece%4)
		for _, p := range pieces {
			so, total = so+p, total+n
			cumulative = append(cumulative, sglangEvent(so, make([]int, total), total))
			incremental = append(incremental, sglangEvent(p, make([]int, n), total))
			if p != "" {
				filled++
			}
		}
		for name, events := range map[string][]string{"cumulative": cumulative, "incremental": incremental} {
			tr := generate(events...)
			if tr.Choice0().Text != so || tr.TokenEvents() != filled || tr.TokenIDs != total {
				t.Errorf("%s: text %q in %d token events of %d ids, want %q in %d of %d", name, tr.Choice0().Text, tr.TokenEvents(), tr.TokenIDs, so, filled, total)
			}
		}
	})
}
