package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// oddRun is a run with every kind of exchange that a store can hold.
func oddRun() *shelf {
	chat := recorded(0, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi  <b>&\u2028"}]}`, eventStream, say("a"), say("\xe2\x82\xac \u2028"), chatEnd)
	next := recorded(2*time.Second, `{"model":"m","messages":[{"content":"hi  <b>&\u2028","role":"user"},{"role":"assistant","content":"a"},{"role":"user","content":"on"}]}`, eventStream, say("b"), chatEnd)
	pretty := recorded(3*time.Second, "{\r\n  \"model\": \"m\",\n  \"prompt\": 1.0e2\n}", "application/json", `{"ok":true}`)
	looks := recorded(4*time.Second, `{"base64":"aGk="}`, "application/json", `"text"`)
	text := recorded(5*time.Second, `"only a string"`, "text/plain", "\x00\x01plain")
	zip := recorded(6*time.Second, "\x1f\x8b\x08\xff\xfe", "application/octet-stream", "\xff\xfe\x00")
	zip.Request.Headers = append(zip.Request.Headers, exchange.Header{Name: "Content-Encoding", Value: "gzip"})

	broken := recorded(7*time.Second, `{}`, eventStream, say("half"), `data: {"choices":[{"in`)
	broken.End, broken.Cause = exchange.EndReset, &exchange.Cause{Side: exchange.SideEngine, Code: "reset", Text: "it broke"}
	cut := recorded(8*time.Second, `{"long":"..."}`, "application/json", `{"answer":"..."}`)
	cut.State = exchange.StateTruncated
	cut.Request.Body.Size, cut.Response.Body.Size = 1<<20, 1<<20
	nothing := recorded(9*time.Second, "", "")
	nothing.Request.Method, nothing.Request.Target = "GET", "/v1/models?key=s3cret&b=%2F"
	nothing.Response = exchange.Response{}
	nothing.End, nothing.Cause = exchange.EndConnectFailed, &exchange.Cause{Side: exchange.SideEngine, Code: "connect", Text: "refused"}
	nothing.Timeline = exchange.Timeline{Wall: nothing.Timeline.Wall, Accepted: exchange.MarkAt(0)}
	sealDigests(nothing)
	changed := recorded(10*time.Second, `{"stream":true}`, eventStream, say("c"), chatEnd)
	changed.Interventions = []exchange.Intervention{{Kind: "header_added", Where: exchange.SideEngine, Name: "Authorization", To: "Bearer sk-abcdefghijklmnopqrstuvwxyz", Reason: "credential"}}
	changed.Response.Trailers, changed.Response.Informational = []exchange.Header{{Name: "X-T", Value: "1"}}, []int{100, 103}
	changed.Origin = &exchange.Origin{Exchange: chat.ID, Key: "h1:0", Occurrence: 2}
	changed.Item = &exchange.PlanItem{Item: "x", Turns: 1}
	changed.Timeline.Intended = exchange.MarkAt(-5000)
	changed.Tunnel = &exchange.Tunnel{ToEngine: 1}
	late := recorded(time.Second, `{"model":"m","messages":[]}`, "application/json", `{}`) // sealed in another order than it began
	return newShelf(chat, next, pretty, looks, text, zip, broken, cut, nothing, changed, late)
}

func TestExportAndImportKeepTheWorkload(t *testing.T) {
	for _, format := range []Format{FormatJSONL, FormatHAR} {
		t.Run(string(format), func(t *testing.T) {
			s := oddRun()
			want, err := FromRun(context.Background(), s, &s.run, Filter{})
			if err != nil {
				t.Fatal(err)
			}
			file, report := exported(t, s, ExportOptions{Format: format, Harness: "test"})
			if report.Workload != want.Hash() || report.Items != len(s.rows) {
				t.Errorf("export reports %d items of workload %s, want %d of %s", report.Items, report.Workload, len(s.rows), want.Hash())
			}
			if strings.Contains(file, "s3cret") || strings.Contains(file, "sk-abc") {
				t.Error("a credential is in the file")
			}
			got := load(t, file, FileOptions{})
			if got.Hash() != want.Hash() {
				t.Errorf("the file has workload %s, want %s", got.Hash(), want.Hash())
			}
			if n := len(got.Items); n != len(s.rows)-1 {
				t.Fatalf("%d items", n)
			}
			for i := range got.Items {
				if g, w := payload(t, &got.Items[i]), payload(t, &want.Items[i]); g != w {
					t.Errorf("item %d: body %q, want %q", i, g, w)
				}
			}
			again := imported(t, file, s)
			w, err := FromRun(context.Background(), again, &again.run, Filter{})
			if err != nil {
				t.Fatal(err)
			}
			if w.Hash() != want.Hash() {
				t.Errorf("the imported run has workload %s, want %s", w.Hash(), want.Hash())
			}
			twice, _ := exported(t, again, ExportOptions{Format: format, Harness: "test"})
			if twice != file {
				t.Error("the imported run exports to another file")
			}
		})
	}
}

// imported is a file as a run, which must have the exchanges of s.
func imported(t *testing.T, file string, s *shelf) *shelf {
	t.Helper()
	f := OpenFile(write(t, "file", file), FileOptions{})
	sum, err := f.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Items != len(s.rows) || sum.Answers != len(s.rows) || !sum.Whole || sum.Run == nil || sum.Run.ID != s.run.ID {
		t.Errorf("the file says %+v", sum)
	}
	again := newShelf()
	again.run = *sum.Run
	for rec, err := range f.Records(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		x := *rec.Exchange
		x.Run = ""
		again.put(&x)
		if diff := cmp.Diff(s.xs[x.ID], again.xs[x.ID], cmp.AllowUnexported(exchange.Mark{}), equalBodies); diff != "" {
			t.Errorf("exchange %s:\n%s", x.ID, diff)
		}
	}
	return again
}

// equalBodies compares bodies by what they are and not by how they are cut in memory, and empty lists as absent ones.
var equalBodies = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != nil }, cmp.Options{
	cmp.Comparer(func(a, b exchange.Body) bool {
		return a.Size == b.Size && a.Kept == b.Kept && a.Digest == b.Digest && bytes.Equal(a.Bytes(), b.Bytes())
	}),
	cmp.Comparer(func(a, b []exchange.Header) bool {
		return len(a) == 0 && len(b) == 0 || cmp.Equal(a, b)
	}),
	cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) }),
})

