package tinymodel

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// Config is the shape of a model.
type Config struct {
	Seed    uint64
	Words   int // words the vocabulary is built from; each brings all its prefixes
	Width   int // of the residual stream
	Layers  int
	Heads   int
	Hidden  int // of the feed-forward part
	Context int // tokens
}

// Tiny is a model of about 5 MB that decodes in well under a millisecond a token.
func Tiny() Config {
	return Config{Seed: 1, Words: 900, Width: 128, Layers: 4, Heads: 4, Hidden: 352, Context: 4096}
}

// bias is what the output matrix adds to tokens that must never come.
const bias = -60

// Write writes the model.
func Write(w io.Writer, c Config) error {
	if c.Words < 1 || c.Width < 2 || c.Layers < 1 || c.Heads < 1 || c.Width%c.Heads != 0 || c.Hidden < 1 || c.Context < 1 {
		return fmt.Errorf("write model: shape %+v cannot be", c)
	}
	v := newVocabulary(rand.New(rand.NewPCG(c.Seed, 0)), c.Words)
	return writeFile(w, metadata(c, v), tensors(c, v))
}

func metadata(c Config, v *vocabulary) []pair {
	n := func(i int) uint32 { return uint32(i) }
	return []pair{
		{"general.architecture", "llama"},
		{"general.name", "tiny random model"},
		{"general.alignment", n(alignment)},
		{"general.file_type", n(1)}, // mostly 16 bit
		{"llama.context_length", n(c.Context)},
		{"llama.embedding_length", n(c.Width)},
		{"llama.block_count", n(c.Layers)},
		{"llama.feed_forward_length", n(c.Hidden)},
		{"llama.attention.head_count", n(c.Heads)},
		{"llama.attention.head_count_kv", n(c.Heads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", n(c.Width / c.Heads)},
		{"llama.rope.freq_base", float32(10000)},
		{"llama.vocab_size", n(len(v.tokens))},
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.tokens", v.tokens},
		{"tokenizer.ggml.scores", v.scores},
		{"tokenizer.ggml.token_type", v.kinds},
		{"tokenizer.ggml.unknown_token_id", n(idUnknown)},
		{"tokenizer.ggml.bos_token_id", n(idBOS)},
		{"tokenizer.ggml.eos_token_id", n(idEOS)},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.ggml.add_eos_token", false},
		{"tokenizer.ggml.add_space_prefix", false},
		{"tokenizer.chat_template", ChatTemplate},
	}
}

// tensors are the weights. Each has a generator of its own, so that its numbers do not hang on the order of writing.
func tensors(c Config, v *vocabulary) []tensor {
	b := builder{c: c}
	b.matrix("token_embd.weight", len(v.tokens), c.Width, 1, func(_, col int, random float32) float32 {
		if col == 0 {
			return 1 // the constant channel
		}
		return random
	})
	for i := range c.Layers {
		b.block(fmt.Sprintf("blk.%d.", i))
	}
	b.ones("output_norm.weight")
	// Small enough for a spread of likely tokens, large enough that the context matters.
	b.matrix("output.weight", len(v.tokens), c.Width, 0.2, func(row, col int, random float32) float32 {
		switch {
		case col != 0:
			return random
		case v.kinds[row] != kindNormal:
			return bias
		}
		return 0
	})
	return b.list
}

// builder collects tensors.
type builder struct {
	c    Config
	list []tensor
}

// block adds one layer. What it writes to the residual stream leaves channel 0 alone.
func (b *builder) block(name string) {
	width, hidden := b.c.Width, b.c.Hidden
	in := 1 / math.Sqrt(float64(width))
	asIs := func(_, _ int, random float32) float32 { return random }
	sparesConstant := func(row, _ int, random float32) float32 {
		if row == 0 {
			return 0
		}
		return random
	}
	b.ones(name + "attn_norm.weight")
	b.matrix(name+"attn_q.weight", width, width, in, asIs)
	b.matrix(name+"attn_k.weight", width, width, in, asIs)
	b.matrix(name+"attn_v.weight", width, width, in, asIs)
	b.matrix(name+"attn_output.weight", width, width, in, sparesConstant)
	b.ones(name + "ffn_norm.weight")
	b.matrix(name+"ffn_gate.weight", hidden, width, in, asIs)
	b.matrix(name+"ffn_up.weight", hidden, width, in, asIs)
	b.matrix(name+"ffn_down.weight", width, hidden, 1/math.Sqrt(float64(hidden)), sparesConstant)
}

func (b *builder) ones(name string) {
	b.list = append(b.list, tensor{name: name, cols: b.c.Width, at: func(_, _ int) float32 { return 1 }})
}

// matrix adds a matrix of normally distributed numbers with a standard deviation, each passed through shape. It must be
// read once, in order.
func (b *builder) matrix(name string, rows, cols int, deviation float64, shape func(row, col int, random float32) float32) {
	rng := rand.New(rand.NewPCG(b.c.Seed, uint64(len(b.list))+1))
	b.list = append(b.list, tensor{name: name, rows: rows, cols: cols, at: func(row, col int) float32 {
		return shape(row, col, float32(rng.NormFloat64()*deviation))
	}})
}
