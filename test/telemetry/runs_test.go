package telemetry

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// byCell and byCase name the span that an exchange of a run stands below, "" for the run's own.
func byCell(x *exchange) string {
	if x.Cell == "" {
		return ""
	}
	return "cell " + x.Cell
}

func byCase(x *exchange) string {
	switch {
	case x.Item == nil || x.Item.Warmup:
		return ""
	case x.Item.Conversation != "":
		return "case " + x.Item.Conversation
	}
	return "case " + x.Item.Item
}

// compareRun holds the trace of a run against its records: one root, a span of each cell or case below it that lasts as long
// as its exchanges, and below that each exchange, field by field.
func compareRun(t *testing.T, j *jaeger, trace string, records []exchange, root string, group func(*exchange) string) {
	t.Helper()
	groups := map[string]int{}
	for i := range records {
		if name := group(&records[i]); name != "" {
			groups[name]++
		}
	}
	spans := j.trace(t, trace, 1+len(groups)+len(records))
	byName, byID := map[string]*span{}, map[string]*span{}
	for i := range spans {
		byID[spans[i].SpanID] = &spans[i]
		if spans[i].kind() == "internal" {
			byName[spans[i].Name] = &spans[i]
		}
	}
	top := byName[root]
	if top == nil || top.ParentSpanID != "" || len(byName) != 1+len(groups) {
		t.Fatalf("the run is %+v, and there are %d spans beside those of exchanges, want %d", top, len(byName), 1+len(groups))
	}
	top.same(t, "benchproxy.run.id", records[0].Run)
	top.same(t, "benchproxy.exchanges", strconv.Itoa(len(records)))
	for name, n := range groups {
		s := byName[name]
		if s == nil || s.ParentSpanID != top.SpanID {
			t.Fatalf("%s is %+v", name, s)
		}
		s.same(t, "benchproxy.exchanges", strconv.Itoa(n))
	}
	for i := range records {
		x := &records[i]
		of, own := x.sent()
		s, above := byID[own], top
		if name := group(x); name != "" {
			above = byName[name]
		}
		if of != trace || s == nil || s.ParentSpanID != above.SpanID {
			t.Errorf("exchange %s of trace %s is %+v, want it below %s", x.ID, of, s, above.Name)
			continue
		}
		if above != top && nanos(t, s.End) > nanos(t, above.End) {
			t.Errorf("%s ends before an exchange of it", above.Name)
		}
		compareClient(t, x, s, strings.TrimPrefix(root, "benchproxy "))
	}
}

// benchConfig has a scripted engine do four cells.
const benchConfig = `{
  "engines": {"sim": {"profile": "sim", "extra_args": ["--set", "ttft=2ms; decode=2000"]}},
  "backends": {"cpu": {"kind": "cpu"}},
  "models": {"toy": {"size_class": "small", "engines": {"sim": "toy"}}},
  "defaults": {"engines": ["sim"], "backends": ["cpu"], "models": ["toy"], "scenarios": ["text_short", "agentic"], "concurrency": [1, 2]}
}`

