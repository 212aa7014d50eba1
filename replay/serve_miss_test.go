package replay

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// TestMissIsExplained holds what a client is told of a changed prompt, in words and as data, in the form of its dialect.
func TestMissIsExplained(t *testing.T) {
	long := strings.Repeat("the same beginning of a long text, ", 20)
	body := func(last string, temperature string) string {
		return fmt.Sprintf(`{"model":"m","temperature":%s,"messages":[{"role":"system","content":%q},{"role":"user","content":%q}]}`, temperature, long, long+last)
	}
	var recordings []*exchange.Exchange
	for _, target := range []string{"/v1/chat/completions", "/v1/messages", "/api/chat", "/v1beta/models/m:generateContent", "/gate/v1/messages"} {
		for _, x := range []*exchange.Exchange{answering(body("one", "0"), chunkedHead, "a"), answering(body("two", "0.5"), chunkedHead, "b")} {
			x.Request.Target = target
			recordings = append(recordings, x)
		}
	}
	src := newShelf(recordings...)
	for _, tc := range []struct {
		target string
		text   func(doc map[string]any) any
	}{
		{"/v1/chat/completions", func(d map[string]any) any { return d["error"].(map[string]any)["message"] }},
		{"/v1/messages", func(d map[string]any) any { return d["error"].(map[string]any)["message"] }},
		{"/gate/v1/messages", func(d map[string]any) any {
			if d["type"] != "error" {
				return nil
			}
			return d["error"].(map[string]any)["message"]
		}},
		{"/api/chat", func(d map[string]any) any { return d["error"] }},
		{"/v1beta/models/m:generateContent", func(d map[string]any) any { return d["error"].(map[string]any)["message"] }},
	} {
		t.Run(tc.target, func(t *testing.T) {
			serving(t, src, ServeOptions{Speed: 1}, func(t *testing.T, c *counter) {
				v := c.visit()
				defer v.conn.Close()
				asked := body("zwei", "0.5")
				got := v.ask("POST", strings.Replace(chatPost(asked), "/v1/chat/completions", tc.target, 1))
				if got.status != 404 || got.header.Get("Content-Type") != "application/json" || got.header.Get("X-Should-Retry") != "false" {
					t.Errorf("%d %v", got.status, got.header)
				}
				var doc map[string]any
				if err := json.Unmarshal([]byte(got.body), &doc); err != nil {
					t.Fatalf("%v: %s", err, got.body)
				}
				text := fmt.Sprint(tc.text(doc))
				for _, want := range []string{"h1:", "not in the recording", "$.messages[1].content (..."} {
					if !strings.Contains(text, want) {
						t.Errorf("%q is not in %q", want, text)
					}
				}
				miss := missIn(t, got)
				checkNearest(t, src, miss, tc.target)
				if diff := cmp.Diff([]Miss{miss}, c.misses); diff != "" {
					t.Errorf("told (-answered +told):\n%s", diff)
				}
				r := c.report()
				if r.Misses != 1 || r.Err() == nil || !strings.Contains(r.Err().Error(), "1 request was not in the recording") {
					t.Errorf("%+v %v", r, r.Err())
				}
			})
		})
	}
}

// missIn is what the answer to a miss holds as data.
func missIn(t *testing.T, got gotten) Miss {
	t.Helper()
	var doc struct {
		Miss Miss `json:"replay_miss"`
	}
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Miss
}

// checkNearest holds that the nearest is the second record of the path, which differs at the end of its last message.
func checkNearest(t *testing.T, src *shelf, m Miss, target string) {
	t.Helper()
	n := m.Nearest
	if n == nil || len(n.Differs) != 1 || n.Differs[0].Path != "$.messages[1].content" ||
		!strings.HasSuffix(*n.Differs[0].Recorded, `two"`) || !strings.HasSuffix(*n.Differs[0].Asked, `zwei"`) {
		t.Fatalf("nearest %+v", n)
	}
	if x := src.xs[n.Exchange]; x.Request.Target != target || string(x.Response.Body.Bytes()) != "b" {
		t.Errorf("nearest is %s", n.Exchange)
	}
}

