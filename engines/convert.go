package engines

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// conversions say how a value of an engine's document becomes one of a deployment. A conversion that cannot tell gives
// nil, typed or not.
var conversions = map[string]func(rd Read, v any) any{
	"":                   func(_ Read, v any) any { return text(v) },
	"count":              func(_ Read, v any) any { return count(v) },
	"quantization":       func(_ Read, v any) any { return normalQuantization(v) },
	"device":             func(_ Read, v any) any { return deviceName(v) },
	"root":               func(_ Read, v any) any { return mapText(v, rootName) },
	"base_name":          func(_ Read, v any) any { return mapText(v, baseName) },
	"after_name":         func(_ Read, v any) any { return mapText(v, afterName) },
	"build_number":       func(_ Read, v any) any { return buildNumber(v) },
	"drafting":           func(_ Read, v any) any { return drafting(v) },
	"draft_method":       func(_ Read, v any) any { return draftMethod(v) },
	"vram_device":        func(_ Read, v any) any { return vramDevice(v) },
	"blob_digest":        func(_ Read, v any) any { return blobDigest(v) },
	"only_text":          func(_ Read, v any) any { return onlyText(v) },
	"counter_above_zero": func(_ Read, v any) any { return moved(v) },
	"counter_method":     countedMethod,
}

func convert(rd Read, v any) any { return conversions[rd.As](rd, v) }

// transforms are the names of the conversions.
func transforms() []string { return slices.Collect(maps.Keys(conversions)) }

func mapText(v any, f func(string) string) *string {
	s := text(v)
	if s == nil {
		return nil
	}
	return text(f(*s))
}

// afterName drops the product's name before a version: "Strata 0.9.1" is 0.9.1.
func afterName(s string) string {
	_, rest, ok := strings.Cut(s, " ")
	if !ok {
		return ""
	}
	return rest
}

func buildNumber(v any) *string {
	n := integer(v)
	if n == nil {
		return nil
	}
	return pointer("b" + strconv.FormatInt(*n, 10))
}

// noDrafts are the ways of engines to say that nothing proposes drafts.
var noDrafts = []string{"none", "off", "disabled", "false", ""}

// drafting is false where an engine says that it has no drafting set up, and null says so too.
func drafting(v any) *bool {
	switch s := v.(type) {
	case nil:
		return pointer(false)
	case string:
		return pointer(!slices.Contains(noDrafts, strings.ToLower(strings.TrimSpace(s))))
	}
	return nil
}

func draftMethod(v any) *string {
	if on := drafting(v); on == nil || !*on {
		return nil
	}
	return mapText(v, strings.ToLower)
}

// moved is true for a counter above 0. One at 0 says nothing: the engine may have drafted nothing yet.
func moved(v any) *bool {
	if n, ok := v.(float64); ok && n > 0 {
		return pointer(true)
	}
	return nil
}

// countedMethod is the only method an engine has, once its counter moved.
func countedMethod(rd Read, v any) any {
	if moved(v) == nil {
		return nil
	}
	return text(rd.Value)
}

// counter is the sum of a metric over its labels. ok is false when the text has none.
func counter(text, name string) (sum any, ok bool) {
	total := 0.0
	for line := range strings.Lines(text) {
		rest, mine := strings.CutPrefix(line, name)
		if !mine || rest == "" || !strings.ContainsAny(rest[:1], "{ \t") {
			continue
		}
		if i := strings.LastIndexByte(rest, '}'); i >= 0 {
			rest = rest[i+1:]
		}
		words := strings.Fields(rest)
		if len(words) == 0 {
			continue
		}
		n, err := strconv.ParseFloat(words[0], 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			continue
		}
		total, ok = total+n, true
	}
	return total, ok
}

var blobPattern = regexp.MustCompile(`(?m)^FROM \S*sha256[-:]([0-9a-f]{64})\s*$`)

// blobDigest is the digest of the one weights file that an Ollama model file names. With several, as adapters and split
// models have, none of them is the weights.
func blobDigest(v any) *string {
	s, _ := v.(string)
	found := blobPattern.FindAllStringSubmatch(s, -1)
	if len(found) != 1 {
		return nil
	}
	return pointer("sha256:" + found[0][1])
}

// onlyText is the one text of a list.
func onlyText(v any) *string {
	if list, ok := stringArray(v); ok && len(list) == 1 {
		return text(list[0])
	}
	return nil
}

// vramDevice reads where Ollama holds a model: nothing of it in GPU memory is the CPU, a part of it both.
func vramDevice(v any) *string {
	entry, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	vram, size := bytesOf(entry["size_vram"]), bytesOf(entry["size"])
	switch {
	case vram == nil:
		return nil
	case *vram == 0:
		return pointer("cpu")
	case size != nil && *vram < *size:
		return pointer("gpu+cpu")
	}
	return pointer("gpu")
}

func bytesOf(v any) *int64 {
	if _, ok := v.(json.Number); !ok {
		return nil
	}
	if n := integer(v); n != nil && *n >= 0 {
		return n
	}
	return nil
}
