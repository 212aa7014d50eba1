package replay

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestPathsAreReadAndWritten(t *testing.T) {
	for _, text := range []string{"model", "a.b.c", "messages[0].content", "a[1][2].b", `metadata.v1\.2`, `a\[0\]`, `x\\y`} {
		p, err := parsePath(text)
		if err != nil || p.String() != text {
			t.Errorf("%q became %q, %v", text, p, err)
		}
	}
	for _, text := range []string{"", ".", "a.", "a..b", ".a", "a[", "a[x]", "a[-1]", "[0]", `a\`} {
		if p, err := parsePath(text); err == nil {
			t.Errorf("%q became %q", text, p)
		}
	}
}

func TestEdits(t *testing.T) {
	const body = `{ "model": "a", "messages" : [ {"role":"user","content":"x \" ] } y"}, 7 ], "n":1.50, "o":{} , "d":{"e":null} }`
	for _, tc := range []struct{ edit, want, from string }{
		{`model="b"`, `{ "model": "b", "messages" : [ {"role":"user","content":"x \" ] } y"}, 7 ], "n":1.50, "o":{} , "d":{"e":null} }`, `"a"`},
		{`messages[0].content="z"`, `{ "model": "a", "messages" : [ {"role":"user","content":"z"}, 7 ], "n":1.50, "o":{} , "d":{"e":null} }`, `"x \" ] } y"`},
		{`messages[2]=8`, `{ "model": "a", "messages" : [ {"role":"user","content":"x \" ] } y"}, 7,8 ], "n":1.50, "o":{} , "d":{"e":null} }`, ``},
		{`o.p.q=true`, `{ "model": "a", "messages" : [ {"role":"user","content":"x \" ] } y"}, 7 ], "n":1.50, "o":{"p":{"q":true}} , "d":{"e":null} }`, ``},
		{`new={"a":[1]}`, `{ "model": "a", "messages" : [ {"role":"user","content":"x \" ] } y"}, 7 ], "n":1.50, "o":{} , "d":{"e":null},"new":{"a":[1]} }`, ``},
		{`-n`, `{ "model": "a", "messages" : [ {"role":"user","content":"x \" ] } y"}, 7 ], "o":{} , "d":{"e":null} }`, `1.50`},
		{`-model`, `{ "messages" : [ {"role":"user","content":"x \" ] } y"}, 7 ], "n":1.50, "o":{} , "d":{"e":null} }`, `"a"`},
		{`-d.e`, `{ "model": "a", "messages" : [ {"role":"user","content":"x \" ] } y"}, 7 ], "n":1.50, "o":{} , "d":{} }`, `null`},
		{`-messages[0]`, `{ "model": "a", "messages" : [ 7 ], "n":1.50, "o":{} , "d":{"e":null} }`, `{"role":"user","content":"x \" ] } y"}`},
		{`-absent.x`, body, ``},
	} {
		path, remove := strings.CutPrefix(tc.edit, "-")
		e, err := ParseSet(tc.edit)
		if remove {
			e, err = ParseUnset(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		d := &draft{body: []byte(body)}
		if err := d.edit(e, "test"); err != nil {
			t.Errorf("%s: %v", tc.edit, err)
			continue
		}
		if diff := cmp.Diff(tc.want, string(d.body)); diff != "" {
			t.Errorf("%s: %s", tc.edit, diff)
		}
		if changed := len(d.notes) == 1; changed != (tc.want != body) || changed && d.notes[0].From != tc.from {
			t.Errorf("%s is told as %+v", tc.edit, d.notes)
		}
		if e.String() != tc.edit {
			t.Errorf("%q is written %q", tc.edit, e)
		}
	}
}

func TestEditsThatCannotBe(t *testing.T) {
	for edit, body := range map[string]string{
		`a.b=1`: `{"a":[1]}`, `a[0]=1`: `{"a":{"b":1}}`, `a[3]=1`: `{"a":[1]}`, `a=1`: `[1]`, `b=1`: `not json`, `c=1`: ``, `x[0].y=1`: `{}`,
	} {
		e, err := ParseSet(edit)
		if err != nil {
			t.Fatal(err)
		}
		d := &draft{body: []byte(body)}
		if err := d.edit(e, "test"); err == nil {
			t.Errorf("%s of %s gave %s", edit, body, d.body)
		}
	}
	coded := &draft{body: []byte(`{}`), headers: []exchange.Header{{Name: "content-encoding", Value: "gzip"}}}
	if err := coded.edit(Edit{path: jsonPath{{"a", -1}}, value: "1"}, "test"); !errors.Is(err, errCoded) {
		t.Errorf("err = %v", err)
	}
	for _, text := range []string{"model", "model=b", "=1", `a[=1`, "a=", "a={"} {
		if e, err := ParseSet(text); err == nil {
			t.Errorf("%q is %s", text, e)
		}
	}
}

// A name that stands twice is changed where readers look, and removed everywhere.
func TestEditsOfARepeatedName(t *testing.T) {
	d := &draft{body: []byte(`{"a":1,"a":2}`)}
	for edit, want := range map[string]string{"a=3": `{"a":1,"a":3}`} {
		e, _ := ParseSet(edit)
		if err := d.edit(e, "test"); err != nil || string(d.body) != want {
			t.Errorf("%s: %s, %v", edit, d.body, err)
		}
	}
	e, _ := ParseUnset("a")
	if err := d.edit(e, "test"); err != nil || string(d.body) != `{}` {
		t.Errorf("%s, %v", d.body, err)
	}
}

func TestNonceGoesBeforeThePrompt(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}`: `{"messages":[{"role":"system","content":"[N] s"},{"role":"user","content":"u"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"u"}]}]}`:        `{"messages":[{"role":"user","content":[{"type":"text","text":"[N] u"}]}]}`,
		`{"messages":[{"role":"user","content":"u"}],"system":"s"}`:                    `{"messages":[{"role":"user","content":"u"}],"system":"[N] s"}`,
		`{"prompt":"p"}`:                          `{"prompt":"[N] p"}`,
		`{"prompt":["p","q"]}`:                    `{"prompt":["[N] p","q"]}`,
		`{"input":"i"}`:                           `{"input":"[N] i"}`,
		`{"instructions":"x","input":"i"}`:        `{"instructions":"[N] x","input":"i"}`,
		`{"contents":[{"parts":[{"text":"g"}]}]}`: `{"contents":[{"parts":[{"text":"[N] g"}]}]}`,
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"i"}]}]}`: `{"input":[{"role":"user","content":[{"type":"input_text","text":"[N] i"}]}]}`,
	} {
		d := &draft{body: []byte(body)}
		if err := d.addNonce("N"); err != nil || string(d.body) != want {
			t.Errorf("%s became %s, %v", body, d.body, err)
		}
	}
	for _, body := range []string{`{"prompt":[1,2,3]}`, `{"messages":[]}`, `{}`, ``} {
		d := &draft{body: []byte(body)}
		if err := d.addNonce("N"); err == nil {
			t.Errorf("%s became %s", body, d.body)
		}
	}
}

func TestDraftOfARecordedRequest(t *testing.T) {
	it := asked("r", 0, `{"model":"a","messages":[{"role":"user","content":"u"}]}`)
	it.Target = "/v1/chat/completions?key=***&x=1"
	it.Headers = append(it.Headers, exchange.Header{Name: "Authorization", Value: "Bearer ***"},
		exchange.Header{Name: "Accept-Encoding", Value: "gzip"}, exchange.Header{Name: "X-Keep", Value: "1"}, exchange.Header{Name: "x-keep", Value: "2"})
	c := Changes{Model: "b", Headers: []exchange.Header{{Name: "X-Keep", Value: "3"}, {Name: "X-Api-Key", Value: "sk-secret"}}}
	d, err := c.draftOf(&it, 0, "N", exchange.Header{Name: "X-Talk", Value: "t1"})
	if err != nil {
		t.Fatal(err)
	}
	if d.target != "/v1/chat/completions?x=1" || string(d.body) != `{"model":"b","messages":[{"role":"user","content":"[N] u"}]}` {
		t.Errorf("%s %s", d.target, d.body)
	}
	want := []exchange.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "Accept-Encoding", Value: "identity"},
		{Name: "X-Keep", Value: "3"}, {Name: "X-Api-Key", Value: "sk-secret"}, {Name: "X-Talk", Value: "t1"}}
	if diff := cmp.Diff(want, d.headers); diff != "" {
		t.Error(diff)
	}
	told := map[string]bool{}
	for _, n := range d.notes {
		told[n.Kind+" "+n.Name+" "+n.Reason] = true
		if strings.Contains(n.To, "secret") {
			t.Errorf("a secret is told: %+v", n)
		}
	}
	for _, n := range []string{KindHeaderUnset + " Authorization masked", KindHeaderSet + " Accept-Encoding identity_coding", KindTargetSet + " target masked",
		KindHeaderSet + " X-Keep header_asked", KindHeaderSet + " X-Talk session", KindFieldSet + " model model_asked", KindNonce + " messages[0].content nonce"} {
		if !told[n] {
			t.Errorf("%s is not told: %v", n, told)
		}
	}
	if len(it.Headers) != 5 || string(it.Body) != `{"model":"a","messages":[{"role":"user","content":"u"}]}` || it.Headers[1].Value != "Bearer ***" {
		t.Error("the item was changed")
	}
}

func TestModelInThePath(t *testing.T) {
	for target, want := range map[string]string{
		"/v1beta/models/gemini-2:streamGenerateContent?alt=sse": "/v1beta/models/other:streamGenerateContent?alt=sse",
		"/v1beta/models/gemini-2:generateContent":               "/v1beta/models/other:generateContent",
	} {
		d := &draft{target: target, body: []byte(`{}`)}
		if err := d.setModel("other"); err != nil || d.target != want || string(d.body) != `{}` {
			t.Errorf("%s %s, %v", d.target, d.body, err)
		}
	}
	d := &draft{target: "/v1/models"}
	if err := d.setModel("other"); err != nil || len(d.notes) != 0 {
		t.Errorf("a request without a body: %v, %v", d.notes, err)
	}
}

// FuzzEdits holds that a set is read back, an unset leaves nothing, and both leave valid JSON.
func FuzzEdits(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{ "a" : { "b" : [1, {"c":"]}"}] } }`, `{}`, `{"a":"\\\"","b":-1e5}`, `{"":[[]]}`} {
		f.Add(seed, "a", `{"x":[null]}`)
		f.Add(seed, "a.b[1].c", `"t"`)
	}
	f.Fuzz(func(t *testing.T, body, path, value string) {
		e, err := ParseSet(path + "=" + value)
		b, notJSON := asJSON([]byte(body))
		if err != nil || notJSON != nil || strings.ContainsAny(path, "=") {
			return
		}
		out, _, err := b.set(e.path, e.value)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("set gave %s", out)
		}
		if s, ok := out.value(e.path); !ok || strings.TrimSpace(string(out[s.from:s.to])) != strings.TrimSpace(value) {
			t.Fatalf("%s of %s is not %s", e.path, out, value)
		}
		gone, _, err := out.unset(e.path)
		if err != nil || !json.Valid(gone) {
			t.Fatalf("unset gave %s, %v", gone, err)
		}
		if last := e.path[len(e.path)-1]; last.index < 0 {
			if _, ok := gone.value(e.path); ok {
				t.Fatalf("%s is still in %s", e.path, gone)
			}
		}
	})
}
