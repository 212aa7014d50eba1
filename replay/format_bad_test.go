package replay

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	mooncakeOne = `{"timestamp":10,"input_length":1100,"output_length":7,"hash_ids":[1,2,3]}` + "\n"
	burstHead   = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	azureHead   = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	harOne      = `{"log":{"version":"1.2","entries":[{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"GET","url":"http://h/a","headers":[]},"response":{"status":200,"content":{}},"timings":{"send":1,"wait":2,"receive":3}},`
	jsonlOne    = `{"method":"POST","path":"/v1/chat/completions","body":{"model":"m"}}` + "\n"
)

// badFiles are files that must be refused whole, each for what it says and where.
var badFiles = []struct{ name, text, want string }{
	{"no json", jsonlOne + "{\n", `line 2: is no JSON: it ends too early`},
	{"two objects on a line", jsonlOne + `{"method":"GET","path":"/"} {}` + "\n", `line 2: `},
	{"misspelled field", jsonlOne + `{"method":"GET","path":"/","sesion":"a"}`, `line 2: field sesion: is no field of this format`},
	{"negative instant", `{"method":"GET","path":"/","t_ms":-0.5}`, `line 1: field t_ms: "-0.5": want a number that is not negative`},
	{"instant in another unit", `{"method":"GET","path":"/","t_ms":1767323045000}`, `line 1: field t_ms: "1767323045000": is more than 100 days after the start; is the unit milliseconds?`},
	{"instant that is a string", `{"method":"GET","path":"/","t_ms":"soon"}`, `line 1: field t_ms: "\"soon\"": want a number of milliseconds`},
	{"turn that is a word", `{"method":"GET","path":"/","turn":"one"}`, `line 1: field turn: "string": want a whole number`},
	{"negative turn", `{"method":"GET","path":"/","turn":-1}`, `line 1: field turn: "-1": want a number from 0 on`},
	{"list for an object", `{"method":"GET","path":"/","response":[]}`, `line 1: field response: "array": want an object`},
	{"no method", `{"schema":"benchproxy.workload/1"}` + "\n" + `{"path":"/"}`, `line 2: field method: want the name of a method`},
	{"path to a host", `{"method":"GET","path":"http://elsewhere/"}`, `line 1: field path: "http://elsewhere/": want a path that begins with a slash, with its query`},
	{"request in a path", `{"method":"GET","path":"/ HTTP/1.1\r\nX: y"}`, `line 1: field path: "/ HTTP/1.1\r\nX: y": want a path`},
	{"request in a header", `{"method":"GET","path":"/","headers":{"A":"b\r\nC: d"}}`, `line 1: field headers: "b\r\nC: d": a header has no line ends in it`},
	{"header without a name", `{"method":"GET","path":"/","headers":[{"name":"","value":"x"}]}`, `line 1: field headers: is no name of a header`},
	{"changed request", `{"method":"GET","path":"/","key":"h1:0123456789abcdef"}`, `line 1: field key: "h1:0123456789abcdef": the request makes h1:`},
	{"bad base64", `{"method":"GET","path":"/","body":{"base64":"%%%"}}`, `line 1: field body: `},
	{"answer without its times", `{"method":"GET","path":"/","response":{"status":200}}`, `line 1: field response: has no record beside it`},
	{"same id twice", `{"id":"a","method":"GET","path":"/"}` + "\n" + `{"id":"a","method":"GET","path":"/"}`, `item 2: field id: "a": item 1 has it already`},
	{"newer format", `{"schema":"benchproxy.workload/2"}` + "\n", `this build reads benchproxy.workload/1`},
	{"other format", `{"schema":"x/1"}` + "\n", `line 1: field schema: "x/1": want benchproxy.workload/1`},
	{"first line in the middle", jsonlOne + `{"schema":"benchproxy.workload/1"}`, `line 2: field schema: "benchproxy.workload/1": is not the first line`},
	{"cut file", `{"schema":"benchproxy.workload/1","items":2}` + "\n" + jsonlOne, `the file was cut: its last line is missing after 1 items`},
	{"lines taken out", `{"schema":"benchproxy.workload/1"}` + "\n" + jsonlOne + `{"end":{"items":2}}`, `line 3: field end.items: "2": there are 1 items before it`},
	{"lines behind the last", jsonlOne + `{"end":{"items":1}}` + "\n" + jsonlOne, `line 3: comes after the last line of the file`},
	{"nothing", "\n\n", `no workload format that is known`},
	{"only a header", `{"schema":"benchproxy.workload/1"}` + "\n" + `{"end":{"items":0}}`, `there is no request in it`},
	{"another kind of file", "hello\n", `no workload format that is known`},

	{"archive without a time", `{"log":{"entries":[{"startedDateTime":"now","request":{"method":"GET","url":"http://h/a"}}]}}`, `entry 1: field startedDateTime: "now": want a time as in`},
	{"archive with an odd encoding", harOne + `{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"GET","url":"http://h/a"},"response":{"content":{"text":"x","encoding":"rot13"}}}]}}`, `entry 2: field response.content.text: "x": its encoding is not base64`},
	{"archive that ends early", harOne[:len(harOne)-1], `entry 1: is no JSON: it ends too early`},
	{"archive with two lists", strings.TrimSuffix(harOne, ",") + `],"entries":[]}}`, `want one list of entries`},
	{"archive with something behind it", strings.TrimSuffix(harOne, ",") + `]}} x`, `something stands behind the archive`},
	{"archive with a word for a list", `{"log":{"entries":7}}`, `want one list of entries`},
	{"archive with a list for a word", harOne + `{"startedDateTime":[]}]}}`, `entry 2: field startedDateTime: "array": want a string`},
	{"archive with a method of two lines", harOne + `{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"GET\n","url":"http://h/a"}}]}}`, `entry 2: field request.method: "GET\n": want the name of a method`},
	{"archive whose entries were taken out", `{"log":{"_benchproxy":{"schema":"benchproxy.har/1","items":2},"entries":[]}}`, `it was written with 2 entries and has 0`},
	{"newer archive", `{"log":{"_benchproxy":{"schema":"benchproxy.har/9"},"entries":[]}}`, `this build reads benchproxy.har/1`},

	{"batch without a name", `{"custom_id":"","method":"POST","url":"/v1/x","body":{}}`, `line 1: field custom_id: is missing`},
	{"batch with a body of text", `{"custom_id":"a","method":"POST","url":"/v1/x","body":"x"}`, `line 1: field body: "\"x\"": want an object`},
	{"batch of another method", `{"custom_id":"a","method":"DELETE","url":"/v1/x","body":{}}`, `line 1: field method: "DELETE": want POST`},
	{"batch to a host", `{"custom_id":"a","method":"POST","url":"https://api/v1/x","body":{}}`, `line 1: field url: "https://api/v1/x": want a path`},

	{"trace with a negative length", mooncakeOne + `{"timestamp":10,"input_length":-3,"output_length":7,"hash_ids":[1]}`, `line 2: field input_length: "-3": want a number of tokens from 1 to`},
	{"trace with an endless answer", `{"timestamp":10,"input_length":3,"output_length":99999999999,"hash_ids":[1]}`, `line 1: field output_length: "99999999999": want a number of tokens from 1 to`},
	{"trace with a word for a time", mooncakeOne + `{"timestamp":"x","input_length":3,"output_length":7,"hash_ids":[1]}`, `line 2: field timestamp: "\"x\"": want a number`},
	{"trace without a time", mooncakeOne + `{"input_length":3,"output_length":7,"hash_ids":[1]}`, `line 2: field timestamp: want a number`},
	{"trace with other blocks", `{"timestamp":10,"input_length":1100,"output_length":7,"hash_ids":[1,2]}` + "\n" + `{"timestamp":10,"input_length":1100,"output_length":7,"hash_ids":[1,2,3,4]}`, `line 2: field hash_ids: "4 blocks": 1100 tokens have 3 blocks of 512; is the block size another?`},
	{"trace with a block that is a word", `{"timestamp":10,"input_length":3,"output_length":7,"hash_ids":["x"]}`, `line 1: field hash_ids`},
	{"table with a word for a number", burstHead + "1,ChatGPT,5,x,5,log\n", `line 2: field response tokens: "x": want a whole number`},
	{"table with a missing field", burstHead + "1,ChatGPT,5\n", `line 2: "1,ChatGPT,5": has 3 fields, the header has 6`},
	{"table with a time before the start", burstHead + "-1,ChatGPT,5,5,10,log\n", `line 2: field timestamp: "-1": want a number that is not negative`},
	{"table with no time at all", burstHead + "NaN,ChatGPT,5,5,10,log\n", `line 2: field timestamp: "NaN": want a number`},
	{"table with an open quote", burstHead + "\"1,ChatGPT,5,5,10,log\n", `line 2: `},
	{"table with a column twice", "Timestamp,Request tokens,Response tokens,Timestamp\n", `line 1: field Timestamp: there are two columns of this name`},
	{"table without times", "When,Request tokens,Response tokens\n", `there is no column "timestamp"`},
	{"dates of another form", azureHead + "16.11.2023 18:17,5,5\n", `line 2: field timestamp: "16.11.2023 18:17": want a time as in 2023-11-16 18:17:03.9799600`},
	{"dates years apart", azureHead + "2023-11-16 18:17:03,5,5\n2033-11-16 18:17:03,5,5\n", `line 3: field timestamp: "2033-11-16 18:17:03": is more than a year away from the first`},
}

