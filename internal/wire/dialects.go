package wire

import (
	"slices"
	"strings"

	"github.com/valyala/fastjson"
)

// language is one dialect: how a JSON value of a body adds to the answer.
type language struct {
	name Dialect
	read func(a *answer, v *fastjson.Value, data []byte)
	// framings the dialect is spoken in; under another one the path belongs to somebody else's format
	framings []Framing
	// own tells a value of this dialect on a path that others use for formats of their own; nil where nobody does
	own func(v *fastjson.Value) bool
	// closes says that no event of the dialect tells the end: an array of it is whole when it is closed
	closes bool
}

// The dialects that are understood, one file each.
var (
	chat        = language{name: DialectChat, read: readChat, framings: []Framing{FramingSSE, FramingJSON, FramingNDJSON, FramingJSONArray}}
	completions = language{name: DialectCompletions, read: readCompletions, framings: []Framing{FramingSSE, FramingJSON, FramingNDJSON, FramingJSONArray}}
	ollama      = language{name: DialectOllama, read: readOllama, framings: []Framing{FramingNDJSON, FramingJSON}}
	llamaCpp    = language{name: DialectLlamaCpp, read: readLlamaCpp, framings: []Framing{FramingSSE, FramingJSON, FramingJSONArray}, own: isLlamaCpp}
	sglang      = language{name: DialectSGLang, read: readSGLang, framings: []Framing{FramingSSE, FramingJSON, FramingJSONArray}, own: isSGLang}
	tensorSharp = language{name: DialectTensorSharp, read: readTensorSharp, framings: []Framing{FramingSSE}, own: isTensorSharp}
	lmStudio    = language{name: DialectLMStudio, read: readLMStudio, framings: []Framing{FramingSSE, FramingJSON}, own: isLMStudio}
	responses   = language{name: DialectResponses, read: readResponses, framings: []Framing{FramingSSE, FramingJSON, FramingNDJSON, FramingJSONArray}, own: isResponses}
	anthropic   = language{name: DialectAnthropic, read: readAnthropic, framings: []Framing{FramingSSE, FramingJSON, FramingNDJSON, FramingJSONArray}}
	gemini      = language{name: DialectGemini, read: readGemini, framings: []Framing{FramingSSE, FramingJSON, FramingNDJSON, FramingJSONArray}}
	embeddings  = language{name: DialectEmbeddings, read: readEmbeddings, framings: []Framing{FramingJSON, FramingJSONArray}, own: isEmbeddings, closes: true}
)

// routes is the one table from request paths to dialects: the end of a path, segment by segment, where * is any one
// segment, or any beginning of one before a colon. Engines and gateways put prefixes before them. The first match counts;
// where two engines share a path, the first whose dialect is spoken in the framing of the answer.
var routes = []struct {
	suffix string
	lang   *language
}{
	{"chat/completions", &chat},
	{"v1/completions", &completions},
	{"v0/completions", &completions},
	{"openai/completions", &completions},
	{"deployments/*/completions", &completions},
	{"engines/*/completions", &completions},
	{"api/chat", &ollama},
	{"api/chat", &tensorSharp},
	{"api/generate", &ollama},
	{"api/chat/ollama", &ollama}, // TensorSharp
	{"api/v1/chat", &lmStudio},
	{"generate", &sglang},
	{"completion", &llamaCpp},
	{"completions", &llamaCpp}, // the older name, which gateways use for the legacy completions
	{"responses", &responses},
	{"v1/messages", &anthropic},
	{"anthropic/models/*:rawPredict", &anthropic}, // Vertex
	{"anthropic/models/*:streamRawPredict", &anthropic},
	{"*:streamGenerateContent", &gemini},
	{"*:generateContent", &gemini},
	{"embeddings", &embeddings},
	{"embedding", &embeddings},      // llama.cpp
	{"api/embed", &embeddings},      // Ollama
	{"*:embedContent", &embeddings}, // Gemini
	{"*:batchEmbedContents", &embeddings},
}

// DialectOf names the language spoken at a request target: a path, with or without query, scheme and host.
func DialectOf(path string) Dialect {
	if l := languageOf(path); l != nil {
		return l.name
	}
	return DialectNone
}

// DialectFor is the pinned language, else that of the request target.
func DialectFor(pinned Dialect, target string) Dialect {
	if pinned != DialectNone {
		return pinned
	}
	return DialectOf(target)
}

// Dialects are the languages that are understood, each once, in the order of the table.
func Dialects() []Dialect {
	var out []Dialect
	for _, r := range routes {
		if !slices.Contains(out, r.lang.name) {
			out = append(out, r.lang.name)
		}
	}
	return out
}

// languageFor is the pinned language, else that of the path.
func languageFor(info Info) *language {
	for _, r := range routes {
		if info.Dialect != DialectNone && r.lang.name == info.Dialect {
			return r.lang
		}
	}
	return languageOf(info.Path)
}

func languageOf(target string) *language {
	return languageIn(target, func(*language) bool { return true })
}

// languageIn is the first language of a request target that will do.
func languageIn(target string, will func(*language) bool) *language {
	path := pathOf(target)
	for _, r := range routes {
		if endsWith(path, r.suffix) && will(r.lang) {
			return r.lang
		}
	}
	return nil
}

// pathOf is the path of a request target without the slashes around it. A colon may be escaped: some clients do so
// before the method of Gemini.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok {
		path = rest
	}
	if strings.Contains(path, "%3") {
		path = strings.NewReplacer("%3A", ":", "%3a", ":").Replace(path)
	}
	return strings.Trim(path, "/")
}

// endsWith compares the segments of a path with those of a suffix, from the last one back.
func endsWith(path, suffix string) bool {
	for {
		p, s := strings.LastIndexByte(path, '/'), strings.LastIndexByte(suffix, '/')
		segment, want := path[p+1:], suffix[s+1:]
		if method, starred := strings.CutPrefix(want, "*"); segment != want && !(starred && strings.HasSuffix(segment, method)) {
			return false
		}
		if s < 0 || p < 0 {
			return s < 0
		}
		path, suffix = path[:p], suffix[:s]
	}
}