// TestMissWithoutNeighbor holds what is told where nothing is recorded for the path, and where the body is no JSON.
func TestMissWithoutNeighbor(t *testing.T) {
	text := answering("plain text", chunkedHead, "x")
	text.Request.Target, text.Request.Headers = "/v1/audio?lang=en", []exchange.Header{{Name: "Content-Type", Value: "text/plain"}}
	serving(t, newShelf(answering(question, chunkedHead, "x"), text), ServeOptions{}, func(t *testing.T, c *counter) {
		ask := func(target, kind, body string) string {
			v := c.visit()
			defer v.conn.Close()
			return v.ask("POST", fmt.Sprintf("POST %s HTTP/1.1\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", target, kind, len(body), body)).body
		}
		if got := ask("/v1/completions", "application/json", question); !strings.Contains(got, "recorded are POST /v1/chat/completions, POST /v1/audio") {
			t.Errorf("another path: %s", got)
		}
		if got := ask("/v1/audio?lang=de", "text/plain", "plain test"); !strings.Contains(got, `"path":"query","recorded":"lang=en","asked":"lang=de"`) ||
			!strings.Contains(got, `"path":"body","recorded":"plain text","asked":"plain test"`) {
			t.Errorf("no JSON: %s", got)
		}
	})
}

// TestMissKeepsSecrets holds that no credential of request or record is told.
func TestMissKeepsSecrets(t *testing.T) {
	const recordedKey, askedKey = "sk-proj-0123456789abcdefghijklmnop0123456789", "sk-proj-zyxwvutsrqponmlkjihgfedcba9876543210"
	x := answering(`{"a":"`+recordedKey+`","b":1}`, chunkedHead, "x")
	serving(t, newShelf(x), ServeOptions{}, func(t *testing.T, c *counter) {
		v := c.visit()
		defer v.conn.Close()
		body := `{"a":"` + askedKey + `","b":2}`
		got := v.ask("POST", strings.Replace(chatPost(body, "Authorization: Bearer "+askedKey), "completions", "completions?api_key="+askedKey, 1))
		told := got.body + c.misses[0].Text()
		if strings.Contains(told, recordedKey[:16]) || strings.Contains(told, askedKey[:16]) || !strings.Contains(told, "$.b") {
			t.Errorf("told: %s", told)
		}
	})
}

// lying is a source whose rows say another key than their requests make, which is what a collision looks like.
type lying struct {
	*shelf
	key string
}

func (l lying) Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for row, err := range l.shelf.Summaries(run) {
			row.Key = l.key
			if !yield(row, err) {
				return
			}
		}
	}
}

// TestCollisionIsNoAnswer holds that a request which only shares the key of a recorded one is not answered by it.
func TestCollisionIsNoAnswer(t *testing.T) {
	src := newShelf(answering(question, chunkedHead, "secret of another"))
	asked := strings.Replace(question, "why", "who", 1)
	key := keyOfChat(asked)
	s, err := NewStandIn(t.Context(), lying{src, key}, &src.run, Filter{}, ServeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	script := s.Answer(simChat(asked))
	if body := string(script.Steps[0].Data); script.Status != 404 || !strings.Contains(body, "has the same key") || !strings.Contains(body, key) {
		t.Errorf("%d %s", script.Status, body)
	}
	if r := s.Report(); r.Misses != 1 || r.Answered != 0 {
		t.Errorf("%+v", r)
	}
}

// forgetful is a source that loses its exchanges.
type forgetful struct{ *shelf }

func (forgetful) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	return nil, exchange.Summary{}, fmt.Errorf("%w: block of %s", exchange.ErrDamaged, id)
}

