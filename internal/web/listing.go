package web

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// pageRows is the number of rows of a page.
const pageRows = 100

// lastPage is the highest number of a page that is counted with.
const lastPage = 1 << 30

// filter is what the query of a listing asks for. Fields that are "" or zero ask for nothing.
type filter struct {
	Model   string // whole name
	Path    string // whole path
	Outcome string
	Status  string // 200, or 4xx
	From    string // as the browser's field gives it, in the time zone of this process
	To      string
	Text    string // in request or answer
	Sort    string // column, "-" before it for the largest first
	Page    int    // from 1

	from, to           int64
	statusLo, statusHi int
}

// timeForms are the forms of an instant in a query.
var timeForms = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.RFC3339, "2006-01-02"}

// sortColumns are the columns a listing can be sorted by: the order of acceptance, and figures.
var sortColumns = map[string]int{"seq": -1, "prompt": listPrompt, "output": listCompletion, "ttft": listTTFT, "decode": listDecode, "total": listTotal}

// readFilter reads a query. The error wraps exchange.ErrUsage.
func readFilter(q url.Values) (f filter, err error) {
	f = filter{Model: q.Get("model"), Path: q.Get("path"), Outcome: q.Get("outcome"), Status: q.Get("status"), From: q.Get("from"), To: q.Get("to"),
		Text: q.Get("text"), Sort: q.Get("sort"), Page: 1, to: math.MaxInt64, statusHi: math.MaxInt}
	usage := func(name, value string) error {
		return fmt.Errorf("%w: %s=%q is not understood", exchange.ErrUsage, name, value)
	}
	if v := q.Get("page"); v != "" {
		if f.Page, err = strconv.Atoi(v); err != nil || f.Page < 1 || f.Page > lastPage {
			return f, usage("page", v)
		}
	}
	if _, ok := sortColumns[strings.TrimPrefix(f.Sort, "-")]; f.Sort != "" && !ok {
		return f, usage("sort", f.Sort)
	}
	if f.Status != "" {
		lo, hi, ok := statusRange(f.Status)
		if !ok {
			return f, usage("status", f.Status)
		}
		f.statusLo, f.statusHi = lo, hi
	}
	if f.From != "" {
		t, ok := readTime(f.From)
		if !ok {
			return f, usage("from", f.From)
		}
		f.from = t.UnixNano()
	}
	if f.To != "" {
		t, ok := readTime(f.To)
		if !ok {
			return f, usage("to", f.To)
		}
		f.to = t.UnixNano()
	}
	return f, nil
}

// statusRange reads 404, 4xx or none.
func statusRange(s string) (lo, hi int, ok bool) {
	if s == "none" {
		return 0, 0, true
	}
	if class, found := strings.CutSuffix(strings.ToLower(s), "xx"); found {
		n, err := strconv.Atoi(class)
		return n * 100, n*100 + 99, err == nil && n >= 1 && n <= 9
	}
	n, err := strconv.Atoi(s)
	return n, n, err == nil && n >= 0 && n <= 999
}