// TestBadFilesAreRefusedWhole is one half of field report RR-38, hostile files; TestBombsEndAtTheLimit is the other.
func TestBadFilesAreRefusedWhole(t *testing.T) {
	for _, b := range badFiles {
		t.Run(b.name, func(t *testing.T) {
			f := OpenFile(write(t, "bad.file", b.text), FileOptions{Trace: TraceOptions{Unit: "ms"}})
			_, checked := f.Check(context.Background())
			_, loaded := f.Load(context.Background())
			for _, err := range []error{checked, loaded} {
				if err == nil {
					t.Fatal("it was taken")
				}
				if !strings.Contains(err.Error(), b.want) || !strings.Contains(err.Error(), "read workload bad.file: ") {
					t.Errorf("refused with\n%v\nwant\n%s", err, b.want)
				}
			}
			if newer := strings.HasPrefix(b.name, "newer"); newer != errors.Is(checked, exchange.ErrDamaged) {
				t.Errorf("a newer format: %v", checked)
			}
		})
	}
}

func TestBombsEndAtTheLimit(t *testing.T) {
	blank := strings.Repeat(" ", 3<<20)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"gzip of blank lines", zipped(t, strings.NewReader(jsonlOne+strings.Repeat("\n", 3<<20))), "larger than the limit of 1048576 bytes unpacked"},
		{"zstd of blanks", string(enc.EncodeAll([]byte(jsonlOne+blank), nil)), "for one line or entry"},
		{"a long line", jsonlOne + `{"method":"GET","path":"/","body":"` + blank, "for one line or entry"},
		{"a long entry", harOne + `{"comment":"` + blank, "for one line or entry"},
		{"a long name before the entries", `{"log":{"comment":"` + blank, "for one line or entry"},
		{"a deep value", harOne + strings.Repeat("[", 500_000), "exceeded max depth"},
		{"a packed file in a packed file", zipped(t, strings.NewReader(zipped(t, strings.NewReader(jsonlOne)))), "no workload format"},
		{"gzip that ends early", zipped(t, strings.NewReader(strings.Repeat(jsonlOne, 3)))[:40], "unexpected EOF"},
		{"broken gzip", "\x1f\x8bxxxxxxxxxxxxxxxxxx", "unpack gzip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := OpenFile(write(t, "bomb", tt.text), FileOptions{MaxBytes: 1 << 20, MaxEntry: 512 << 10}).Check(context.Background())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	if _, err := OpenFile("not/there", FileOptions{}).Load(context.Background()); err == nil {
		t.Error("a file that is not there was read")
	}
	fits := jsonlOne + strings.Repeat("\n", 1<<20-len(jsonlOne))
	if _, err := OpenFile(write(t, "fits", fits), FileOptions{MaxBytes: 1 << 20}).Check(context.Background()); err != nil {
		t.Errorf("a file of just the limit: %v", err)
	}
}