// benched holds the tree of each run of a bench: run, cells, exchanges.
func benched(t *testing.T, j *jaeger) {
	dir := t.TempDir()
	config, store := filepath.Join(dir, "bench.json"), filepath.Join(dir, "store")
	if err := os.WriteFile(config, []byte(benchConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	env := j.env("benched", "XDG_DATA_HOME="+dir, "HOME="+dir)
	_, said := run(t, env, 0, "bench", config, "--results", filepath.Join(dir, "results"), "--force", "--run", "b", "--store", store)
	rows, _ := run(t, nil, 0, "store", "ls", "--store", store)
	names := regexp.MustCompile(`(?m)^(b-\S+) `).FindAllSubmatch(rows, -1)
	if len(names) == 0 {
		t.Fatalf("there is no run in %s", rows)
	}
	cells := 0
	for _, m := range names {
		records := shown(t, store, string(m[1]))
		fillCells(t, store, string(m[1]), records)
		trace, _ := records[0].sent()
		if !strings.Contains(said, "is trace "+trace) {
			t.Errorf("trace %s is not named: %s", trace, said)
		}
		compareRun(t, j, trace, records, "benchproxy bench", byCell)
		for i := range records {
			if records[i].Cell != "" && (i == 0 || records[i-1].Cell != records[i].Cell) {
				cells++
			}
		}
	}
	if cells < 4 {
		t.Errorf("%d cells have exchanges", cells)
	}
}

// fillCells reads the cells of records from an export, which has them.
func fillCells(t *testing.T, store, name string, records []exchange) {
	t.Helper()
	out, _ := run(t, nil, 0, "store", "export", name, "--store", store)
	for line := range bytes.Lines(out) {
		cell := regexp.MustCompile(`"cell":"([^"]+)"`).FindSubmatch(line)
		own, first := -1, len(line) // a line names its exchange before those it follows on
		for i := range records {
			if at := bytes.Index(line, []byte(records[i].ID)); at >= 0 && at < first {
				own, first = i, at
			}
		}
		if cell != nil && own >= 0 {
			records[own].Cell = string(cell[1])
		}
	}
}

// gated holds the tree of a gate suite: run, cases, and the exchanges of both engines. What the toys are judged as
// does not matter.
func gated(t *testing.T, j *jaeger) {
	engines := []string{startSim(t, "--toy", "{}"), startSim(t, "--toy", "{}")}
	store := filepath.Join(t.TempDir(), "store")
	_, said, _ := runAny(t, j.env("gated"), "gate", "--suite", "dev", "--target", engines[0], "--reference", engines[1], "--no-identify",
		"--engine-label", "llamacpp@c1", "--reference-label", "llamacpp@b1", "--model", "toy", "--weights-id", "W", "--context", "2000", "--run", "g", "--store", store)
	m := regexp.MustCompile(`run g \w+ is trace ([0-9a-f]{32})`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("no trace is named: %s", said)
	}
	records := shown(t, store, "g")
	compareRun(t, j, m[1], records, "benchproxy gate", byCase)
	sides := map[string]bool{}
	for i := range records {
		sides[records[i].Upstream] = true
	}
	if len(sides) != 2 {
		t.Errorf("exchanges are of %v", sides)
	}
}

// served holds what a stand-in tells: a span of each answer that leads to the recorded exchange, a span of each miss, and
// what is passed on with both sides, in the client's trace where it has one.
func served(t *testing.T, j *jaeger, sim, store string, records []exchange) {
	to := filepath.Join(t.TempDir(), "served")
	file := filepath.Join(t.TempDir(), "r.jsonl")
	run(t, nil, 0, "store", "export", "r", "--store", store, "--out", file)
	refusing := standIn(t, j, "refused", file)
	ask(t, "POST", refusing.base+"/v1/chat/completions", streamed)
	const unknown = `{"model":"sim","messages":[{"role":"user","content":"never asked"}]}`
	if code, _ := ask(t, "POST", refusing.base+"/v1/chat/completions", unknown); code != 404 {
		t.Errorf("a miss has status %d", code)
	}
	ask(t, "POST", refusing.base+"/v1/chat/completions", streamed, "Traceparent", client1)
	refusing.stop(syscall.SIGINT)
	trace := refusing.said(`what was served is trace ([0-9a-f]{32})`)
	spans := j.trace(t, trace, 3)
	find := func(list []span, name string) *span {
		i := slices.IndexFunc(list, func(s span) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("there is no span %s in %+v", name, list)
		}
		return &list[i]
	}
	root, answer, miss := find(spans, "benchproxy serve"), find(spans, "POST /v1/chat/completions"), find(spans, "miss POST /v1/chat/completions")
	root.same(t, "benchproxy.replay.misses", "1")
	root.same(t, "benchproxy.exchanges", "3")
	miss.same(t, "benchproxy.replay.miss", "not_recorded")
	if !miss.failed() || answer.failed() || answer.kind() != "server" || answer.ParentSpanID != root.SpanID || miss.ParentSpanID != root.SpanID {
		t.Errorf("answer %+v, miss %+v", answer, miss)
	}
	ledTo(t, answer, records)
	theirs := j.trace(t, client1[3:35], 1)
	if theirs[0].ParentSpanID != client1[36:52] || len(theirs[0].Links) != 2 || theirs[0].Links[0].SpanID != root.SpanID {
		t.Errorf("an answer in the client's trace is %+v", theirs[0])
	}

	passing := standIn(t, j, "passed", file, "--on-miss", "record", "--target", sim, "--run", "missed", "--store", to, "--no-identify")
	ask(t, "POST", passing.base+"/v1/chat/completions", unknown)
	ask(t, "POST", passing.base+"/v1/chat/completions", strings.Replace(unknown, "never", "not", 1), "Traceparent", client2)
	passing.stop(syscall.SIGINT)
	missed := shown(t, to, "missed")
	if len(missed) != 2 {
		t.Fatalf("%d misses are recorded", len(missed))
	}
	of, _ := missed[0].sent()
	mine := j.trace(t, of, 3)
	root = find(mine, "benchproxy serve")
	passedOn(t, &missed[0], mine, root.SpanID)
	theirs = j.trace(t, client2[3:35], 2)
	if side := passedOn(t, &missed[1], theirs, client2[36:52]); len(side.Links) != 1 || side.Links[0].SpanID != root.SpanID {
		t.Errorf("what is passed on in the client's trace is linked to %+v", side.Links)
	}
}

// passedOn holds both sides of a miss that was passed on: the client's below parent, and the engine's below that.
func passedOn(t *testing.T, x *exchange, spans []span, parent string) (side *span) {
	t.Helper()
	_, own := x.sent()
	i := slices.IndexFunc(spans, func(s span) bool { return s.SpanID == own })
	k := slices.IndexFunc(spans, func(s span) bool { return s.kind() == "server" })
	if i < 0 || k < 0 || spans[i].ParentSpanID != spans[k].SpanID || spans[k].ParentSpanID != parent {
		t.Fatalf("the sides of %s are not in %+v", x.ID, spans)
	}
	compareClient(t, x, &spans[i], "record")
	return &spans[i]
}

const (
	client1 = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	client2 = "00-2af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// ledTo holds that a span of an answer is linked to the recorded exchange that it names.
func ledTo(t *testing.T, answer *span, records []exchange) {
	t.Helper()
	i := slices.IndexFunc(records, func(x exchange) bool { return x.ID == attr(answer.Attributes, "benchproxy.replayed.record.id") })
	if i < 0 {
		t.Fatalf("the answer %+v is of no record", answer)
	}
	trace, own := records[i].sent()
	last := answer.Links[len(answer.Links)-1]
	if last.TraceID != trace || last.SpanID != own {
		t.Errorf("the answer is linked to %+v, want %s %s", answer.Links, trace, own)
	}
	answer.same(t, "http.response.status_code", strconv.Itoa(records[i].Status))
}

// standIn serves a file.
func standIn(t *testing.T, j *jaeger, service, file string, args ...string) *recording {
	t.Helper()
	r := &recording{}
	args = append([]string{"replay", "--serve", file, "--listen", "127.0.0.1:0", "--speed", "0"}, args...)
	r.process = start(t, j.env(service), tool(t, "TEST_BENCHPROXY"), args...)
	r.base = r.said(`^stand-in at (http://\S+) `)
	return r
}

// revalidated holds that judging a record anew sends nothing and tells no span.
func revalidated(t *testing.T, j *jaeger, store string) {
	_, said, _ := runAny(t, j.env("revalidated"), "replay", "--revalidate", "v", "--store", store)
	if strings.Contains(said, "is trace") || slices.Contains(j.services(t), "revalidated") {
		t.Errorf("a revalidation is traced: %s", said)
	}
}
