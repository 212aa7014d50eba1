package tinymodel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// small is a model whose file can be looked at whole.
func small() Config {
	return Config{Seed: 7, Words: 20, Width: 16, Layers: 2, Heads: 2, Hidden: 24, Context: 64}
}

func file(t *testing.T, c Config) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// reader reads a file by the format's own rules, knowing nothing of the writer.
type reader struct {
	t    *testing.T
	rest []byte
}

func (r *reader) take(n int) []byte {
	r.t.Helper()
	if n > len(r.rest) {
		r.t.Fatalf("file ends %d bytes early", n-len(r.rest))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) str() string { return string(r.take(int(r.u64()))) }

func (r *reader) value(kind uint32) any {
	switch kind {
	case typeU32:
		return r.u32()
	case typeI32:
		return int32(r.u32())
	case typeF32:
		return math.Float32frombits(r.u32())
	case typeBool:
		return r.take(1)[0] == 1
	case typeString:
		return r.str()
	case typeArray:
		inner, n := r.u32(), r.u64()
		list := make([]any, n)
		for i := range list {
			list[i] = r.value(inner)
		}
		return list
	}
	r.t.Fatalf("value of kind %d", kind)
	return nil
}

type info struct {
	dims   []uint64
	kind   uint32
	offset uint64
}

// parse gives metadata, tensors and the data behind them.
func parse(t *testing.T, b []byte) (map[string]any, map[string]info, []byte) {
	t.Helper()
	r := &reader{t, b}
	if string(r.take(4)) != "GGUF" || r.u32() != 3 {
		t.Fatal("not a file of version 3")
	}
	tensors, pairs := r.u64(), r.u64()
	meta := map[string]any{}
	for range pairs {
		key := r.str()
		meta[key] = r.value(r.u32())
	}
	infos := map[string]info{}
	for range tensors {
		name := r.str()
		var i info
		for range r.u32() {
			i.dims = append(i.dims, r.u64())
		}
		i.kind, i.offset = r.u32(), r.u64()
		infos[name] = i
	}
	r.take(padded(len(b)-len(r.rest)) - (len(b) - len(r.rest)))
	return meta, infos, r.rest
}

func (i info) size() uint64 {
	n := uint64(4)
	if i.kind == tensorF16 {
		n = 2
	}
	for _, d := range i.dims {
		n *= d
	}
	return n
}

// matrix decodes a 16-bit tensor.
func (i info) matrix(data []byte) [][]float64 {
	cols := int(i.dims[0])
	m := make([][]float64, i.dims[1])
	for r := range m {
		m[r] = make([]float64, cols)
		for c := range m[r] {
			at := int(i.offset) + 2*(r*cols+c)
			m[r][c] = fromHalf(binary.LittleEndian.Uint16(data[at:]))
		}
	}
	return m
}

// fromHalf decodes a normal 16-bit number or zero.
func fromHalf(h uint16) float64 {
	if h&0x7fff == 0 {
		return 0
	}
	v := (1 + float64(h&0x3ff)/1024) * math.Pow(2, float64(h>>10&31)-15)
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

func TestStructure(t *testing.T) {
	c := small()
	meta, infos, data := parse(t, file(t, c))
	for key, want := range map[string]any{
		"general.architecture": "llama", "llama.block_count": uint32(2), "llama.embedding_length": uint32(16),
		"llama.attention.head_count": uint32(2), "llama.rope.dimension_count": uint32(8), "llama.context_length": uint32(64),
		"tokenizer.ggml.model": "llama", "tokenizer.chat_template": ChatTemplate,
	} {
		if meta[key] != want {
			t.Errorf("%s is %v, want %v", key, meta[key], want)
		}
	}
	vocab := uint64(len(meta["tokenizer.ggml.tokens"].([]any)))
	if meta["llama.vocab_size"] != uint32(vocab) || len(meta["tokenizer.ggml.scores"].([]any)) != int(vocab) || len(meta["tokenizer.ggml.token_type"].([]any)) != int(vocab) {
		t.Error("lists of tokens, scores and kinds differ in length")
	}
	shapes := map[string][]uint64{
		"token_embd.weight": {16, vocab}, "output.weight": {16, vocab}, "output_norm.weight": {16},
		"blk.1.attn_q.weight": {16, 16}, "blk.1.ffn_up.weight": {16, 24}, "blk.1.ffn_down.weight": {24, 16}, "blk.0.ffn_norm.weight": {16},
	}
	for name, want := range shapes {
		if got := infos[name].dims; len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if len(infos) != 3+2*9 {
		t.Errorf("%d tensors", len(infos))
	}
	total := uint64(0)
	for name, i := range infos {
		if i.offset%alignment != 0 || i.offset+i.size() > uint64(len(data)) {
			t.Errorf("%s: %+v lies outside %d bytes or off the grid", name, i, len(data))
		}
		total += uint64(padded(int(i.size())))
	}
	if total != uint64(len(data)) {
		t.Errorf("%d bytes of data, want %d", len(data), total)
	}
}

// TestConstantChannel holds what keeps bytes and control tokens away.
func TestConstantChannel(t *testing.T) {
	meta, infos, data := parse(t, file(t, small()))
	kinds := meta["tokenizer.ggml.token_type"].([]any)
	for r, row := range infos["output.weight"].matrix(data) {
		want := 0.0
		if kinds[r] != kindNormal {
			want = bias
		}
		if row[0] != want {
			t.Fatalf("token %d has bias %v, want %v", r, row[0], want)
		}
	}
	for _, row := range infos["token_embd.weight"].matrix(data) {
		if row[0] != 1 {
			t.Fatalf("channel 0 starts at %v", row[0])
		}
	}
	for _, name := range []string{"blk.0.attn_output.weight", "blk.1.attn_output.weight", "blk.0.ffn_down.weight", "blk.1.ffn_down.weight"} {
		m := infos[name].matrix(data)
		for _, v := range m[0] {
			if v != 0 {
				t.Fatalf("%s writes to channel 0", name)
			}
		}
		if m[1][0] == 0 && m[1][1] == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func TestSeedDecidesBytes(t *testing.T) {
	c := small()
	a := file(t, c)
	if !bytes.Equal(a, file(t, c)) {
		t.Error("equal configurations give different files")
	}
	c.Seed++
	if bytes.Equal(a, file(t, c)) {
		t.Error("another seed gives the same file")
	}
}

func TestTinyIsAFewMegabytes(t *testing.T) {
	if n := len(file(t, Tiny())); n < 2<<20 || n > 8<<20 {
		t.Errorf("%d bytes", n)
	}
}

func TestVocabularyHasEveryPrefix(t *testing.T) {
	v := newVocabulary(rand.New(rand.NewPCG(1, 0)), 50)
	if v.tokens[idEOS] != "<|im_end|>" || v.kinds[idEOS] != kindControl || v.kinds[idUnknown] != kindControl && v.kinds[idUnknown] != kindUnknown {
		t.Error("special tokens are not at their ids")
	}
	bytesSeen := 0
	for i, token := range v.tokens {
		if v.kinds[i] == kindByte {
			bytesSeen++
		}
		runes := []rune(token)
		if v.kinds[i] != kindNormal || len(runes) < 2 {
			continue
		}
		prefix := string(runes[:len(runes)-1])
		if _, ok := v.ids[prefix]; !ok {
			t.Errorf("token %q: its prefix %q is none", token, prefix)
		}
	}
	if bytesSeen != 256 || v.ids[blank] == 0 {
		t.Errorf("%d byte tokens", bytesSeen)
	}
}

func TestFloat16(t *testing.T) {
	for v, want := range map[float32]uint16{0: 0, 1: 0x3c00, -2: 0xc000, 0.5: 0x3800, 65504: 0x7bff, 1e9: 0x7bff, -1e9: 0xfbff, 1e-9: 0, -60: 0xd380} {
		if got := float16(v); got != want {
			t.Errorf("float16(%v) = %#x, want %#x", v, got, want)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	for _, c := range []Config{{}, {Words: 1, Width: 10, Layers: 1, Heads: 3, Hidden: 1, Context: 1}} {
		if err := Write(&bytes.Buffer{}, c); err == nil || !strings.Contains(err.Error(), "shape") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := Write(full{}, Tiny()); !errors.Is(err, errFull) {
		t.Errorf("full disk: %v", err)
	}
	if err := writeFile(&bytes.Buffer{}, []pair{{"k", 1.5}}, nil); err == nil {
		t.Error("a value of no known type was written")
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
