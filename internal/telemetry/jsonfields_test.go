package telemetry

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzEachField holds that the fields of a JSON object are those that encoding/json finds, each value as it stands, and that
// what is none does no harm.
func FuzzEachField(f *testing.F) {
	f.Add([]byte(askBody))
	f.Add([]byte(" { \"a\" : 1 , \"b\":[{\"c\":\"]}\\\\\"}], \"\\u0061\\n\":\"\\\"\" , \"a\" : null}\n"))
	f.Add([]byte(`{"a":{"b":"\\\\\"}"},"c":-1e5,"d":true}`))
	f.Add([]byte(`{"a":"`))
	f.Add([]byte(`{"a":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]string{}
		eachField(b, func(name []byte, value json.RawMessage) { got[string(name)] = string(value) })
		var fields map[string]json.RawMessage
		if !json.Valid(b) || json.Unmarshal(b, &fields) != nil {
			return
		}
		want := map[string]string{}
		for name, value := range fields {
			want[name] = string(value)
		}
		if !utf8.Valid(b) {
			return // encoding/json mends names and texts that are none
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got)\n%s", b, d)
		}
	})
}
