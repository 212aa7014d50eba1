package canon

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func request(target, contentType, body string, extra ...exchange.Header) *exchange.Request {
	hs := append([]exchange.Header{{Name: "content-type", Value: contentType}}, extra...)
	return &exchange.Request{Method: "POST", Target: target, Headers: hs, Body: exchange.NewBody([]byte(body))}
}

func TestKeyForm(t *testing.T) {
	k := RequestKey(chat(`{"a":1}`))
	if !regexp.MustCompile(`^h1:[0-9a-f]{16}$`).MatchString(k.Key) || k.Raw || k.Why != "" || len(k.Canonical) == 0 {
		t.Errorf("key %+v", k)
	}
	// The key is a promise to every store that exists: this value must not change under the scheme h1.
	if want := "h1:2026459f87f23497"; k.Key != want {
		t.Errorf("key %s, want %s", k.Key, want)
	}
	if len(Exclusions()) != 0 {
		t.Error("h1 excludes nothing")
	}
}

// TestEqualRequests holds field report RR-06: key order and white space are not part of a request.
func TestEqualRequests(t *testing.T) {
	for name, pair := range map[string][2]*exchange.Request{
		"key order":        {chat(`{"a":1,"b":{"c":2,"d":3}}`), chat("{ \"b\" : {\"d\":3,\"c\":2},\n\"a\":1 }")},
		"escapes":          {chat(`{"a":"é/"}`), chat(`{"a":"\u00e9\/"}`)},
		"query order":      {request("/x?a=1&b=2", "", "{}"), request("/x?b=2&a=1", "", "{}")},
		"absolute form":    {request("/x?a=1", "", "{}"), request("http://127.0.0.1:8090/x?a=1", "", "{}")},
		"headers":          {request("/x", "application/json", "{}"), request("/x", "", "{}", exchange.Header{Name: "X-Trace", Value: "1"})},
		"identity coding":  {request("/x", "", "{}"), request("/x", "", "{}", exchange.Header{Name: "Content-Encoding", Value: "identity"})},
		"multipart":        {multipart("AaB03x", "hi"), multipart("----WebKit7MA4YWxk", "hi")},
		"quoted boundary":  {multipart("AaB03x", "hi"), request("/x", `Multipart/Form-Data; boundary="q q"`, strings.ReplaceAll(multipartBody("AaB03x", "hi"), "AaB03x", "q q"))},
		"body in chunks":   {chat(`{"a":1}`), {Method: "POST", Target: "/v1/chat/completions", Body: exchange.Body{Size: 7, Kept: 7, Chunks: [][]byte{[]byte(`{"a`), []byte(`":1}`)}}}},
		"same cut body":    {cutRequest("sha256:aa", 9), cutRequest("sha256:aa", 9)},
		"absolute to root": {request("http://h", "", "{}"), request("/", "", "{}")},
	} {
		a, b := RequestKey(pair[0]), RequestKey(pair[1])
		if a.Key != b.Key || !bytes.Equal(a.Canonical, b.Canonical) {
			t.Errorf("%s: keys differ: %q, %q", name, a.Canonical, b.Canonical)
		}
	}
}

func multipartBody(boundary, text string) string {
	return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--" + boundary +
		" \r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" + text + "\x00\r\n\r\n--" + boundary + "--\r\n"
}

func multipart(boundary, text string) *exchange.Request {
	return request("/x", "multipart/form-data; boundary="+boundary, multipartBody(boundary, text))
}

func cutRequest(digest string, size int64) *exchange.Request {
	return &exchange.Request{Method: "POST", Target: "/x", Body: exchange.Body{Size: size, Kept: 1, Digest: digest, Chunks: [][]byte{{'{'}}}}
}

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDifferentRequests holds field reports RR-07 (fields left out of the key), RR-29 (compressed bodies) and the
// other half of RR-06: no two of these requests share a key.
func TestDifferentRequests(t *testing.T) {
	coded := exchange.Header{Name: "Content-Encoding", Value: "gzip"}
	get := request("/x", "", "")
	get.Method = "GET"
	all := map[string]*exchange.Request{
		"base": chat(`{"m":"a","n":[1,2]}`), "max_tokens 1": chat(`{"m":"a","max_tokens":1}`), "max_tokens 2": chat(`{"m":"a","max_tokens":2}`),
		"seed": chat(`{"m":"a","seed":2}`), "unknown field": chat(`{"m":"a","x_engine":2}`), "null": chat(`{"m":"a","n":null}`), "absent": chat(`{"m":"a"}`),
		"array order": chat(`{"m":"a","n":[2,1]}`), "string number": chat(`{"m":"a","n":["1",2]}`), "duplicate": chat(`{"m":"a","m":"b"}`),
		"duplicate reversed": chat(`{"m":"b","m":"a"}`), "raw blanks": chat(`{"m":"b", "m":"a"}`), "array spelled": chat(`["m"]`),
		"gzip 1": request("/x", "application/json", gzipped(t, `{"a":1}`), coded), "gzip 2": request("/x", "application/json", gzipped(t, `{"a":2}`), coded),
		"coded": request("/x", "application/json", `{"a":1}`, coded), "not coded": request("/x", "application/json", `{"a":1}`),
		"text": request("/x", "text/plain", `{"a":1}`), "text blank": request("/x", "text/plain", `{"a": 1}`),
		"empty": request("/x", "", ""), "get": get, "empty object": request("/x", "", "{}"), "empty query": request("/x?", "", ""),
		"query": request("/x?a=1&a=2", "", ""), "query repeats": request("/x?a=2&a=1", "", ""), "query encoded": request("/x?a=%31&a=2", "", ""),
		"path": request("/xx", "", ""), "multipart": multipart("b1", "hi"), "multipart other": multipart("b1", "ho"),
		"multipart mixed":  request("/x", "multipart/mixed; boundary=b1", multipartBody("b1", "hi")),
		"multipart broken": request("/x", "multipart/form-data; boundary=zz", multipartBody("b1", "hi")),
		"cut":              cutRequest("sha256:aa", 9), "cut other": cutRequest("sha256:bb", 9), "cut size": cutRequest("sha256:aa", 10),
	}
	seen := map[string]string{}
	for name, req := range all {
		k := RequestKey(req)
		if other, ok := seen[k.Key]; ok {
			t.Errorf("%s and %s share key %s", name, other, k.Key)
		}
		seen[k.Key] = name
	}
}

