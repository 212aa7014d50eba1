package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// What no JSON reader gives back as it stands in the file would be sent as something else.
func TestTextThatWouldChangeIsRefused(t *testing.T) {
	har := strings.TrimSuffix(harOne, ",") + "]}}"
	for _, tt := range []struct{ name, text, want string }{
		{"byte in a string", "{\"method\":\"POST\",\"path\":\"/x\",\"body\":\"a\xffb\"}", "is no UTF-8 text: 0xff at byte 39"},
		{"byte in an object", "{\"method\":\"POST\",\"path\":\"/x\",\"body\":{\"a\":\"\xfe\"}}", "is no UTF-8 text: 0xfe at byte 43"},
		{"byte behind a mark", "\xef\xbb\xbf" + jsonlOne + "\xff", "0xff at byte 73"},
		{"byte in an archive", strings.Replace(har, "http://h/a", "http://h/\xff", 1), "is no UTF-8 text"},
		{"byte in a table", burstHead + "1,Chat\xffGPT,5,5,10,log\n", "is no UTF-8 text"},
		{"cut character", jsonlOne + "\xe2\x82", "ends inside a character"},
		{"text in UTF-16", "\xff\xfe{\x00}\x00", "no workload format"},
		{"half a pair in a body", `{"method":"POST","path":"/x","body":"a\ud800b"}`, "half of a surrogate pair"},
		{"half a pair in an archive", strings.Replace(har, `"content":{}`, `"content":{"text":"\udc00"}`, 1), "half of a surrogate pair"},
	} {
		for _, format := range []Format{"", FormatJSONL} {
			if format != "" && tt.name != "half a pair in a body" {
				continue
			}
			_, err := OpenFile(write(t, "f", tt.text), FileOptions{Format: format}).Check(context.Background())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		}
	}
}

func TestHalfPair(t *testing.T) {
	for text, half := range map[string]bool{`""`: false, `"a"`: false, `"\ud83d\ude00"`: false, `"\\ud800"`: false, `"\n\u0041"`: false,
		`"\ud83d"`: true, `"\ude00"`: true, `"\ud83dx\ude00"`: true, `"\ud83d\n"`: true, `"\ude00\ud83d"`: true, `"\ud83d\ud83d\ude00"`: true} {
		if halfPair([]byte(text)) != half {
			t.Errorf("%s: want %v", text, half)
		}
	}
}

func TestMarksAtTheBeginningAreNoPartOfAnyFormat(t *testing.T) {
	for _, text := range []string{
		jsonlOne, strings.TrimSuffix(harOne, ",") + "]}}", azureHead + "2023-11-16 18:17:03,5,5\n",
		`{"custom_id":"a","method":"POST","url":"/v1/x","body":{}}` + "\r\n",
	} {
		want := load(t, text, FileOptions{})
		if got := load(t, "\xef\xbb\xbf"+text, FileOptions{}); got.Hash() != want.Hash() {
			t.Errorf("another workload with a mark: %s", text)
		}
	}
}

// FuzzTextReader holds that a text comes through whole, whatever the pieces it is read in, up to its first bad byte.
func FuzzTextReader(f *testing.F) {
	for _, s := range []string{"", "a", "\xef\xbb\xbf", "\xef\xbb\xbfx", "\xef\xbb", "\u20ac\U0001f600", "a\xffb", "\u20ac\xe2\x82", "\xf0\x9f\x98"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		want := bytes.TrimPrefix(in, []byte("\xef\xbb\xbf"))
		valid := string([]rune(string(want))) == string(want)
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(in), "bytes": iotest.OneByteReader(bytes.NewReader(in)), "halves": iotest.HalfReader(bytes.NewReader(in))} {
			got, err := io.ReadAll(&textReader{r: r})
			if !bytes.HasPrefix(want, got) || valid != (err == nil) || valid && len(got) != len(want) || err != nil && !errors.Is(err, errNotText) {
				t.Errorf("%s: %q of %q: %v", name, got, want, err)
			}
		}
	})
}

func TestTimesThatCannotBeAreRefused(t *testing.T) {
	for _, year := range []string{"0001", "1969", "2200", "9999"} {
		text := strings.TrimSuffix(strings.Replace(harOne, "2026", year, 1), ",") + "]}}"
		_, err := OpenFile(write(t, "f", text), FileOptions{}).Check(context.Background())
		if err == nil || !strings.Contains(err.Error(), "entry 1: field startedDateTime: ") || !strings.Contains(err.Error(), notPlausible) {
			t.Errorf("%s: %v", year, err)
		}
	}
	good, _ := exported(t, newShelf(recorded(0, `{"m":1}`, "application/json", `{"a":1}`)), ExportOptions{Format: FormatJSONL})
	for _, tt := range []struct{ from, to, want string }{
		{`"wall":"2026-11-03T09:30:00.123456789Z"`, `"wall":"9999-01-01T00:00:00Z"`, "field timeline.wall: "},
		{`"seq":1`, `"seq":18446744073709551615`, "field seq: "},
		{`"status":200`, `"status":20000`, "field response.status: "},
		{`"status":200`, `"status":-1`, "field response.status: "},
	} {
		text := strings.Replace(good, tt.from, tt.to, 1)
		if text == good {
			t.Fatalf("the file has no %s:\n%s", tt.from, good)
		}
		if _, err := OpenFile(write(t, "f", text), FileOptions{}).Check(context.Background()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.to, err, tt.want)
		}
	}
}

