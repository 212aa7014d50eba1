package tinymodel

import (
	"fmt"
	"math/rand/v2"
)

// Kinds of token in the file format.
const (
	kindNormal  = int32(1)
	kindUnknown = int32(2)
	kindControl = int32(3)
	kindByte    = int32(6)
)

// Ids of the special tokens.
const (
	idUnknown = 0
	idBOS     = 1
	idEOS     = 2
)

// ChatTemplate is the template of the file, in the engine's template language for GGUF metadata.
const ChatTemplate = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}" +
	"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// blank stands for a space in this kind of vocabulary.
const blank = "\u2581"

// vocabulary is the list of tokens. Every word comes with all its prefixes, since the tokenizer builds words up by
// joining neighbors that are tokens together.
type vocabulary struct {
	tokens []string
	scores []float32
	kinds  []int32
	ids    map[string]int
}

// newVocabulary makes a vocabulary with about words words.
func newVocabulary(rng *rand.Rand, words int) *vocabulary {
	v := &vocabulary{ids: make(map[string]int)}
	v.add("<unk>", kindUnknown)
	v.add("<s>", kindControl)
	v.add("<|im_end|>", kindControl)
	v.add("<|im_start|>", kindControl)
	for b := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", b), kindByte)
	}
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'\"()-+*/=_@#%&<>[]{}|\\äöüßéñçжя中文日本" {
		v.add(string(c), kindNormal)
	}
	v.add(blank, kindNormal)
	for range words {
		word := newWord(rng)
		for _, start := range []string{blank, ""} {
			for end := 1; end <= len(word); end++ { // words are ASCII
				v.add(start+word[:end], kindNormal)
			}
		}
	}
	return v
}

// newWord is a word of one to three syllables.
func newWord(rng *rand.Rand) string {
	const consonants, vowels, ends = "bcdfghklmnprstvz", "aeiou", "nrslt"
	word := ""
	for range 1 + rng.IntN(3) {
		word += string(consonants[rng.IntN(len(consonants))])
		if rng.IntN(4) == 0 {
			word += "r"
		}
		word += string(vowels[rng.IntN(len(vowels))])
		if rng.IntN(3) == 0 {
			word += string(ends[rng.IntN(len(ends))])
		}
	}
	return word
}

// add appends a token once. Earlier tokens have the better score.
func (v *vocabulary) add(token string, kind int32) {
	if _, known := v.ids[token]; known {
		return
	}
	score := float32(0)
	if kind == kindNormal {
		score = -float32(len(v.tokens))
	}
	v.ids[token] = len(v.tokens)
	v.tokens = append(v.tokens, token)
	v.scores = append(v.scores, score)
	v.kinds = append(v.kinds, kind)
}