func TestArchiveIsOneForOtherTools(t *testing.T) {
	file, _ := exported(t, oddRun(), ExportOptions{Format: FormatHAR, Harness: "test"})
	var har struct {
		Log struct {
			Version string
			Creator map[string]string
			Entries []map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(file), &har); err != nil {
		t.Fatal(err)
	}
	if har.Log.Version != "1.2" || har.Log.Creator["name"] != "benchproxy" || len(har.Log.Entries) != 11 {
		t.Fatalf("log %s by %v with %d entries", har.Log.Version, har.Log.Creator, len(har.Log.Entries))
	}
	for _, name := range []string{"startedDateTime", "time", "request", "response", "cache", "timings"} {
		if har.Log.Entries[0][name] == nil {
			t.Errorf("an entry has no %s, which the format wants", name)
		}
	}
	for _, want := range []string{`"url":"http://127.0.0.1:8080/v1/chat/completions"`, `"cookies":[]`, `"queryString":[]`, `"postData":{"mimeType":"application/json"`} {
		if !strings.Contains(file, want) {
			t.Errorf("the archive has no %s", want)
		}
	}
}

func FuzzBodiesComeBack(f *testing.F) {
	for _, s := range []string{"", "{}", `{"base64":"aGk="}`, `{"base64":"!"}`, "\xff", `"x"`, "{\n}", "[1, 2]", "null", " {}", `{"a":"\u2028"}`, "{\"a\":\"\u2028\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		form, err := bodyJSON(b)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(form, "\r\n") || !json.Valid(form) {
			t.Fatalf("%q does not fit on a line of JSON", form)
		}
		got, err := readBody(form)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%q came back as %q, %v", b, got, err)
		}
	})
}