// Header values may be bytes that no JSON string can say.
func TestHeadersOfOtherBytesComeBack(t *testing.T) {
	x := recorded(0, `{"m":1}`, "application/json", `{"a":1}`)
	odd := exchange.Header{Name: "X-Name", Value: "caf\xe9 \xff"}
	x.Request.Headers = append(x.Request.Headers, odd, exchange.Header{Name: "X-Same", Value: "\ufffd"})
	x.Response.Headers = append(x.Response.Headers, odd)
	x.Request.Head = head("POST /v1/chat/completions HTTP/1.1", x.Request.Headers)
	x.Response.Head = head("HTTP/1.1 200 OK", x.Response.Headers)
	for _, format := range []Format{FormatJSONL, FormatHAR} {
		s := newShelf(x)
		want := fromRun(t, s, Filter{})
		file, _ := exported(t, s, ExportOptions{Format: format})
		if got := load(t, file, FileOptions{}); got.Hash() != want.Hash() {
			t.Errorf("%s: another workload", format)
		}
		for _, back := range sound(t, OpenFile(write(t, "f", file), FileOptions{})) {
			if diff := cmp.Diff(x.Request.Headers, back.Request.Headers) + cmp.Diff(x.Response.Headers, back.Response.Headers); diff != "" {
				t.Errorf("%s:\n%s", format, diff)
			}
		}
	}
}

// A request that names no instant has none after it went through a store, and cannot be sent at recorded instants.
func TestRequestsWithoutInstantsStaySo(t *testing.T) {
	text := `{"id":"a","method":"POST","path":"/x","body":{}}` + "\n" + `{"id":"b","method":"POST","path":"/y","body":{}}` + "\n"
	s := newShelf()
	for _, x := range sound(t, OpenFile(write(t, "f", text), FileOptions{})) {
		s.put(x)
	}
	again := fromRun(t, s, Filter{})
	if want := load(t, text, FileOptions{}); again.Hash() != want.Hash() || again.Timed() {
		t.Errorf("instants %v and %v", again.Items[0].At, again.Items[1].At)
	}
	if _, err := NewPlan(again, PlanOptions{Loop: LoopRecorded, Speed: 1, Targets: []string{"t"}}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("recorded instants were planned: %v", err)
	}
	for _, format := range []Format{FormatJSONL, FormatHAR} {
		file, report := exported(t, s, ExportOptions{Format: format})
		if got := load(t, file, FileOptions{}); got.Hash() != again.Hash() || report.Workload != again.Hash() {
			t.Errorf("%s: another workload:\n%s", format, file)
		}
	}
}

// Archives tell of bodies that they do not hold, and of forms by their fields.
func TestBodiesThatAnArchiveLacks(t *testing.T) {
	entry := func(request string) string {
		return strings.TrimSuffix(strings.Replace(harOne, `"headers":[]`, `"headers":[],`+request, 1), ",") + "]}}"
	}
	form := load(t, entry(`"postData":{"mimeType":"application/x-www-form-urlencoded; charset=utf-8","params":[{"name":"a b","value":"c&d"},{"name":"e","value":""}]}`), FileOptions{})
	if got := payload(t, &form.Items[0]); got != "a+b=c%26d&e=" {
		t.Errorf("the form is %q", got)
	}
	for _, request := range []string{`"bodySize":17`, `"bodySize":17,"postData":{"mimeType":"application/json","text":""}`,
		`"postData":{"mimeType":"multipart/form-data; boundary=x","params":[{"name":"file"}]}`} {
		f := OpenFile(write(t, "f", entry(request)), FileOptions{})
		if _, err := f.Load(context.Background()); !errors.Is(err, exchange.ErrMiss) {
			t.Errorf("%s: %v", request, err)
		}
		if xs := sound(t, f); len(xs) != 1 || xs[0].Request.Body.Whole() {
			t.Errorf("%s: the record says that the request is whole", request)
		}
	}
	if bare := load(t, entry(`"bodySize":0`), FileOptions{}); len(bare.Items) != 1 {
		t.Error("a request without a body is one")
	}
}

func TestAFileOfTooManyRequestsIsRefused(t *testing.T) {
	if err := unique(map[string]int{}, "a", maxItems+1); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
	if plausible(traceStart) != true || plausible(time.Time{}) {
		t.Error("the start of traces is no time")
	}
}
