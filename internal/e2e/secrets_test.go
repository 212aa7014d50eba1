package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
)

// fetch reads a document of the admin listener.
func fetch(t testing.TB, r *rig, path string) []byte {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Get("http://" + r.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("GET %s: status %d, %v: %s", path, resp.StatusCode, err, b)
	}
	return b
}

const secret = "S3cr3t-0123456789abcdef"

// credentials are all ways to send one, in odd cases.
func credentials() []string {
	return []string{
		"Authorization: Bearer " + secret, "aUTHORIZATION: bAsIc " + secret, "AUTHORIZATION: token " + secret,
		"authorization: Digest username=\"u\", response=\"" + secret + "\"", "authorization: " + secret,
		"proxy-AUTHORIZATION: Basic " + secret, "X-API-KEY: " + secret, "x-Api-Key: " + secret, "API-key: " + secret,
		"x-GOOG-api-key: " + secret, "COOKIE: sid=" + secret + "; theme=" + secret, "X-Auth-Token: " + secret,
		"OpenAI-Api-Key: " + secret, "X-Amz-Security-Token: " + secret,
	}
}

const (
	secretTarget = "/v1/chat/completions?API_Key=" + secret + "&key=" + secret + "&access_token=" + secret + "&n=1"
	setCookie    = "sid=" + secret + "; Path=/; HttpOnly"
	needle       = "a-needle-that-the-scan-must-find"
)

// TestRR10RR11RR40NoPathStoresASecret sends every kind of credential on every path into the store. Engine and client see them
// as they were sent; no byte of the store's files, decoded where they are compressed, and no answer of the admin listener
// holds one.
func TestRR10RR11RR40NoPathStoresASecret(t *testing.T) {
	answer := timed(0, sse(delta(needle)), sse(stop, "[DONE]"))
	answer.Headers = append(answer.Headers, exchange.Header{Name: "Set-Cookie", Value: setCookie}, exchange.Header{Name: "set-COOKIE", Value: setCookie})
	var scripts map[string]*sim.Script
	r := newRig(t, func(o *rigOptions) {
		o.engine.Handler = func(q sim.Request) *sim.Script { return scripts[caseOf(q)] }
	})
	broken, hung, refused := *answer, *answer, *answer
	broken.End, hung.End, refused.Status = sim.EndReset, sim.EndHang, 401
	scripts = map[string]*sim.Script{"reset": &broken, "abort": &hung, "refused": &refused}
	dead := r.front("http://"+deadAddr(t), proxy.UpstreamOptions{Name: "dead"}, proxy.ServerOptions{})
	key := r.front(r.url, proxy.UpstreamOptions{Name: "keyed", Credentials: func() []exchange.Header {
		return []exchange.Header{{Name: "Authorization", Value: "Bearer " + secret}}
	}}, proxy.ServerOptions{Key: secret})
	rejectsKey(t, r, r.front(r.url, proxy.UpstreamOptions{Name: "closed"}, proxy.ServerOptions{Key: "another key"}))
	var names []string
	for i := range credentials() {
		names = append(names, fmt.Sprint("scheme", i))
		scripts[names[i]] = answer
	}
	names = append(names, "reset", "abort", "refused", "connect", "keyed")
	scripts["keyed"] = answer
	for _, name := range names {
		addr := map[string]string{"connect": dead, "keyed": key}[name]
		if addr == "" {
			addr = r.addr
		}
		sendSecrets(t, r, addr, name)
	}
	for _, name := range names {
		checkMasked(t, r, name)
	}
	for _, path := range adminPaths(t, r) {
		if b := fetch(t, r, path); bytes.Contains(b, []byte(secret)) {
			t.Errorf("the secret is in %s", path)
		}
	}
	scanFiles(t, r.dir, false)
	r.close()
	scanFiles(t, r.dir, true)
}

// rejectsKey holds that a client with the wrong key is told so, in words without it, and leaves no record.
func rejectsKey(t *testing.T, r *rig, addr string) {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	a := c.send(request{target: secretTarget, name: "rejected", headers: credentials(), body: chatBody}).answer("POST", 0)
	if st := r.session.Stats(); a.StatusCode != 401 || bytes.Contains(a.body, []byte(secret)) || st.RefusedKey != 1 || st.Accepted != 0 {
		t.Errorf("a wrong key got %d %s, counters %+v", a.StatusCode, a.body, st)
	}
}

