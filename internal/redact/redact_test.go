package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestHeaderValue(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"Authorization", "Bearer sk-12345", "Bearer ***"},
		{"authorization", "Basic dXNlcjpwYXNz", "Basic ***"},
		{"AUTHORIZATION", "token abcdef", "token ***"},
		{"Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/2026, Signature=abc", "AWS4-HMAC-SHA256 ***"},
		{"Authorization", "Bearer   two  words here", "Bearer ***"},
		{"Authorization", "rawsecretwithoutscheme", "***"},
		{"Authorization", "sk-live-1234 extra", "***"},
		{"Authorization", "***", "***"},
		{"Proxy-Authorization", "Basic Zm9v", "Basic ***"},
		{"X-Forwarded-Authorization", "Bearer zzz", "Bearer ***"},
		{"x-api-key", "abc", "***"},
		{"Api-Key", "abc", "***"},
		{"X-Goog-Api-Key", "abc", "***"},
		{"X-ApiKey", "abc", "***"},
		{"Ocp-Apim-Subscription-Key", "abc", "***"},
		{"X-Auth-Token", "abc", "***"},
		{"X-AuthToken", "abc", "***"},
		{"Private-Token", "abc", "***"},
		{"X-Amz-Security-Token", "abc", "***"},
		{"X-CSRF-Token", "abc", "***"},
		{"CF-Access-Client-Secret", "abc", "***"},
		{"X-Client-Password", "abc", "***"},
		{"X-Credential", "abc", "***"},
		{"Mcp-Session-Id", "abc", "***"},
		{"X-Auth", "abc", "***"},
		{"DPoP", "eyJabc", "***"},
		{"Cookie", "sid=abc; theme=dark; flag", "sid=***; theme=***; ***"},
		{"Cookie", `a="x;y"; b=`, `a=***;***; b=***`},
		{"Set-Cookie", "sid=abc; Path=/; HttpOnly; Max-Age=3; x=leak", "sid=***; Path=/; HttpOnly; Max-Age=3; x=***"},
		{"x-ratelimit-remaining-tokens", "149984", "149984"},
		{"anthropic-ratelimit-tokens-remaining", "149984", "149984"},
		{"X-Max-Tokens", "12", "12"},
		{"X-Time-To-First-Token", "12", "12"},
		{"X-Prompt-Token-Count", "12", "12"},
		{"X-Tokenizer", "llama", "llama"},
		{"Idempotency-Key", "abc", "abc"},
		{"Sec-WebSocket-Key", "dGhlIHNhbXBsZQ==", "dGhlIHNhbXBsZQ=="},
		{"Access-Control-Allow-Credentials", "true", "true"},
		{"WWW-Authenticate", "Bearer realm=x", "Bearer realm=x"},
		{"Content-Type", "application/json", "application/json"},
		{"Keep-Alive", "timeout=5", "timeout=5"},
		{"Authorization", "", ""},
		{"Referer", "https://u:p@host/x?api_key=1&a=2", "https://***@host/x?api_key=***&a=2"},
		{"Location", "/cb?access_token=abc#id_token=def", "/cb?access_token=***#id_token=***"},
		{"X-Note", "use sk-proj-0123456789abcdef0123 please", "use *** please"},
	} {
		if got := HeaderValue(tc.name, tc.value); got != tc.want {
			t.Errorf("%s: %q masked to %q, want %q", tc.name, tc.value, got, tc.want)
		}
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"/v1/models":                              "/v1/models",
		"/v1/x?key=abc&a=b":                       "/v1/x?key=***&a=b",
		"/v1/x?a=b&KEY=abc":                       "/v1/x?a=b&KEY=***",
		"/x?api%5Fkey=abc":                        "/x?api%5Fkey=***",
		"/x?api_key=a;b&c=d":                      "/x?api_key=***&c=d",
		"/x?a=1;token=b":                          "/x?a=1;token=***",
		"/x?flag;token=b":                         "/x?flag;token=***",
		"/x?a=1?sig=b":                            "/x?a=1?sig=***",
		"/x?sig=&a":                               "/x?sig=&a",
		"/x?max_tokens=5&keyword=k":               "/x?max_tokens=5&keyword=k",
		"/x?X-Amz-Signature=q&X-Amz-Credential=w": "/x?X-Amz-Signature=***&X-Amz-Credential=***",
		"http://user:pass@host:80/p?x=1":          "http://***@host:80/p?x=1",
		"https://token@host":                      "https://***@host",
		"http://u:p@ss@host/":                     "http://***@host/",
		"u:p@host:8000":                           "***@host:8000",
		"/users/me@example.com":                   "/users/me@example.com",
		"*":                                       "*",
		"unix:/run/x.sock":                        "unix:/run/x.sock",
		"/x?":                                     "/x?",
		"/v1beta/models/g:streamGenerateContent?alt=sse": "/v1beta/models/g:streamGenerateContent?alt=sse",
	} {
		if got := Target(in); got != want {
			t.Errorf("%q masked to %q, want %q", in, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"dial http://u:p@h:1/x: refused":       "dial http://***@h:1/x: refused",
		`Get "http://h/x?key=1": EOF`:          `Get "http://h/x?key=***": EOF`,
		"mail me@example.com":                  "mail me@example.com",
		"key hf_abcdefghijklmnopqrstuv is bad": "key *** is bad",
		"hf_short stays":                       "hf_short stays",
		"what? #1":                             "what? #1",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q masked to %q, want %q", in, got, want)
		}
	}
}