// TestRecordsThatContradictThemselves holds that an import stores nothing that a check of the store would call damaged.
func TestRecordsThatContradictThemselves(t *testing.T) {
	good, _ := exported(t, newShelf(recorded(0, `{"m":1}`, "application/json", `{"a":1}`)), ExportOptions{Format: FormatJSONL})
	load(t, good, FileOptions{})
	for _, tt := range []struct{ from, to, want string }{
		{`"body":"{\"a\":1}"`, `"body":"{\"a\":2}"`, "field response_digest: "},
		{`"end":"eof"`, `"end":"odd"`, `field end: "odd": is no end that this build knows`},
		{`"state":"stored"`, `"state":"x"`, `field state: "x": want stored or truncated`},
		{`"send_start":2000`, `"send_start":9000`, "field record: send_done is before send_start"},
		{`"reads":[[14000000,7,`, `"reads":[[14000000,-7,`, "field timeline.reads[0]: "},
		{`"reads":[[14000000,7,`, `"reads":[[14000000,6,`, "field record: reads sum up to 6 bytes, the body has 7"},
		{`"response_size":7`, `"response_size":8`, "response body is cut and the record does not say so"},
		{`"response_size":7`, `"response_size":-1`, "field timeline.reads[0]"},
		{`"wall":"2026-11-03T09:30:00.123456789Z"`, `"wall":"0001-01-01T00:00:00Z"`, "field timeline.wall: is missing"},
		{`"body":{"m":1}}`, `"body":{"m":2}}`, "field request_digest: "},
	} {
		text := strings.Replace(good, tt.from, tt.to, 1)
		if text == good {
			t.Fatalf("the file has no %s:\n%s", tt.from, good)
		}
		_, err := OpenFile(write(t, "f", text), FileOptions{}).Check(context.Background())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.to, err, tt.want)
		}
	}
}