// sendSecrets sends one request with credentials, and holds that engine and client see what the other side sent.
func sendSecrets(t *testing.T, r *rig, addr, name string) {
	t.Helper()
	headers := credentials()
	var i int
	if n, _ := fmt.Sscanf(name, "scheme%d", &i); n == 1 {
		headers = headers[i : i+1]
	}
	c := dial(t, addr)
	defer c.Close()
	c.send(request{target: secretTarget, name: name, headers: headers, body: chatBody})
	limit := 0
	if name == "abort" {
		limit = 10
	}
	a := c.answer("POST", limit)
	if name == "connect" {
		if a.StatusCode != 502 || bytes.Contains(a.body, []byte(secret)) {
			t.Errorf("%s: the client got %d %s", name, a.StatusCode, a.body)
		}
		return
	}
	if got := a.Header.Values("Set-Cookie"); !slices.Equal(got, []string{setCookie, setCookie}) {
		t.Errorf("%s: the client got the cookies %q", name, got)
	}
	c.Close()
	engine := r.truth(t, name)
	for _, h := range headers {
		field, value, _ := strings.Cut(h, ": ")
		hop := strings.EqualFold(field, "Proxy-Authorization") // is for the next hop, which we are
		replaced := name == "keyed" && (strings.EqualFold(field, "Authorization") || strings.EqualFold(field, "X-Api-Key"))
		if sent := slices.Contains(engine.Headers, exchange.Header{Name: field, Value: value}); sent == hop && !replaced {
			t.Errorf("%s: the engine got %q: %v", name, h, sent)
		}
	}
	if engine.Target != secretTarget {
		t.Errorf("%s: the engine got the target %s", name, engine.Target)
	}
	if got, _ := exchange.HeaderValue(engine.Headers, "Authorization"); name == "keyed" && got != "Bearer "+secret {
		t.Errorf("%s: the engine got the credential %q", name, got)
	}
}

// checkMasked holds that a record keeps names and schemes and no value.
func checkMasked(t *testing.T, r *rig, name string) {
	t.Helper()
	x := r.stored(t, name, 0)
	for _, part := range []any{x.Request.Target, x.Request.Head, x.Request.Headers, x.Response.Head, x.Response.Headers,
		x.Interventions, x.Cause, x.UpstreamURL, x.row} {
		b, err := json.Marshal(part)
		if raw, ok := part.([]byte); ok {
			b = raw
		}
		if err != nil || bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s: the record holds the secret in %s", name, b)
		}
	}
	if got := x.Request.Target; !strings.HasPrefix(got, "/v1/chat/completions?API_Key=") || !strings.HasSuffix(got, "&n=1") {
		t.Errorf("%s: target %s", name, got)
	}
	for _, h := range x.Request.Headers {
		if strings.EqualFold(h.Name, "Authorization") && strings.Contains(h.Value, " ") {
			scheme, _, _ := strings.Cut(h.Value, " ")
			if !slices.Contains([]string{"Bearer", "bAsIc", "token", "Digest"}, scheme) {
				t.Errorf("%s: the scheme is gone from %q", name, h.Value)
			}
		}
	}
}

// adminPaths are all documents of the admin listener about the run.
func adminPaths(t testing.TB, r *rig) []string {
	t.Helper()
	paths := []string{"/healthz", "/api/v1/runs", "/api/v1/stats", "/api/v1/check"}
	run := "/api/v1/runs/" + string(r.run.ID)
	paths = append(paths, run, run+"/exchanges")
	for row, err := range r.store.Summaries(r.run.ID) {
		if err != nil {
			t.Fatal(err)
		}
		id := "/api/v1/exchanges/" + string(row.ID)
		paths = append(paths, "/api/v1/keys/"+row.Key, id, id+"/request/head", id+"/request/body", id+"/response/head", id+"/response/body")
	}
	return paths
}

// scanFiles looks for the secret in every file below dir, as it is and in every compressed block. Where the needle must
// be found, its absence says that the scan is blind.
func scanFiles(t *testing.T, dir string, found bool) {
	t.Helper()
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	blocks, seen := 0, false
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		look := func(b []byte, what string) {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("the secret is in %s %s", what, path)
			}
			seen = seen || bytes.Contains(b, []byte(needle))
		}
		look(b, "file")
		for at := bytes.IndexByte(b, 0x28); at >= 0 && at < len(b); {
			if bytes.HasPrefix(b[at:], []byte{0x28, 0xb5, 0x2f, 0xfd}) {
				if plain := firstFrame(dec, b[at:]); len(plain) > 0 {
					blocks++
					look(plain, "a compressed block of")
				}
			}
			next := bytes.IndexByte(b[at+1:], 0x28)
			if next < 0 {
				break
			}
			at += 1 + next
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found && !seen {
		t.Errorf("the scan of %s found no needle in %d compressed blocks: it is blind", dir, blocks)
	}
}

// firstFrame decodes the compressed frame at the start of b, as far as it goes.
func firstFrame(dec *zstd.Decoder, b []byte) []byte {
	if err := dec.Reset(bytes.NewReader(b)); err != nil {
		return nil
	}
	var out bytes.Buffer
	_, _ = io.CopyN(&out, dec, 1<<20) // what follows the frame is no frame
	return out.Bytes()
}
