package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJSONKeepsNumberText(t *testing.T) {
	in := `[1,1.0,1e0,1E+00,-0,-0.0,0.70,9007199254740993,1e400,123456789012345678901234567890]`
	got, err := JSON([]byte(" " + strings.ReplaceAll(in, ",", " ,\n") + "\t"))
	if err != nil || string(got) != in {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestJSONRefuses(t *testing.T) {
	for in, want := range map[string]error{
		"": ErrSyntax, " ": ErrSyntax, "{": ErrSyntax, "[": ErrSyntax, "[1,]": ErrSyntax, `{"a":1,}`: ErrSyntax,
		`{,"a":1}`: ErrSyntax, `{"a"}`: ErrSyntax, `{"a" 1}`: ErrSyntax, `{"a":}`: ErrSyntax, `{a:1}`: ErrSyntax, "[1 2]": ErrSyntax,
		`{"a":1 "b":2}`: ErrSyntax, "nul": ErrSyntax, "NaN": ErrSyntax, "Infinity": ErrSyntax, "1 2": ErrSyntax, "{}x": ErrSyntax,
		"01": ErrSyntax, "-": ErrSyntax, "1.": ErrSyntax, ".5": ErrSyntax, "1e": ErrSyntax, "1e+": ErrSyntax, "+1": ErrSyntax, "-01": ErrSyntax,
		`"`: ErrSyntax, `"a`: ErrSyntax, "\"a\nb\"": ErrSyntax, `"\x"`: ErrSyntax, `"\`: ErrSyntax, `"\u12"`: ErrSyntax, `"\u12g4"`: ErrSyntax,
		"\ufeff{}":                      ErrSyntax,
		"\"\xff\"":                      ErrUTF8,
		"\"\xed\xa0\x80\"":              ErrUTF8,
		"{\"\xc3\":1}":                  ErrUTF8,
		`"\ud800"`:                      ErrSurrogate,
		`"\ud800x"`:                     ErrSurrogate,
		`"\udc00\ud800"`:                ErrSurrogate,
		`"\ud800\u0041"`:                ErrSurrogate,
		`{"a":1,"a":1}`:                 ErrDuplicate,
		`{"a":1,"\u0061":2}`:            ErrDuplicate,
		`[{"x":{"b":1,"a":2,"b":3}}]`:   ErrDuplicate,
		strings.Repeat("[", MaxDepth+2): ErrDepth,
		strings.Repeat(`{"a":`, 1<<20):  ErrDepth,
	} {
		if got, err := JSON([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%.40q: got %.40s, %v, want %v", in, got, err, want)
		}
	}
	if _, err := Digest([]byte("[" + strings.Repeat("9", maxIntDigits+1) + "]")); !errors.Is(err, ErrNumber) {
		t.Errorf("integer beyond Python's limit: %v", err)
	}
	if _, err := Digest([]byte(`{"a":1,"a":1}`)); !errors.Is(err, ErrDuplicate) {
		t.Errorf("digest of duplicate keys: %v", err)
	}
	deepest := strings.Repeat("[", MaxDepth) + "1" + strings.Repeat("]", MaxDepth)
	if got, err := JSON([]byte(deepest)); err != nil || string(got) != deepest {
		t.Errorf("nesting of %d: %v", MaxDepth, err)
	}
}

// TestJSONDistinguishes holds that texts of different meaning never meet.
func TestJSONDistinguishes(t *testing.T) {
	seen := map[string]string{}
	for _, in := range []string{
		`{"a":1}`, `{"a":"1"}`, `{"a":1.0}`, `{"a":null}`, `{}`, `{"a":[1,2]}`, `{"a":[2,1]}`, `{"a":true}`, `{"A":1}`, `[]`, `[{}]`,
		`""`, `" "`, `null`, `"null"`, "\"\u00e9\"", "\"e\u0301\"", `"\u0000"`, `"0"`, `{"a":{"b":1}}`, `{"a":{},"b":1}`, `{"":1}`, `"\\n"`, `"\n"`,
	} {
		got, err := JSON([]byte(in))
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if other, ok := seen[string(got)]; ok {
			t.Errorf("%s and %s have one form %s", in, other, got)
		}
		seen[string(got)] = in
	}
}

// shuffle writes the JSON text again with members in another order, white space and escapes, and the same meaning.
func shuffle(r *rand.Rand, text []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	var out bytes.Buffer
	writeShuffled(r, &out, v)
	return out.Bytes()
}

func writeShuffled(r *rand.Rand, out *bytes.Buffer, v any) {
	blank := func() { out.WriteString([]string{"", " ", "\n\t", "\r\n"}[r.IntN(4)]) }
	blank()
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		out.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				out.WriteByte(',')
			}
			writeShuffled(r, out, k)
			out.WriteByte(':')
			writeShuffled(r, out, v[k])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			writeShuffled(r, out, e)
		}
		out.WriteByte(']')
	case json.Number:
		out.WriteString(v.String())
	default:
		b, _ := json.Marshal(v) // escapes < > & and U+2028, which is what is wanted here
		out.Write(b)
	}
	blank()
}

// FuzzJSON holds: the canonical form is a fixed point, has the meaning of its input, and does not depend on member
// order, white space or escapes.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"b":[1,2.50,{"d":null,"c":true}],"a":"\u00e9\ud83d\ude00<&>"}`, `[]`, `{"\"":1,"!":2,"\\":3,"\u0001":4,"a":{"z":0,"y":-1e-7}}`,
		`"\u2028"`, ` 12e+5 `, `{"a":{"a":{"a":[{"c":1,"b":2}]}}}`, "{\"\u007f\":\"\u0000\"}",
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		form, err := JSON(in)
		if err != nil {
			if _, err := Digest(in); err == nil {
				t.Fatalf("%q has a digest but no canonical form", in)
			}
			return
		}
		if again, err := JSON(form); err != nil || !bytes.Equal(again, form) {
			t.Fatalf("%q: form %q has form %q, %v", in, form, again, err)
		}
		if !json.Valid(form) {
			t.Fatalf("%q: form %q is not JSON", in, form)
		}
		if d := cmp.Diff(decode(t, in), decode(t, form)); d != "" {
			t.Fatalf("%q: form %q means something else: %s", in, form, d)
		}
		other := shuffle(rand.New(rand.NewPCG(seed, 1)), in)
		if got, err := JSON(other); err != nil || !bytes.Equal(got, form) {
			t.Fatalf("%q written as %q: form %q, %v, want %q", in, other, got, err, form)
		}
	})
}

func decode(t *testing.T, b []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return v
}