func TestRawIsFlagged(t *testing.T) {
	for name, tc := range map[string]struct {
		req *exchange.Request
		why string
	}{
		"duplicate":        {chat(`{"a":1,"a":2}`), "duplicate key"},
		"not JSON":         {chat(`hello`), "not JSON"},
		"coded":            {request("/", "", "x", exchange.Header{Name: "content-encoding", Value: "GZIP, br"}), "content coding gzip,br"},
		"text":             {request("/", "text/plain", "x"), "content type text/plain"},
		"cut":              {cutRequest("sha256:aa", 9), "body cut"},
		"no boundary":      {request("/", "multipart/form-data", "x"), "does not match"},
		"bad content type": {request("/", "multipart/form-data; boundary", "x"), "read content type"},
		"open multipart":   {request("/", "multipart/form-data; boundary=b", "--b\r\n\r\nx"), "does not match"},
		"only closed":      {request("/", "multipart/form-data; boundary=b", "--b--"), "does not match"},
		"boundary prefix":  {request("/", "multipart/form-data; boundary=b", "--bx\r\n\r\ny\r\n--bx--"), "does not match"},
	} {
		if k := RequestKey(tc.req); !k.Raw || !strings.Contains(k.Why, tc.why) {
			t.Errorf("%s: raw %v, why %q, want %q", name, k.Raw, k.Why, tc.why)
		}
	}
}

// body2KB is a chat request of about 2 KB with members out of order.
func body2KB() []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"qwen","stream":true,"temperature":0.7,"messages":[`)
	for i := range 8 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":"Question %d: what is the airspeed of an unladen swallow, and why does \"it\" matter? %s"}`, i, strings.Repeat("word ", 25))
	}
	b.WriteString(`],"max_tokens":256,"stop":["\n\n"],"seed":42}`)
	return b.Bytes()
}

func BenchmarkRequestKey(b *testing.B) {
	req := chat(string(body2KB()))
	b.SetBytes(req.Body.Size)
	b.ReportAllocs()
	for b.Loop() {
		RequestKey(req)
	}
}

func BenchmarkDigest(b *testing.B) {
	body := body2KB()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Digest(body); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRequestIdentityIsKeyAndDigest holds that what is made in one pass is what RequestKey and Digest make.
func TestRequestIdentityIsKeyAndDigest(t *testing.T) {
	header := func(name, value string) []exchange.Header { return []exchange.Header{{Name: name, Value: value}} }
	long := strings.Repeat("9", maxIntDigits+1)
	for name, req := range map[string]*exchange.Request{
		"integers":     {Body: exchange.NewBody([]byte(`{"b":12,"a":-7,"c":123456789012345678901234567890}`))},
		"floats":       {Body: exchange.NewBody([]byte(`{"temperature":0.7,"top_p":1.0,"e":1e-07}`))},
		"other floats": {Body: exchange.NewBody([]byte(`{"temperature":0.70,"top_p":1e2,"z":-0,"big":1e400}`))},
		"too long":     {Body: exchange.NewBody([]byte(`{"n":` + long + `}`))},
		"empty":        {},
		"no JSON":      {Body: exchange.NewBody([]byte(`{"a":1,"a":2}`))},
		"text":         {Body: exchange.NewBody([]byte(`{"a":1}`)), Headers: header("Content-Type", "text/plain")},
		"coded":        {Body: exchange.NewBody([]byte(`{"a":1}`)), Headers: header("Content-Encoding", "gzip")},
		"cut":          {Body: exchange.Body{Size: 9, Kept: 1, Chunks: [][]byte{[]byte("1")}}},
		"multipart":    {Body: exchange.NewBody([]byte("--b\r\n\r\n1\r\n--b--\r\n")), Headers: header("Content-Type", "multipart/form-data; boundary=b")},
	} {
		key, digest := RequestIdentity(req)
		if want := RequestKey(req); !reflect.DeepEqual(key, want) {
			t.Errorf("%s: key %+v, want %+v", name, key, want)
		}
		want := ""
		if d, err := Digest(req.Body.Bytes()); err == nil && !key.Raw {
			want = d
		}
		if digest != want {
			t.Errorf("%s: digest %q, want %q", name, digest, want)
		}
	}
}
