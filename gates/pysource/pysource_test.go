package pysource

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vector is a source and what CPython's ast and symtable make of it. Those with since are of a grammar that is newer
// than the interpreter they were made with (3.11), and were labelled by hand.
type vector struct {
	Source    string
	Python    bool
	Since     string
	From      string // written, or mutant: a piece of the standard library with a token changed
	Functions []struct {
		Name       string
		Async      bool
		Parameters []parameter
		Reads      map[string]bool
	}
}

// parameter is name, kind, whether there is a default, and its value when that is an integer literal.
type parameter struct {
	name    string
	kind    ParamKind
	present bool
	value   *int64
}

func (p *parameter) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.name, &p.kind, &p.present, &p.value})
}

func vectors(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/cpython.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []vector
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		var v vector
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		out = append(out, v)
	}
	return out
}

func TestSourcesAsCPythonReadsThem(t *testing.T) {
	accepted, refused, functions, reads, newer := 0, 0, 0, 0, 0
	for _, v := range vectors(t) {
		m, err := Parse(v.Source)
		if (err == nil) != v.Python {
			t.Errorf("python %v, here %v:\n%s", v.Python, err, v.Source)
			continue
		}
		if v.Since != "" {
			newer++
		}
		if err != nil {
			refused++
			continue
		}
		accepted++
		for _, want := range v.Functions {
			functions++
			f, there := m.Function(want.Name)
			if !there || f.Async != want.Async || f.Name != want.Name {
				t.Errorf("%s: %+v, there %v, in\n%s", want.Name, f, there, v.Source)
				continue
			}
			var got []parameter
			for _, p := range f.Params {
				got = append(got, parameter{p.Name, p.Kind, p.Default, p.Integer})
			}
			if diff := cmp.Diff(want.Parameters, got, cmp.AllowUnexported(parameter{})); diff != "" && len(want.Parameters)+len(got) > 0 {
				t.Errorf("parameters of %s (-python +here):\n%s\n%s", want.Name, diff, v.Source)
			}
			for name, is := range want.Reads {
				reads++
				if f.Reads(name) != is {
					t.Errorf("%s reads %s: python %v, in\n%s", want.Name, name, is, v.Source)
				}
			}
		}
	}
	t.Logf("%d sources accepted, %d refused (%d of newer grammars), %d functions, %d reads", accepted, refused, newer, functions, reads)
	if accepted < 300 || refused < 300 || functions < 100 || reads < 100 || newer < 15 {
		t.Error("vectors are missing")
	}
}

// TestReadsInOrder holds what CPython's symbol table does not tell: a name that has another value by then is not read.
func TestReadsInOrder(t *testing.T) {
	for body, want := range map[string]bool{
		"return a":                                      true,
		"a = 1; return a":                               false,
		"a = a; return a":                               true,
		"a: int; return a":                              true,
		"a: int = 1; return a":                          false,
		"a += 1; return a":                              true,
		"del a; return a":                               false,
		"b = a = 1; return a":                           false,
		"a[0] = 1; return b":                            true,
		"import a; return a":                            false,
		"import b.a; return c":                          false,
		"from b import a; return a":                     false,
		"from b import c as a; return a":                false,
		"def a(): pass\n return a":                      false,
		"class a: pass\n return a":                      false,
		"def b(): return a\n a = 1":                     true,
		"if b: a = 1\n return a":                        true,
		"if b: a = 1\n else: a = 2\n return a":          false,
		"if b: a = 1\n elif c: a = 2\n return a":        true,
		"if b: a = 1\n elif a: pass":                    true,
		"while b: a = 1\n return a":                     true,
		"while b: pass\n else: print(a)":                true,
		"for a in b: print(a)":                          false,
		"for a in b: print(a)\n return a":               true,
		"for a in a: pass":                              true,
		"for b in c: print(a)":                          true,
		"for a in b: pass\n else: return a":             true,
		"with b as a: return a":                         false,
		"with b(a) as a: return a":                      true,
		"with b as c: a = 1\n return a":                 false,
		"try: a = b()\n except E: pass\n return a":      true,
		"try: pass\n except E as a: print(a)":           false,
		"try: pass\n except E: print(a)":                true,
		"try: pass\n finally: print(a)":                 true,
		"match b:\n  case a: return a":                  false,
		"match b:\n  case c: return a":                  true,
		"match b:\n  case [a, *_] if a: pass":           false,
		"match b:\n  case {'x': 1, **a}: return a":      false,
		"match a:\n  case _: pass":                      true,
		"return [a for a in b]":                         false,
		"return [c for c in a for a in c]":              true,
		"return [c for b in c for a in b if a]":         false,
		"return [c for b in c if a]":                    true,
		"class C: a = 1; b = a":                         false,
		"class C: b = a":                                true,
		"return lambda a=a: 1":                          true,
		"return lambda *a: a":                           false,
		"def b(a: a): pass":                             true,
		"global b; return a":                            true,
		"async def b(): return [a async for c in d]":    true,
		"def b():\n  def c():\n   nonlocal a; a = 1":    false,
		"def b():\n  def c():\n   nonlocal a; return a": true,
		"return f'{b:{a}}'":                             true,
		"return b.a(a=1)":                               false,
	} {
		m, err := Parse("def f(a, b=0):\n " + body + "\n")
		if err != nil {
			t.Errorf("%v in %s", err, body)
			continue
		}
		f, there := m.Function("f")
		if !there || f.Reads("a") != want {
			t.Errorf("reads a: want %v in\n%s", want, body)
		}
	}
}

