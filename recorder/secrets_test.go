package recorder

import (
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const secret = "S3CRET-0123456789"

// secretExchange carries the secret in every place that may hold one, whatever its end.
func secretExchange(end exchange.End) *exchange.Exchange {
	x := streamed(`{"a":1}`, "answer")
	x.End = end
	x.UpstreamURL = "http://u:" + secret + "@engine/"
	x.Request.Target = "/v1/chat/completions?api_key=" + secret + "&a=1"
	x.Request.Headers = []exchange.Header{
		{Name: "Authorization", Value: "Bearer " + secret}, {Name: "authorization", Value: "Basic " + secret},
		{Name: "AUTHORIZATION", Value: "token " + secret}, {Name: "Proxy-Authorization", Value: "Digest " + secret},
		{Name: "X-Api-Key", Value: secret}, {Name: "api-key", Value: secret}, {Name: "x-goog-api-key", Value: secret},
		{Name: "Cookie", Value: "sid=" + secret + "; b=" + secret}, {Name: "X-Auth-Token", Value: secret},
	}
	head := "POST " + x.Request.Target + " HTTP/1.1\r\n"
	for _, h := range x.Request.Headers {
		head += h.Name + ": " + h.Value + "\r\n"
	}
	x.Request.Head = []byte(head + "X-Session: a\r\n " + secret + "\r\n\r\n")
	x.Response.Headers = []exchange.Header{{Name: "Set-Cookie", Value: "sid=" + secret + "; Path=/"}}
	x.Response.Head = []byte("HTTP/1.1 200 OK\r\nSet-Cookie: sid=" + secret + "; Path=/\r\n\r\n")
	x.Response.Trailers = []exchange.Header{{Name: "X-Session-Token", Value: secret}}
	x.Cause = &exchange.Cause{Side: exchange.SideEngine, Text: "dial http://u:" + secret + "@engine/: refused"}
	x.Interventions = []exchange.Intervention{{Kind: "header_changed", Name: "Authorization", From: "Bearer " + secret, To: "Bearer " + secret}}
	return x
}

// TestNoSecretIsStored holds field reports RR-10 and RR-11: a scan of every file and of every value, decompressed,
// finds no credential, on every way into the store.
func TestNoSecretIsStored(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	w := newWriter(t, s, exchange.Run{
		Name: "secrets", Command: []string{"client", "--api-key", secret, "-H", "Authorization: Bearer " + secret},
		Upstreams: map[string]string{"default": "http://u:" + secret + "@engine/"},
	}, WriterOptions{Derive: deriveStub})
	for _, end := range []exchange.End{exchange.EndEOF, exchange.EndClientGone, exchange.EndReset, exchange.EndConnectFailed} {
		x := secretExchange(end)
		for range 2 { // the second is a duplicate: it is refused later, not stored unmasked
			if !w.Offer(x) {
				t.Fatal("refused")
			}
		}
	}
	run := closeWriter(t, w)
	for _, row := range summaries(t, s, run.ID) {
		if x, _, err := s.Exchange(row.ID); err != nil || !strings.Contains(string(x.Request.Head), "Authorization: Bearer ***\r\n") {
			t.Errorf("the scheme is gone: %q, %v", x.Request.Head, err)
		}
	}
	values := 0
	err := s.view(func(txn *badger.Txn) error {
		return eachKey(txn, nil, func(item *badger.Item) error {
			v, err := item.ValueCopy(nil)
			if err != nil {
				return err
			}
			for _, part := range plainParts(t, s, item.Key(), v) {
				values++
				if strings.Contains(string(part)+string(v)+string(item.Key()), secret) {
					t.Errorf("the secret is in %q", item.Key())
				}
			}
			return nil
		})
	})
	if err != nil || values < 10 {
		t.Fatalf("%d values scanned, %v", values, err)
	}
	closeChecked(t, s)
	for path, b := range snapshot(t, dir) {
		if strings.Contains(b, secret) {
			t.Errorf("the secret is in %s", path)
		}
	}
}

// plainParts are a value, or what a block holds, without compression.
func plainParts(t *testing.T, s *Store, key, v []byte) (parts [][]byte) {
	t.Helper()
	if !strings.HasPrefix(string(key), blockPrefix) {
		if plain, err := unpack(s.dec, v); err == nil {
			return [][]byte{plain}
		}
		return [][]byte{v}
	}
	b, err := parseBlock(v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.slots {
		r := &fieldReader{b: b.slots[i].manifest}
		fields, err := unpack(s.dec, r.raw())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, b.slots[i].row, fields)
	}
	for _, packed := range b.bodies {
		body, err := unpack(s.dec, packed)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, body)
	}
	return parts
}