func TestHead(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"request",
			"POST /v1?key=k HTTP/1.1\r\nHost: h\r\naUTHORIZATION:Bearer s3cret\r\nX-Api-Key :  abc \r\n\r\n",
			"POST /v1?key=*** HTTP/1.1\r\nHost: h\r\naUTHORIZATION:Bearer ***\r\nX-Api-Key :  *** \r\n\r\n"},
		{"response", "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nDate: x\r\n\r\n", "HTTP/1.1 200 OK\r\nSet-Cookie: a=***; Path=/\r\nDate: x\r\n\r\n"},
		{"folded secret", "GET / HTTP/1.1\r\nAuthorization: Bearer\r\n s3cret\r\n\tmore\r\nA: b\r\n\r\n",
			"GET / HTTP/1.1\r\nAuthorization: ***\r\n ***\r\n\t***\r\nA: b\r\n\r\n"},
		{"hidden by a blank", "GET / HTTP/1.1\r\n Authorization: Bearer s\r\n\r\n", "GET / HTTP/1.1\r\n Authorization: Bearer ***\r\n\r\n"},
		{"hidden by a bare CR", "GET / HTTP/1.1\r\nA: b\rAuthorization: Bearer s\r\n\r\n", "GET / HTTP/1.1\r\nA: b\rAuthorization: Bearer ***\r\n\r\n"},
		{"bare CR in a secret", "GET / HTTP/1.1\r\nCookie: a=b\rc=d\r\n\r\n", "GET / HTTP/1.1\r\nCookie: a=***\r\n\r\n"},
		{"bare LF", "GET / HTTP/1.1\nx-api-key: 1\n\n", "GET / HTTP/1.1\nx-api-key: ***\n\n"},
		{"line without colon after a secret", "GET / HTTP/1.1\r\nToken: a\r\nleak\r\n\r\n", "GET / HTTP/1.1\r\nToken: ***\r\n***\r\n\r\n"},
		{"absolute form", "GET http://u:p@h/x?sig=1 HTTP/1.1\r\n\r\n", "GET http://***@h/x?sig=*** HTTP/1.1\r\n\r\n"},
		{"no start line", "Authorization: Bearer s\r\n", "Authorization: Bearer ***\r\n"},
		{"leading empty line", "\r\nGET /?key=1 HTTP/1.1\r\n\r\n", "\r\nGET /?key=*** HTTP/1.1\r\n\r\n"},
		{"short request line", "GET /?key=1\r\n", "GET /?key=***\r\n"},
		{"cut", "GET / HTTP/1.1\r\nAuthorization: Bea", "GET / HTTP/1.1\r\nAuthorization: ***"},
		{"empty", "", ""},
	} {
		if got := string(Head([]byte(tc.in))); got != tc.want {
			t.Errorf("%s: %q masked to %q, want %q", tc.name, tc.in, got, tc.want)
		}
	}
}

func TestArgs(t *testing.T) {
	in := strings.Split("curl|-H|Authorization: Bearer abc|-HX-Api-Key: q|-u|me:pw|--api-key|k1|--api-key=k2|OPENAI_API_KEY=k3|--max-tokens|5|--upstream-key-file|/p|http://a:b@h/?key=1|--header=Authorization: Basic eA==|--tokenizer|llama|-p|hello: world", "|")
	want := strings.Split("curl|-H|Authorization: Bearer ***|-HX-Api-Key: ***|-u|me:***|--api-key|***|--api-key=***|OPENAI_API_KEY=***|--max-tokens|5|--upstream-key-file|/p|http://***@h/?key=***|--header=Authorization: Basic ***|--tokenizer|llama|-p|hello: world", "|")
	got := Args(in)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(got, Args(got)); d != "" {
		t.Errorf("masking twice differs: %s", d)
	}
}

// secretExchange carries one distinct secret in every place that can hold one.
func secretExchange() *exchange.Exchange {
	return &exchange.Exchange{
		UpstreamURL: "http://up:S3CRET@engine:1/",
		Request: exchange.Request{
			Target:  "/v1?key=S3CRET",
			Head:    []byte("POST /v1?key=S3CRET HTTP/1.1\r\nAuthorization: Digest S3CRET\r\n\r\n"),
			Headers: []exchange.Header{{Name: "Host", Value: "h"}, {Name: "Authorization", Value: "Digest S3CRET"}},
		},
		Response: exchange.Response{
			Head:     []byte("HTTP/1.1 200 OK\r\nSet-Cookie: s=S3CRET\r\n\r\n"),
			Headers:  []exchange.Header{{Name: "Set-Cookie", Value: "s=S3CRET"}},
			Trailers: []exchange.Header{{Name: "X-Session-Token", Value: "S3CRET"}},
		},
		Cause: &exchange.Cause{Text: "dial http://u:S3CRET@h/: refused"},
		Interventions: []exchange.Intervention{
			{Kind: "header_changed", Name: "Authorization", From: "Bearer S3CRET", To: "Bearer S3CRET"},
			{Kind: "field_added", Name: "api_key", To: "S3CRET"},
			{Kind: "header_added", Name: "Host", To: "engine"},
		},
	}
}

