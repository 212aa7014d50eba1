package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// shapes are one exchange of each form that a page shows differently. The first two are takes of one request that part.
func shapes() (out []*exchange.Exchange) {
	r := rand.New(rand.NewPCG(3, 3))
	add := func(x *exchange.Exchange) { out = append(out, x) }
	short := func(pieces ...string) {
		x := request(1, "qwen3-8b", "What is the capital of France?")
		stream(x, r, pieces)
		add(x)
	}
	short("The", " capital", " of", " France", " is", " Paris", ".")
	short("The", " capital", " of", " France", " is", " the", " city", " of", " Paris", ".")
	long := request(2, "llama-3.1-70b-instruct", strings.Repeat("Tell me everything about streams, slots and caches. ", 60))
	stream(long, r, words(r, 3000))
	add(long)
	add(reasoned(r))
	failed := request(4, "mistral-small", "Is anybody there?")
	refuse(failed, 503, `{"error":{"message":"no slot is free, and the queue is full: try again later","type":"unavailable_error","code":503}}`)
	add(failed)
	broken := request(5, "gemma-3-27b", "Go on until you die.")
	stream(broken, r, words(r, 12))
	cut(broken)
	add(broken)
	bounded := request(6, "qwen3-8b", "More than is kept.")
	stream(bounded, r, words(r, 40))
	bounded.State, bounded.Response.Body.Size = exchange.StateTruncated, bounded.Response.Body.Size+5<<20
	add(bounded)
	add(pictured(r))
	named := request(8, strings.Repeat("a-very-long-organization/a-very-long-model-name-", 4)+"Q4_K_M", "hi")
	stream(named, r, words(r, 9))
	add(named)
	add(silent())
	return out
}

// reasoned is an answer that thinks, speaks and calls two tools.
func reasoned(r *rand.Rand) *exchange.Exchange {
	x := request(3, "qwen3-30b-a3b-thinking", "What is the weather in Berlin and in Rome?")
	answerHead(x, 200, "text/event-stream")
	at := int64(210_000_000)
	var body []byte
	delta := func(d string) {
		s := `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n"
		body = append(body, s...)
		x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: at, Write: 21_000, Size: len(s)})
		at += int64(12_000_000 + r.IntN(9_000_000))
	}
	for _, w := range words(r, 90) {
		delta(`{"reasoning_content":` + jsonText(w) + `}`)
	}
	for _, w := range words(r, 25) {
		delta(`{"content":` + jsonText(w) + `}`)
	}
	for i, city := range []string{"Berlin", "Rome"} {
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":"get_weather","arguments":""}}]}`, i, i))
		for _, part := range []string{`{"city"`, `: "` + city + `"`, `, "unit": "celsius"}`} {
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, jsonText(part)))
		}
	}
	end := `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":212,"completion_tokens":131,"prompt_tokens_details":{"cached_tokens":180},"completion_tokens_details":{"reasoning_tokens":90}}}` + "\n\ndata: [DONE]\n\n"
	body = append(body, end...)
	x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: at, Write: 30_000, Size: len(end)})
	x.Response.Body = exchange.NewBody(body)
	marks(x, 20_000_000)
	return x
}

// pictured is a request with a picture in it.
func pictured(r *rand.Rand) *exchange.Exchange {
	x := request(7, "qwen2.5-vl-7b", "")
	picture := make([]byte, 90_000)
	for i := range picture {
		picture[i] = byte(r.IntN(256))
	}
	x.Request.Body = exchange.NewBody([]byte(`{"model":"qwen2.5-vl-7b","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"What is in this picture?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		base64.StdEncoding.EncodeToString(picture) + `"}}]}]}`))
	stream(x, r, words(r, 20))
	return x
}

// silent is a request that no engine was there for.
func silent() *exchange.Exchange {
	x := request(9, "qwen3-8b", "Hello?")
	x.End, x.Cause = exchange.EndConnectFailed, &exchange.Cause{Side: exchange.SideEngine, Code: "refused", Text: "dial tcp 127.0.0.1:8080: connect: connection refused"}
	x.Timeline.ClientDone = exchange.MarkAt(1_200_000)
	x.Timeline.SendStart, x.Timeline.SendDone = exchange.Mark{}, exchange.Mark{}
	return x
}
