package web

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/recorder"
)

// TestSearch holds that a text is found wherever it stands, in whatever form, and how the search tells of itself.
func TestSearch(t *testing.T) {
	asks := []asked{
		{model: "a", prompt: "the needle is asked for", pieces: []string{"no"}},
		{model: "a", prompt: "x", pieces: []string{"the nee", "dle is", " answered"}},
		{model: "b", prompt: "größe", pieces: []string{"Größe \"in\" quotes"}},
		{model: "b", prompt: "x", pieces: []string{"<script>needle</script>"}},
	}
	store, run, rows := recorded(t, asks...)
	addr := serve(t, Options{Store: store})
	for query, want := range map[string][]int{
		"text=needle": {0, 1, 3}, "text=NEEDLE+is": {0, 1}, "text=gr%C3%B6%C3%9Fe": {2}, "text=%22in%22": {2}, "text=nowhere": nil, "text=needle&model=b": {3},
	} {
		resp, body := answerOf(t, http.MethodGet, "http://"+addr+"/runs/r/search?"+query)
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d", query, resp.StatusCode)
		}
		var hits []string
		var last found
		for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
			last = found{}
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Fatal(err)
			}
			if last.Row != "" {
				hits = append(hits, last.Row)
				inert(t, query, last.Row)
			}
		}
		if len(hits) != len(want) || !last.Done || last.Hits != len(want) || last.Looked != last.Of {
			t.Errorf("%s: %d hits, end %+v", query, len(hits), last)
			continue
		}
		for i, n := range want {
			if !strings.Contains(hits[i], string(rows[n].ID)) {
				t.Errorf("%s: hit %d is %s", query, i, hits[i])
			}
		}
	}
	if _, body := page(t, addr, "/runs/"+string(run.ID)+"?text=needle"); !strings.Contains(body, `data-search="/runs/`+string(run.ID)+`/search?text=needle"`) {
		t.Error("the page begins no search")
	}
	damaged := serve(t, withStore(&fake{rows: []exchange.Summary{rowOf(1, "m", "/p", 200, 1)}, broken: nil}))
	if _, body := answerOf(t, http.MethodGet, "http://"+damaged+"/runs/r/search?text=x"); !strings.Contains(body, `"looked":1,"of":1,"hits":0,"done":true`) {
		t.Errorf("a row that is gone: %s", body) // pruned between list and look
	}
}

// searched gives the seqs of the rows that a search finds, in the order of their places, and its last line.
func searched(t *testing.T, addr, query string) (seqs []int, last found) {
	t.Helper()
	_, body := answerOf(t, http.MethodGet, "http://"+addr+"/runs/r/search?"+query)
	places := map[int]int{}
	for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
		last = found{}
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err)
		}
		if last.Row != "" {
			_, rest, _ := strings.Cut(last.Row, `">`)
			_, rest, _ = strings.Cut(rest, `/exchanges/`)
			_, rest, _ = strings.Cut(rest, `">`)
			seq, _, _ := strings.Cut(rest, "<")
			n, err := strconv.Atoi(seq)
			if err != nil {
				t.Fatalf("row %s", last.Row)
			}
			places[last.At] = n
		}
	}
	for _, at := range slices.Sorted(maps.Keys(places)) {
		seqs = append(seqs, places[at])
	}
	return seqs, last
}

// TestSearchGivesTheFirstHits holds that a search for what is everywhere ends when it has the first rows of the order asked
// for, and says that there are more.
func TestSearchGivesTheFirstHits(t *testing.T) {
	const n = 3 * mostHits
	var asks []asked
	for i := range n {
		asks = append(asks, asked{model: "m", prompt: "needle " + strings.Repeat("x", 600), pieces: strings.Fields(strings.Repeat("tok ", i%97+1))})
	}
	store, _, rows := recorded(t, asks...)
	addr := serve(t, Options{Store: store})
	outputs := slices.Clone(rows)
	slices.SortStableFunc(outputs, func(a, b exchange.Summary) int {
		return int(b.Metrics["completion_tokens"].Value - a.Metrics["completion_tokens"].Value)
	})
	falling := slices.Clone(rows)
	slices.Reverse(falling)
	for sort, want := range map[string][]exchange.Summary{"": rows, "seq": rows, "-seq": falling, "-output": outputs} {
		seqs, last := searched(t, addr, "text=NEEDLE&sort="+sort)
		if len(seqs) != mostHits || !last.Full || !last.Done || last.Hits < mostHits || last.Of != n {
			t.Fatalf("by %q: %d rows, end %+v", sort, len(seqs), last)
		}
		for i, seq := range seqs {
			if uint64(seq) != want[i].Seq {
				t.Errorf("by %q: row %d is %d, want %d", sort, i, seq, want[i].Seq)
				break
			}
		}
	}
}