func TestFunctionOfAName(t *testing.T) {
	const source = "def f(a): pass\nclass C:\n    def g(b): pass\n\nif x:\n    def f(c, d): pass\n\ndef h():\n    def i(): pass\n"
	m, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	if f, there := m.Function("f"); !there || len(f.Params) != 2 || f.Line != 6 {
		t.Errorf("%+v", f)
	}
	for _, name := range []string{"g", "i", "j", "C"} {
		if f, there := m.Function(name); there {
			t.Errorf("%s is %+v", name, f)
		}
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	for source, want := range map[string]string{
		"x = 1\ny = (2\n":                 "line 3: '(' was never closed",
		"x = 1\n\n# c\ny = = 2\n":         "line 4: = where an expression is expected",
		"def f():\nreturn 1\n":            "line 2: return where an indented block is expected",
		"if a:\n    b\n  c\n":             "line 3: the indentation matches no block around it",
		"x = 'a\n":                        "line 1: unterminated string",
		"x = \"\"\"a\nb\n":                "line 3: unterminated string",
		"x = f'{a'\n":                     "line 1: unterminated string",
		"x = 1 y = 2\n":                   "line 1: y where the end of the line is expected",
		"match a:\n    case b.: pass\n":   "line 2: : where a name is expected",
		"print 'a'\n":                     "line 1: a string where the end of the line is expected",
		"x\x00":                           "line 1: not the text of a source",
		"\xff":                            "line 1: not the text of a source",
		"def f(a=1, b): pass":             "line 1: a parameter without a default follows one with a default",
		"x = 1\n    y = 2\n":              "line 2: indentation where an expression is expected",
		"class A:\n    pass\n  \n\tx = 1": "line 4: the indentation matches no block around it",
	} {
		_, err := Parse(source)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if err.Error() != want {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
}

func TestBoundsOfSources(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   error
	}{
		"long":       {strings.Repeat("x = 1\n", 200_000), ErrTooLong},
		"not":        {strings.Repeat("not ", 3000) + "a", ErrTooDeep},
		"minus":      {strings.Repeat("-", 3000) + "a", ErrTooDeep},
		"conditions": {strings.Repeat("a if b else ", 3000) + "a", ErrTooDeep},
		"elif":       {"if a: pass\n" + strings.Repeat("elif a: pass\n", 3000), ErrTooDeep},
	} {
		if _, err := Parse(c.source); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for name, source := range map[string]string{
		"brackets": strings.Repeat("(", 300) + strings.Repeat(")", 300), "open": strings.Repeat("[", 1000),
		"fields": strings.Repeat("f'{", 300) + "1" + strings.Repeat("}'", 300),
	} {
		var syntax *SyntaxError
		if _, err := Parse(source); !errors.As(err, &syntax) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wide := "def f(a):\n    return " + strings.Repeat("b + ", 100_000) + "a\n"
	m, err := Parse(wide)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := m.Function("f"); !f.Reads("a") {
		t.Error("the end of a long sum is not looked at")
	}
}

// FuzzParse holds that no source crashes the parser, that reading it twice says the same, and that what is Python stays
// Python with a comment behind it and when its lines end otherwise.
func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.Source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		m, err := Parse(source)
		if _, again := Parse(source); (err == nil) != (again == nil) {
			t.Fatalf("%v, then %v", err, again)
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		if fn, there := m.Function("f"); there {
			fn.Reads("a")
		}
		if len(source)+3 <= maxSource {
			if _, err := Parse(source + "\n#"); err != nil && !strings.HasSuffix(source, "\\") {
				t.Fatalf("with a comment behind it: %v", err)
			}
		}
		if crlf := strings.ReplaceAll(source, "\n", "\r\n"); !strings.Contains(source, "\r") && len(crlf) <= maxSource {
			if _, err := Parse(crlf); err != nil {
				t.Fatalf("with other line ends: %v", err)
			}
		}
	})
}