// TestBrokenRecordIsTold holds that a record which cannot be read is an error of ours, and no miss.
func TestBrokenRecordIsTold(t *testing.T) {
	src := newShelf(answering("", chunkedHead, "x"))
	src.rows[0].Digest = "sha256:of something"
	var told []Miss
	s, err := NewStandIn(t.Context(), forgetful{src}, &src.run, Filter{}, ServeOptions{OnMiss: func(m Miss) { told = append(told, m) }})
	if err != nil {
		t.Fatal(err)
	}
	script := s.Answer(simChat(""))
	if script.Status != 500 || !strings.Contains(string(script.Steps[0].Data), "damaged") || len(told) != 1 || !strings.Contains(told[0].Text(), "damaged") {
		t.Errorf("%d %s, told %+v", script.Status, script.Steps[0].Data, told)
	}
	if r := s.Report(); r.Failed != 1 || r.Err() == nil {
		t.Errorf("%+v", r)
	}
	src.rows[0].Digest, src.rows[0].RequestBytes = "", 1
	if _, err := NewStandIn(t.Context(), forgetful{src}, &src.run, Filter{}, ServeOptions{}); err == nil {
		t.Error("an index was made of records that cannot be read")
	}
}

// TestWhatIsNoAnswer holds that records without an answer are left out, told by reason, and explained when they are asked.
func TestWhatIsNoAnswer(t *testing.T) {
	named := func(word string, edit func(x *exchange.Exchange)) *exchange.Exchange {
		x := answering(strings.Replace(question, "why", word, 1), chunkedHead, "x")
		edit(x)
		return x
	}
	src := newShelf(
		named("unreached", func(x *exchange.Exchange) { x.End, x.Response.Status = exchange.EndConnectFailed, 0 }),
		named("upgraded", func(x *exchange.Exchange) { x.Response.Status = 101 }),
		named("cut", func(x *exchange.Exchange) { x.State, x.Response.Body.Size = exchange.StateTruncated, 9 }),
		named("cut request", func(x *exchange.Exchange) { x.State, x.Request.Body.Size = exchange.StateTruncated, 999 }),
	)
	if _, err := NewStandIn(t.Context(), src, &src.run, Filter{}, ServeOptions{}); err == nil || !strings.Contains(err.Error(), "no answer that can be given") {
		t.Errorf("a run without an answer: %v", err)
	}
	src.put(named("whole", func(*exchange.Exchange) {}))
	serving(t, src, ServeOptions{}, func(t *testing.T, c *counter) {
		if got := c.post(strings.Replace(question, "why", "cut", 1)); got.status != 404 || !strings.Contains(got.body, "recorded without an answer") {
			t.Errorf("%d %s", got.status, got.body)
		}
		want := map[string]int{leftNoAnswer: 1, leftTunnel: 1, leftCut: 1, leftRequest: 1}
		if r := c.report(); r.Recorded != 1 || cmp.Diff(want, r.LeftOut) != "" || c.misses[0].Why != MissNoAnswer {
			t.Errorf("%+v", r)
		}
	})
}

// TestNearestOfMany holds that the nearest is found in a large record both by size and by order, and that the search is
// bounded.
func TestNearestOfMany(t *testing.T) {
	src := &reading{shelf: newShelf()}
	for i := range 2000 {
		src.put(answering(fmt.Sprintf(`{"n":%d,"messages":[{"content":%q}]}`, i, strings.Repeat("x", i)), chunkedHead, "x"))
	}
	for i := range src.rows {
		src.rows[i].Digest = "sha256:known"
	}
	s, err := NewStandIn(t.Context(), src, &src.run, Filter{}, ServeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	src.n = 0
	n := s.index.nearest(ask(simChat(fmt.Sprintf(`{"n":1500,"messages":[{"content":%q}]}`, strings.Repeat("x", 1499)+"y"))))
	if n == nil || len(n.Differs) != 1 || n.Differs[0].Path != "$.messages[0].content" {
		t.Errorf("by size: %+v", n)
	}
	if src.n > nearbyNext+nearbySize {
		t.Errorf("%d records were read", src.n)
	}
	s.Answer(simChat(fmt.Sprintf(`{"n":700,"messages":[{"content":%q}]}`, strings.Repeat("x", 700))))
	n = s.index.nearest(ask(simChat(fmt.Sprintf(`{"n":701,"messages":[{"content":%q}]}`, strings.Repeat("z", 9)))))
	if n == nil || len(n.Differs) != 1 {
		t.Errorf("by order: %+v", n)
	}
}

// reading counts the exchanges that are read of it.
type reading struct {
	*shelf
	n int
}

func (r *reading) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	r.n++
	return r.shelf.Exchange(id)
}
