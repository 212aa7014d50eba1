package engines

import (
	"regexp"
	"strings"
)

// nameTypes find a quantization in the name of a model or file, the most telling first. A name part is bounded by
// anything but letters and digits.
var nameTypes = []*regexp.Regexp{
	regexp.MustCompile(`UD[-_](?:IQ|TQ|Q)[0-9]+(?:_[A-Z0-9]+)*`),
	regexp.MustCompile(`(?:IQ|TQ|Q)[0-9]+_[A-Z0-9]+(?:_[A-Z0-9]+)*`),
	regexp.MustCompile(`MXFP[0-9]+|NVFP[0-9]+`),
	regexp.MustCompile(`EXL[23]`),
	regexp.MustCompile(`AUTOROUND`),
	regexp.MustCompile(`AWQ|GPTQ|HQQ|AQLM|BNB`),
	regexp.MustCompile(`BF16|FP16|F16|FP32|F32|FP8|FP4|INT8|INT4`),
	regexp.MustCompile(`[2-8]BIT`),
}

// NameQuantization is the quantization that the name of a model or its file tells: UD-Q4_K_XL, Q8_0, EXL3, FP8 ... ok is
// false when it tells none; "GGUF" and "MLX" are formats and tell none. It is what the name says, which an alias can
// get wrong.
func NameQuantization(name string) (q string, ok bool) {
	upper := strings.ToUpper(name)
	for _, re := range nameTypes {
		for _, span := range re.FindAllStringIndex(upper, -1) {
			if bounded(upper, span[0], span[1]) {
				return spelled(upper[span[0]:span[1]]), true
			}
		}
	}
	return "", false
}

// bounded reports whether the part of s is a word of its own. A part that goes on would be another one.
func bounded(s string, from, to int) bool {
	return (from == 0 || !wordByte(s[from-1])) && (to == len(s) || !wordByte(s[to]))
}

func wordByte(c byte) bool { return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

// spelled is the usual spelling of a type that a name told.
func spelled(q string) string {
	switch q {
	case "F16":
		return "FP16"
	case "F32":
		return "FP32"
	case "AUTOROUND":
		return "AutoRound"
	}
	return strings.Replace(q, "UD_", "UD-", 1)
}

var (
	sizedType = regexp.MustCompile(`^((?:IQ|TQ|Q)[0-9]+(?:_[A-Z0-9]+)*) - (SMALL|MEDIUM|LARGE)$`)
	bitsType  = regexp.MustCompile(`^((?:IQ|TQ|Q)[0-9]+(?:_[A-Z0-9]+)*) - [0-9.]+ BPW(?: .*)?$`)
	plainType = regexp.MustCompile(`^(?:(?:UD-)?(?:IQ|TQ|Q)[0-9]+(?:_[A-Z0-9]+)*|MXFP[0-9]+|NVFP[0-9]+|BF16|F16|FP16|F32|FP32|FP8|FP4|INT8|INT4|AWQ|GPTQ|EXL[23]|[0-9]BIT|[A-Z][A-Z0-9]*(?:[-_][A-Z0-9]+)*)$`)
)

// oddTypes are types whose statement does not follow from the name that files of them bear.
var oddTypes = map[string]string{
	"ALL F32":              "FP32",
	"Q2_K - MEDIUM":        "Q2_K",
	"IQ3_S MIX - 3.66 BPW": "IQ3_M",
	"MXFP4 MOE":            "MXFP4_MOE",
}

// NormalQuantization brings the type that a server or file states into the spelling of names: "Q4_K - Medium" is Q4_K_M,
// "IQ2_XXS - 2.0625 bpw" is IQ2_XXS, F16 is FP16. ok is false for a guessed or unknown type.
func NormalQuantization(stated string) (q string, ok bool) {
	s := strings.ToUpper(strings.TrimSpace(stated))
	switch s {
	case "", "NONE", "NULL", "N/A", "AUTO":
		return "", false
	}
	if strings.Contains(s, "GUESS") || strings.Contains(s, "UNKNOWN") {
		return "", false
	}
	s = strings.TrimPrefix(s, "MOSTLY ")
	if q, ok := oddTypes[s]; ok {
		return q, true
	}
	if m := sizedType.FindStringSubmatch(s); m != nil {
		return m[1] + "_" + m[2][:1], true
	}
	if m := bitsType.FindStringSubmatch(s); m != nil {
		return m[1], true
	}
	if plainType.MatchString(s) {
		return spelled(s), true
	}
	return "", false
}

func normalQuantization(v any) *string {
	s := text(v)
	if s == nil {
		return nil
	}
	if q, ok := NormalQuantization(*s); ok {
		return &q
	}
	return nil
}
