package gates

import (
	"errors"
	"strings"
	"testing"
)

func TestStrictJSON(t *testing.T) {
	for _, bad := range []string{``, `{`, `{"a":1,"a":1}`, `NaN`, `[1e999]`, `{"a":-1e999}`, `1 2`, "\"\xff\"", `"\ud800"`, `{'a':1}`, `[1,]`} {
		if v, err := strictJSON([]byte(bad)); err == nil {
			t.Errorf("%s is read as %v", bad, v)
		}
	}
}

func TestSameValues(t *testing.T) {
	for _, c := range []struct {
		a, b          string
		typed, python bool
	}{
		{`1`, `1`, true, true}, {`1`, `1.0`, false, true}, {`1`, `true`, false, false}, {`1e0`, `1.0`, true, true}, {`-0`, `0`, true, true},
		{`12345678901234567890`, `12345678901234567891`, false, false}, {`"a"`, `"a"`, true, true}, {`"1"`, `1`, false, false},
		{`null`, `false`, false, false}, {`[1,2]`, `[2,1]`, false, false}, {`[1]`, `[1,1]`, false, false},
		{`{"a":1,"b":[{"c":2}]}`, `{"b":[{"c":2}],"a":1}`, true, true}, {`{"a":1}`, `{"b":1}`, false, false}, {`{"a":null}`, `{}`, false, false},
		{`[]`, `{}`, false, false}, {`{"a":[1]}`, `{"a":[1.0]}`, false, true},
	} {
		a, err1 := strictJSON([]byte(c.a))
		b, err2 := strictJSON([]byte(c.b))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, pair := range [][2]any{{a, b}, {b, a}} {
			if sameTyped(pair[0], pair[1]) != c.typed || sameInPython(pair[0], pair[1]) != c.python {
				t.Errorf("%s and %s: typed %v, python %v", c.a, c.b, !c.typed, !c.python)
			}
		}
	}
}

func TestSchemas(t *testing.T) {
	for _, bad := range []string{`{`, `{"type":"thing"}`, `{"$ref":"https://example.com/x.json"}`, `{"$ref":"file:///etc/hosts"}`, `{"pattern":"("}`, `5`} {
		if _, err := compileSchema([]byte(bad)); !errors.Is(err, errNoSchema) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	s, err := compileSchema([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, wrong := range map[string]string{`{"a":1}`: "", `{"a":1.0}`: "", `{"a":"x"}`: "/a", `[]`: "array"} {
		v, err := strictJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		why, err := s.fault(v)
		if err != nil {
			t.Fatal(err)
		}
		if (why == "") != (wrong == "") || !strings.Contains(why, wrong) || strings.Contains(why, "\n") {
			t.Errorf("%s: %q", text, why)
		}
	}
}
