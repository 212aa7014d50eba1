package wire

import (
	"bytes"
	"compress/gzip"
	"testing"
)

func TestDecodeBody(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte("text")) // into memory
	_ = z.Close()
	for _, tc := range []struct {
		coding, body, want string
		ok                 bool
	}{
		{"", "text", "text", true}, {"identity", "text", "text", true}, {"gzip", b.String(), "text", true},
		{"gzip", "text", "", false}, {"rot13", "text", "", false},
	} {
		got, ok := DecodeBody(tc.coding, []byte(tc.body))
		if ok != tc.ok || ok && string(got) != tc.want {
			t.Errorf("%s: %q %v", tc.coding, got, ok)
		}
	}
}
