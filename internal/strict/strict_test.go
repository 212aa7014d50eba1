package strict

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	A int `json:"a"`
}

type outer struct {
	One  *inner           `json:"one,omitempty"`
	List []inner          `json:"list"`
	Map  map[string]inner `json:"map"`
	Raw  json.RawMessage  `json:"raw"`
	Name string
	Not  string `json:"-"`
}

func TestDecode(t *testing.T) {
	var got outer
	err := Decode([]byte(`{"one":{"a":1},"list":[{"a":2}],"map":{"any key":{"a":3}},"raw":{"anything":1},"Name":"n"}`), &got, "")
	want := outer{One: &inner{1}, List: []inner{{2}}, Map: map[string]inner{"any key": {3}}, Raw: json.RawMessage(`{"anything":1}`), Name: "n"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for in, says := range map[string]string{
		`{"two":1}`:                  `there is no key "two"; there are Name, list, map, one, raw`,
		`{"One":{"a":1}}`:            `there is no key "One"`,
		`{"Not":"x"}`:                `there is no key "Not"`,
		`{"one":{"b":1}}`:            `there is no key "b" in one; there are a`,
		`{"list":[{"a":1},{"b":1}]}`: `there is no key "b" in list[1]`,
		`{"map":{"k":{"b":1}}}`:      `there is no key "b" in map.k`,
		`{"one":5}`:                  `cannot unmarshal number`,
		`{"list":{"b":1}}`:           `cannot unmarshal object`,
		`{"map":[]}`:                 `cannot unmarshal array`,
		`[]`:                         `cannot unmarshal array`,
		`{"one":null} {}`:            `after top-level value`,
		`{`:                          `unexpected end`,
		``:                           `unexpected end`,
	} {
		var got outer
		if err := Decode([]byte(in), &got, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
	if err := Decode([]byte(`{"b":1}`), &inner{}, "config"); err == nil || !strings.Contains(err.Error(), "in config;") {
		t.Errorf("the place is not told: %v", err)
	}
}

// FuzzDecode holds that what Decode takes is what the decoder of the standard library takes without unknown fields.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"one":{"a":1}}`, `{"list":[{"b":1}]}`, `null`, `{"map":{"k":null}}`, `{"raw":[1]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got, want outer
		if Decode(raw, &got, "") != nil {
			return
		}
		if err := json.Unmarshal(raw, &want); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%q is taken, the decoder says %v; got %+v, want %+v", raw, err, got, want)
		}
	})
}

// TestEmbeddedStructs holds that the fields of an embedded structure are those of the one around it.
func TestEmbeddedStructs(t *testing.T) {
	var v struct {
		inner
		B int `json:"b"`
	}
	if err := Decode([]byte(`{"a":1,"b":2}`), &v, ""); err != nil || v.A != 1 || v.B != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	if err := Decode([]byte(`{"inner":{}}`), &v, ""); err == nil {
		t.Error("the name of an embedded structure is a key")
	}
}