func readTime(s string) (time.Time, bool) {
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// wordValue is a recorded word as a value of a form: quoted when something in it would not show or would steer.
func wordValue(word string) string {
	if plain(word) && !strings.HasPrefix(word, `"`) {
		return word
	}
	return strconv.QuoteToASCII(word)
}

// valueWord is the word that a value of a form stands for.
func valueWord(value string) string {
	if word, err := strconv.Unquote(value); err == nil && strings.HasPrefix(value, `"`) {
		return word
	}
	return value
}

// any reports whether the filter leaves anything out.
func (f *filter) any() bool {
	return f.Model != "" || f.Path != "" || f.Outcome != "" || f.Status != "" || f.From != "" || f.To != "" || f.Text != ""
}

// query is the filter as the query of an address, with changes: name, value, name, value ... An empty value takes a name
// out.
func (f *filter) query(changes ...string) string {
	q := url.Values{}
	set := func(name, value string) {
		if q.Del(name); value != "" {
			q.Set(name, value)
		}
	}
	for _, p := range [][2]string{{"model", f.Model}, {"path", f.Path}, {"outcome", f.Outcome}, {"status", f.Status}, {"from", f.From}, {"to", f.To}, {"text", f.Text}, {"sort", f.Sort}} {
		set(p[0], p[1])
	}
	for i := 0; i+1 < len(changes); i += 2 {
		set(changes[i], changes[i+1])
	}
	return q.Encode()
}

// matcher decides on entries of one index by number, so that no text is compared.
type matcher struct {
	f              *filter
	model, outcome int64 // -1 when not asked for
	request        []bool
}

// matcher makes one; the mutex of x is held.
func (x *index) matcher(f *filter) matcher {
	m := matcher{f: f, model: -1, outcome: -1}
	number := func(word string) int64 {
		if n, ok := x.words.at[word]; ok {
			return int64(n)
		}
		return math.MaxInt64 // no entry has it
	}
	if f.Model != "" {
		m.model = number(valueWord(f.Model))
	}
	if f.Outcome != "" {
		m.outcome = number(f.Outcome)
	}
	if f.Path != "" {
		wanted := valueWord(f.Path)
		m.request = make([]bool, len(x.words.list))
		for i, w := range x.words.list {
			_, path, _ := strings.Cut(w, " ")
			m.request[i] = path == wanted
		}
	}
	return m
}

func (m *matcher) takes(e *entry) bool {
	return (m.model < 0 || int64(e.model) == m.model) && (m.outcome < 0 || int64(e.outcome) == m.outcome) &&
		(m.request == nil || m.request[e.request]) && int(e.status) >= m.f.statusLo && int(e.status) <= m.f.statusHi &&
		e.started >= m.f.from && e.started <= m.f.to
}

// row is an entry with its words, for a template.
type row struct {
	ID      string
	Seq     uint64
	Started time.Time
	Model   string
	Request string
	Verdict string
	Outcome string
	Status  int
	Stream  bool
	Figures [listed]shown
}

func (x *index) row(e *entry) row {
	return row{ID: string(e.id[:]), Seq: e.seq, Started: time.Unix(0, e.started), Model: x.words.list[e.model], Request: x.words.list[e.request],
		Verdict: x.words.list[e.verdict], Outcome: x.words.list[e.outcome], Status: int(e.status), Stream: e.stream, Figures: e.figures}
}

// Name is the model, or what stands for it.
func (r row) Name() string { return cmp.Or(r.Model, r.Request) }

// Good reports whether the exchange came to its end.
func (r row) Good() bool { return r.Outcome == string(exchange.OutcomeComplete) }

// Prompt and the others are the figures by name.
func (r row) Prompt() shown { return r.Figures[listPrompt] }

// Output is the number of generated tokens.
func (r row) Output() shown { return r.Figures[listCompletion] }

// TTFT is the time to the first token in ms.
func (r row) TTFT() shown { return r.Figures[listTTFT] }

// Decode is the decode rate in tok/s.
func (r row) Decode() shown { return r.Figures[listDecode] }

// Total is the time to the end in ms.
func (r row) Total() shown { return r.Figures[listTotal] }

// choice is a value that a filter can take, and how many rows have it.
type choice struct {
	Value string
	N     int
}

// listing is one page of the rows that a filter takes.
type listing struct {
	Rows     []row
	Matched  int
	Models   []choice
	Paths    []choice
	Outcomes []choice
	Statuses []choice
}

// list makes the page that f asks for, and the choices over the whole run.
func (x *index) list(f *filter) listing {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sort()
	var l listing
	matched := x.matched(f)
	l.Matched = len(matched)
	from := min((f.Page-1)*pageRows, len(matched))
	for _, i := range matched[from:min(from+pageRows, len(matched))] {
		l.Rows = append(l.Rows, x.row(&x.entries[i]))
	}
	x.choices(&l)
	return l
}

// matched are the places of the entries that f takes, in its order; the mutex is held.
func (x *index) matched(f *filter) []int32 {
	m := x.matcher(f)
	out := make([]int32, 0, len(x.entries))
	for i := range x.entries {
		if m.takes(&x.entries[i]) {
			out = append(out, int32(i))
		}
	}
	name, down := strings.CutPrefix(f.Sort, "-")
	column, ok := sortColumns[name]
	switch {
	case !ok:
	case column < 0 && down:
		slices.Reverse(out)
	case column >= 0:
		x.sortByFigure(out, column, down)
	}
	return out
}

// sortByFigure puts places in the order of a figure, equal ones in that of their places, absent figures last. The order of
// a place is one number: that of its figure, and the place itself below it.
func (x *index) sortByFigure(places []int32, column int, down bool) {
	orders := make([]uint64, len(places))
	for i, p := range places {
		orders[i] = uint64(x.entries[p].figures[column].order(down))<<32 | uint64(uint32(p))
	}
	slices.Sort(orders)
	for i, o := range orders {
		places[i] = int32(uint32(o))
	}
}

// order is a number that grows with the figure, or the other way; that of an absent one is above all others.
func (s shown) order(down bool) uint32 {
	if s.basis == 0 {
		return math.MaxUint32
	}
	const sign = 1 << 31
	bits := math.Float32bits(s.value)
	if bits&sign != 0 {
		bits = ^bits
	} else {
		bits |= sign
	}
	if down {
		bits = ^bits
	}
	return min(bits, math.MaxUint32-1)
}

// choices are the words that a filter can ask for, counted over all entries; the mutex is held.
func (x *index) choices(l *listing) {
	if x.counted.of != len(x.entries) {
		x.counted = countedWords{of: len(x.entries)}
		x.count(&x.counted.listing)
	}
	c := &x.counted.listing
	l.Models, l.Paths, l.Outcomes, l.Statuses = c.Models, c.Paths, c.Outcomes, c.Statuses
}

// countedWords are the choices as they were when the index had so many entries.
type countedWords struct {
	of      int
	listing listing
}

func (x *index) count(l *listing) {
	models, requests, outcomes, statuses := make([]int, len(x.words.list)), make([]int, len(x.words.list)), make([]int, len(x.words.list)), map[uint16]int{}
	for i := range x.entries {
		e := &x.entries[i]
		models[e.model]++
		requests[e.request]++
		outcomes[e.outcome]++
		statuses[e.status]++
	}
	paths := map[string]int{}
	for i, n := range requests {
		if n > 0 {
			_, path, _ := strings.Cut(x.words.list[i], " ")
			paths[path] += n
		}
	}
	l.Models, l.Outcomes = x.choicesOf(models), x.choicesOf(outcomes)
	for p, n := range paths {
		l.Paths = append(l.Paths, choice{wordValue(p), n})
	}
	for s, n := range statuses {
		l.Statuses = append(l.Statuses, choice{statusWord(int(s)), n})
	}
	for _, list := range [][]choice{l.Models, l.Outcomes, l.Paths, l.Statuses} {
		slices.SortFunc(list, func(a, b choice) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Value, b.Value)) })
	}
	for _, list := range []*[]choice{&l.Models, &l.Paths} {
		*list = (*list)[:min(len(*list), mostChoices)]
	}
}

// mostChoices bounds what a menu offers: a client can make up a model for each request.
const mostChoices = 200

func (x *index) choicesOf(counts []int) (out []choice) {
	for i, n := range counts {
		if n > 0 && x.words.list[i] != "" {
			out = append(out, choice{wordValue(x.words.list[i]), n})
		}
	}
	return out
}

func statusWord(s int) string {
	if s == 0 {
		return "none"
	}
	return strconv.Itoa(s)
}