// many is a store of many pieces, each of one exchange that has the text.
type many struct {
	*fake
	read *atomic.Int64
}

func (s many) Pieces(exchange.ID) ([]recorder.Piece, error) {
	return make([]recorder.Piece, len(s.rows)), nil
}

func (s many) ReadPiece(_ recorder.Piece, _ func(exchange.ID, uint64) bool, visit func(*exchange.Exchange) error) error {
	row := s.rows[s.read.Add(1)-1]
	return visit(&exchange.Exchange{ID: row.ID, Seq: row.Seq, Request: exchange.Request{Body: exchange.NewBody([]byte("needle"))}})
}

// TestSearchReadsNoMoreThanItGives holds that what lies behind the first hits is not read.
func TestSearchReadsNoMoreThanItGives(t *testing.T) {
	var rows []exchange.Summary
	for i := range 20 * mostHits {
		rows = append(rows, rowOf(uint64(i+1), "m", "/p", 200, 1))
	}
	s := many{&fake{rows: rows}, new(atomic.Int64)}
	o := withStore(nil)
	o.Store = s
	if _, last := searched(t, serve(t, o), "text=needle"); !last.Full || last.Hits < mostHits || last.Hits > 2*mostHits {
		t.Errorf("%+v", last)
	}
	if n := s.read.Load(); n > 2*mostHits {
		t.Errorf("%d pieces were read", n)
	}
}

// torn is a store whose pieces cannot be read.
type torn struct {
	*fake
	err  error
	read func()
}

func (s torn) ReadPiece(recorder.Piece, func(exchange.ID, uint64) bool, func(*exchange.Exchange) error) error {
	if s.read != nil {
		s.read()
	}
	return s.err
}

// TestSearchEnds holds that a search ends with its reader, and tells what it could not read.
func TestSearchEnds(t *testing.T) {
	rows := []exchange.Summary{rowOf(1, "m", "/p", 200, 1)}
	o := withStore(nil)
	o.Store = torn{&fake{rows: rows}, errors.New("page is torn"), nil}
	if _, last := searched(t, serve(t, o), "text=x"); !last.Done || !strings.Contains(last.Error, "page is torn") {
		t.Errorf("a torn piece: %+v", last)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the reader is gone")
	o.Store = torn{&fake{rows: rows}, nil, func() { cancel(gone) }}
	s := NewServer(o)
	w := httptest.NewRecorder()
	e := searching{s: s, w: w, enc: json.NewEncoder(w), index: newIndex(runID), needles: needles("x"), cores: 2, sought: make([]soughtRow, 1)}
	if err := e.Run(ctx); !errors.Is(err, gone) {
		t.Errorf("without a reader: %v", err)
	}
	for range cap(s.whole) { // every place is taken, and nobody looks any more
		s.whole <- struct{}{}
	}
	if err := e.look(ctx, recorder.Piece{}, &looks{}); !errors.Is(err, gone) {
		t.Errorf("while it waits: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestLettersOfJoinedTexts holds that a text in pieces is looked for wherever its letters are, and nowhere else.
func TestLettersOfJoinedTexts(t *testing.T) {
	for _, c := range []struct {
		text, body string
		want       bool
	}{
		{"abc", `{"a":"b","c":1}`, true}, {"abz", `{"a":"b","c":1}`, false}, {"abz", `{"a":"b\u007a"}`, true}, {`a"/\`, "a", true}, {"a b", "ab", true}, {"é", "e", false},
	} {
		e := searching{needles: needles(c.text)}
		if got := e.mayJoin([]byte(c.body)); got != c.want {
			t.Errorf("%q in %s: %v", c.text, c.body, got)
		}
	}
	for _, text := range []string{"", "aBC é ÄZ", "AZ[`{", "\xff\xc3Z", "İ ẞ"} {
		if got, want := string(appendLower([]byte("x"), []byte(text))), "x"+strings.ToLower(strings.ToValidUTF8(text, "\ufffd")); got != want && utf8.ValidString(text) {
			t.Errorf("%q in lower case is %q, want %q", text, got, want)
		}
	}
}
