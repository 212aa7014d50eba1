package matrix

import (
	"slices"
	"strconv"
	"strings"
)

// MaxDegree is the most devices, and MaxConcurrency the most requests at a time, that a config may ask for.
const (
	MaxDegree      = 1024
	MaxConcurrency = 4096
)

// Lists of the axes. Each is written as a list or, in flags, as words with commas between them; repeats are left out and
// the order is kept.

// switchList is off, on or both.
type switchList []bool

func (l *switchList) bindNode(b *binder, n *node, key string) {
	bindWords(b, n, key, func(item *node, word string) {
		switch strings.ToLower(word) {
		case "off", "0", "false", "no", "none":
			*l = append(*l, false)
		case "on", "1", "true", "yes", "mtp":
			*l = append(*l, true)
		case "both":
			*l = append(*l, false, true)
		default:
			b.problem(item, key, "%q is none of off, on, both", word)
		}
	})
	var out switchList
	for _, on := range *l {
		if !slices.Contains(out, on) {
			out = append(out, on)
		}
	}
	*l = out
}

// countList are numbers from 1.
type countList []int

func (l *countList) bindNode(b *binder, n *node, key string) {
	most := MaxConcurrency
	if strings.HasSuffix(key, "tp_degrees") {
		most = MaxDegree
	}
	*l = uniq(bindNumbers(b, n, key, 1, most))
}

// sizeList are numbers from 0.
type sizeList []int

func (l *sizeList) bindNode(b *binder, n *node, key string) {
	*l = uniq(bindNumbers(b, n, key, 0, MaxConcurrency))
}

// layerList are numbers of layers: off, a number, or all.
type layerList []int

func (l *layerList) bindNode(b *binder, n *node, key string) {
	bindWords(b, n, key, func(item *node, word string) {
		layers, err := strconv.Atoi(word)
		switch {
		case strings.EqualFold(word, "off"):
			layers = 0
		case strings.EqualFold(word, "all"):
			layers = AllLayers
		case err != nil || layers < 0:
			b.problem(item, key, "%q is not off, 0, all or a number of layers", word)
			return
		}
		*l = append(*l, layers)
	})
	*l = uniq(*l)
}

// wordList are ids that may be written as numbers.
type wordList []string

func (l *wordList) bindNode(b *binder, n *node, key string) {
	bindWords(b, n, key, func(_ *node, word string) { *l = append(*l, word) })
	*l = uniq(*l)
}

// bindWords reads a list whose items may be texts, numbers or truths.
func bindWords(b *binder, n *node, key string, add func(item *node, word string)) {
	items, ok := listOf(n)
	if !ok {
		b.problem(n, key, "it is %s and has to be a list", n.kind)
		return
	}
	for _, item := range items {
		if item.kind != stringNode && item.kind != numberNode && item.kind != boolNode {
			b.problem(item, key, "%s cannot stand in this list", item.kind)
			continue
		}
		add(item, strings.TrimSpace(item.text))
	}
	b.note(n, key, n.value())
}

func bindNumbers(b *binder, n *node, key string, least, most int) []int {
	var out []int
	bindWords(b, n, key, func(item *node, word string) {
		v, err := strconv.Atoi(word)
		if err != nil || v < least || v > most {
			b.problem(item, key, "%q is not a whole number from %d to %d", word, least, most)
			return
		}
		out = append(out, v)
	})
	return out
}

// Methods of speculative decoding.
const (
	MethodNone   = "none"
	MethodMTP    = "draft-mtp"
	MethodDFlash = "draft-dflash"
	MethodSimple = "draft-simple"
	MethodEagle  = "draft-eagle3"
	MethodNGram  = "ngram-simple"
	MethodNGramM = "ngram-mod"
)

// Methods lists them.
func Methods() []string {
	return []string{MethodNone, MethodMTP, MethodDFlash, MethodSimple, MethodEagle, MethodNGram, MethodNGramM}
}

// needsDrafter are the methods whose drafts a model of its own makes.
func needsDrafter(method string) bool {
	return method == MethodDFlash || method == MethodSimple || method == MethodEagle
}
