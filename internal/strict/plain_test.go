package strict

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1}`:                           `{"a": 1}`,
		"{ // x\n\"a\": 1 /* y\n */ }":       `{"a":1}`,
		`{"u": "http://h/*no*/" /**/ }`:      `{"u":"http://h/*no*/"}`,
		`{"q": "a\"// still" } // end`:       `{"q":"a\"// still"}`,
		"{}//":                               `{}`,
		`{"b": "\\"/* c */}`:                 `{"b":"\\"}`,
		"{\"a\":/*/ tricky /*/ 2}":           `{"a":2}`,
		`{"a": [1, 2, ], }`:                  `{"a":[1,2]}`,
		"{\"a\": \",]\", // why\n /* x */ }": `{"a":",]"}`,
		`[[1,],{"b":"x",},]`:                 `[[1],{"b":"x"}]`,
	} {
		var v, w any
		if err := json.Unmarshal(Plain([]byte(in)), &v); err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if err := json.Unmarshal([]byte(want), &w); err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(v)
		exp, _ := json.Marshal(w)
		if string(got) != string(exp) {
			t.Errorf("%q gives %s, want %s", in, got, exp)
		}
	}
}

// TestPlainForgivesNoOtherComma holds that only a comma behind an item may stand at the end.
func TestPlainForgivesNoOtherComma(t *testing.T) {
	for _, in := range []string{`[,]`, `{,}`, `[1,,]`, `[1,,2]`, `{"a":,}`, `[1],`, `,`, `{"a":1,,}`} {
		var v any
		if json.Unmarshal(Plain([]byte(in)), &v) == nil {
			t.Errorf("%q is accepted", in)
		}
	}
}

// FuzzPlain states that positions stay, length and line ends being those of the input, and that valid JSON stays as it is.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"{}//", "/*", "\"\\", "/* \n */ \"//\"", "//\n/", `[1,]`, `{"a":[1,],}`, ",,]", "[,]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := string(Plain([]byte(s)))
		if len(out) != len(s) || strings.Count(out, "\n") != strings.Count(s, "\n") {
			t.Errorf("%q became %q", s, out)
		}
		if json.Valid([]byte(s)) && out != s {
			t.Errorf("valid %q became %q", s, out)
		}
	})
}