func TestExchangeMasksAllAndLeavesTheOriginal(t *testing.T) {
	x := secretExchange()
	masked := *x
	Exchange(&masked)
	if !masked.Masked || x.Masked {
		t.Errorf("the mark is %t on the copy and %t on the original", masked.Masked, x.Masked)
	}
	if s := cmp.Diff(masked, exchange.Exchange{}, cmp.AllowUnexported(exchange.Mark{})); strings.Contains(s, "S3CRET") {
		t.Errorf("a secret is left: %s", s)
	}
	if d := cmp.Diff(secretExchange(), x, cmp.AllowUnexported(exchange.Mark{})); d != "" {
		t.Errorf("masking a shallow copy changed the original: %s", d)
	}
	again := masked
	Exchange(&again)
	if d := cmp.Diff(masked, again, cmp.AllowUnexported(exchange.Mark{})); d != "" {
		t.Errorf("masking twice differs: %s", d)
	}
	if got := masked.Interventions[2].To; got != "engine" {
		t.Errorf("an innocent value became %q", got)
	}
}

// FuzzMaskingIsIdempotent holds f(f(x)) == f(x) for every masking function.
func FuzzMaskingIsIdempotent(f *testing.F) {
	for _, s := range []string{"Bearer abc", "a=b; c", "http://u:p@h/?key=1", "GET /?key=1 HTTP/1.1\r\nCookie: a=b\r\n x\r\n\r\n", "x?key=;sig=a#b", "A: b\rToken: c", "--api-key=1", "sk-01234567890123456789,"} {
		f.Add("Authorization", s)
		f.Add("Cookie", s)
		f.Add("Set-Cookie", s)
		f.Add("X-Y", s)
	}
	f.Fuzz(func(t *testing.T, name, s string) {
		for what, mask := range map[string]func(string) string{
			"HeaderValue": func(s string) string { return HeaderValue(name, s) },
			"URL":         URL,
			"Text":        Text,
			"Head":        func(s string) string { return string(Head([]byte(s))) },
			"Args":        func(s string) string { return strings.Join(Args(strings.Split(s, "|")), "|") },
		} {
			once := mask(s)
			if twice := mask(once); twice != once {
				t.Errorf("%s of %q: %q, then %q", what, s, once, twice)
			}
		}
	})
}

// FuzzHeadHidesSecret holds that a secret in a header of a secret name never survives, whatever surrounds it.
func FuzzHeadHidesSecret(f *testing.F) {
	f.Add("A: b\r\n", "Bearer ", "\r\nC: d\r\n\r\n")
	f.Add(" fold\r\n", "\t", "\n")
	f.Add("A: b\r", "x y ", "\r\n")
	f.Fuzz(func(t *testing.T, before, lead, after string) {
		if strings.ContainsAny(lead, "\r\n") || strings.ContainsAny(before, "\x00") || (before != "" && !strings.HasSuffix(before, "\n")) {
			return
		}
		head := "GET / HTTP/1.1\r\n" + before + "X-Api-Key:" + lead + "S3CRETS3CRET" + after
		if got := string(Head([]byte(head))); strings.Contains(got, "S3CRETS3CRET") && !strings.Contains(before+after, "S3CRET") {
			t.Errorf("secret survived in %q", got)
		}
	})
}

// TestPlainNames holds that the names that are looked up are what a search finds them to be.
func TestPlainNames(t *testing.T) {
	for name := range plainNames {
		if searchName(name) {
			t.Errorf("%s is taken for a plain name and is a secret one", name)
		}
	}
}

// TestMayHideSeesEverySign holds that no text is passed over that Text would mask, wherever the sign stands.
func TestMayHideSeesEverySign(t *testing.T) {
	signs := append([]string{"?", "#", "@"}, keyPrefixes...)
	for _, sign := range signs {
		for _, before := range []string{"", "word ", "e", "sk", strings.Repeat("Ax", 20)} {
			if s := before + sign + strings.Repeat("0", minKeyLength); !mayHide(s) {
				t.Errorf("%q is passed over", s)
			}
		}
	}
	for _, s := range []string{"", "s", "eyJ", "sk-short", "application/json; charset=utf-8", "Asia exceptions have no sign here"} {
		if mayHide(s) {
			t.Errorf("%q is looked at for nothing", s)
		}
	}
}
