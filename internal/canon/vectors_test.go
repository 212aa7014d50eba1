package canon

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// readVectors reads an index and refuses keys that its type does not know.
func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
}

func TestDigestVectors(t *testing.T) {
	var index struct {
		Vectors []struct {
			Name, JSON, Canonical, SHA256 string
		} `json:"vectors"`
		EqualPairs     [][2]string `json:"equal_pairs"`
		DifferentPairs [][2]string `json:"different_pairs"`
	}
	readVectors(t, "digest.json", &index)
	if len(index.Vectors) == 0 || len(index.EqualPairs) == 0 || len(index.DifferentPairs) == 0 {
		t.Fatal("no vectors")
	}
	digests := map[string]string{}
	for _, v := range index.Vectors {
		form, err := Interchange([]byte(v.JSON))
		if err != nil || string(form) != v.Canonical {
			t.Errorf("%s: form %s, %v, want %s", v.Name, form, err, v.Canonical)
		}
		got, err := Digest([]byte(v.JSON))
		if err != nil || got != "sha256:"+v.SHA256 {
			t.Errorf("%s: digest %s, %v, want %s", v.Name, got, err, v.SHA256)
		}
		digests[v.Name] = got
	}
	for _, p := range index.EqualPairs {
		if digests[p[0]] == "" || digests[p[0]] != digests[p[1]] {
			t.Errorf("%q and %q must have one digest: %q, %q", p[0], p[1], digests[p[0]], digests[p[1]])
		}
	}
	for _, p := range index.DifferentPairs {
		if digests[p[0]] == "" || digests[p[0]] == digests[p[1]] {
			t.Errorf("%q and %q must differ: %q, %q", p[0], p[1], digests[p[0]], digests[p[1]])
		}
	}
}

func chat(body string) *exchange.Request {
	return &exchange.Request{
		Method: "POST", Target: "/v1/chat/completions", Body: exchange.NewBody([]byte(body)),
		Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}},
	}
}

// TestKeyVectors are field report AX-24: recorders that match by raw bytes, or by too little.
func TestKeyVectors(t *testing.T) {
	var index struct {
		Requests []struct {
			Name, Body string
		} `json:"requests"`
		SameKey      [][2]string `json:"same_key"`
		DifferentKey [][2]string `json:"different_key"`
	}
	readVectors(t, "keys.json", &index)
	if len(index.Requests) == 0 || len(index.SameKey) == 0 || len(index.DifferentKey) == 0 {
		t.Fatal("no vectors")
	}
	keys := map[string]string{}
	for _, r := range index.Requests {
		k := RequestKey(chat(r.Body))
		if k.Raw {
			t.Errorf("%s: keyed by raw bytes: %s", r.Name, k.Why)
		}
		keys[r.Name] = k.Key
	}
	for _, p := range index.SameKey {
		if keys[p[0]] == "" || keys[p[0]] != keys[p[1]] {
			t.Errorf("%q and %q must have one key", p[0], p[1])
		}
	}
	for _, p := range index.DifferentKey {
		if keys[p[0]] == "" || keys[p[1]] == "" || keys[p[0]] == keys[p[1]] {
			t.Errorf("%q and %q must have different keys", p[0], p[1])
		}
	}
}
