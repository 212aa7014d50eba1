package web

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// argumentsOf is what a shell makes of a command line: the words that curl gets, with what is written to its input.
func argumentsOf(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `KEY=the-key; curl() { for a; do printf '%s\0' "$a"; done; }; benchproxy() { :; }; `+command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	words := strings.Split(string(out), "\x00")
	return words[:len(words)-1]
}

// TestCurlSaysWhatWasSent holds that a shell makes the recorded request of the command, whatever stands in it.
func TestCurlSaysWhatWasSent(t *testing.T) {
	for _, body := range []string{`{"a":"b"}`, `it's "quoted" $HOME ` + "`id`" + ` \ !x`, "two\nlines\n", "-d @/etc/passwd", "@file", "漢字 ü", strings.Repeat("'", 100)} {
		x := asked{}.exchange(1)
		x.Request.Target = "/v1/x?q=a'b;c&d=$(id)"
		x.Request.Headers = []exchange.Header{{Name: "Host", Value: "h"}, {Name: "X-A", Value: "it's $HOME"}, {Name: "Authorization", Value: "Bearer ***"}, {Name: "Content-Length", Value: "9"}, {Name: "traceparent", Value: "x"}}
		x.Request.Body = exchange.NewBody([]byte(body))
		want := []string{"-N", "-g", "--path-as-is", "-X", "POST", "http://127.0.0.1:8080/v1/x?q=a'b;c&d=$(id)", "-H", "X-A: it's $HOME", "-H", "Authorization: Bearer the-key", "--data-raw", body}
		if diff := cmp.Diff(want, argumentsOf(t, curlOf(x))); diff != "" {
			t.Errorf("%q: %s", body, diff)
		}
	}
	for name, body := range map[string]string{"binary": "\x00\xff", "steering": "a\x1b[2Jb", "completing": "a\tb", "large": strings.Repeat("x", inlineBody+1)} {
		x := asked{}.exchange(1)
		x.Request.Body = exchange.NewBody([]byte(body))
		command := curlOf(x)
		if !strings.HasPrefix(command, "benchproxy store show "+string(x.ID)+" --raw request |") || !strings.Contains(command, "--data-binary @-") || strings.Contains(command, body) {
			t.Errorf("%s: %q", name, command)
		}
		argumentsOf(t, command)
	}
	x := asked{}.exchange(1)
	x.Request.Method, x.Request.Body = "GET", exchange.Body{}
	if got := curlOf(x); strings.Contains(got, "--data") {
		t.Errorf("without a body: %s", got)
	}
	for _, url := range []string{"", "unix:/socket"} {
		if x.UpstreamURL = url; curlOf(x) != "" {
			t.Errorf("to %q: %s", url, curlOf(x))
		}
	}
}

// TestCurlDoesNothingElse holds that no recorded request makes a command that asks another host, reads a file, sends more
// than one request, or is cut where it is shown.
func TestCurlDoesNothingElse(t *testing.T) {
	for _, target := range []string{"@evil.example/x", "http://evil.example/", "*", "", ".evil.example/", ":81/", "/\x1b[201~\nid\n"} {
		x := asked{}.exchange(1)
		if x.Request.Target = target; curlOf(x) != "" {
			t.Errorf("to %q: %s", target, curlOf(x))
		}
	}
	x := asked{}.exchange(1)
	x.Request.Target = "/v1/{a,b}[1-9]/../x"
	x.Request.Headers = []exchange.Header{{Name: "@/etc/passwd"}, {Name: "", Value: "@/etc/passwd"}, {Name: "X-Empty"}, {Name: "X Y", Value: "z"}}
	x.Request.Body = exchange.Body{}
	want := []string{"-N", "-g", "--path-as-is", "-X", "POST", "http://127.0.0.1:8080/v1/{a,b}[1-9]/../x", "-H", "X-Empty;"}
	if diff := cmp.Diff(want, argumentsOf(t, curlOf(x))); diff != "" {
		t.Error(diff)
	}
	if x.Request.Headers = []exchange.Header{{Name: "X", Value: strings.Repeat("x", excerptBytes)}}; curlOf(x) != "" {
		t.Error("a command that cannot be shown whole")
	}
	x.Request.Headers, x.Request.Body = nil, exchange.NewBody([]byte(strings.Repeat("'", inlineBody-1)))
	if got := curlOf(x); !strings.Contains(got, "--data-binary @-") {
		t.Errorf("a body of quotes stands inline: %d bytes", len(got))
	}
}

// TestPastedCommandsAreInert holds that a shell that gets a command runs curl, once and with what was recorded as arguments,
// whatever a client or an engine put into any part of it.
func TestPastedCommandsAreInert(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	run := "touch " + mark
	for _, hostile := range []string{
		"'; " + run + "; '", "$(" + run + ")", "`" + run + "`", "\n" + run + "\n", "\r\n" + run, "' -o " + mark + " '", "\\'; " + run + " #", "'\"'\"'; " + run, "&& " + run, "| " + run,
		"\\\n" + run, "-o" + mark, "--output=" + mark, "@" + mark, "\u2028" + run, "'\\''$(" + run + ")", "!!", "~", "*", "${IFS}" + run, "<(" + run + ")", "\u202e" + run, "é'漢; " + run,
	} {
		x := asked{}.exchange(1)
		word := strings.NewReplacer("\r", "", "\n", "", "\u202e", "", "\u2028", "").Replace(hostile) // as a head can have it
		x.Request.Method, x.Request.Target = "POST", "/v1/"+word
		x.Request.Headers = []exchange.Header{{Name: "X-A", Value: hostile}, {Name: hostile, Value: "x"}, {Name: "Authorization", Value: "Bearer ***" + hostile}}
		x.Request.Body = exchange.NewBody([]byte(hostile))
		for _, method := range []string{"POST", word} {
			x.Request.Method = method
			args := argumentsOf(t, curlOf(x))
			if n := len(args); n < 8 || args[0] != "-N" || args[4] != method || args[5] != "http://127.0.0.1:8080/v1/"+word || args[7] != "X-A: "+hostile {
				t.Errorf("%q: %q", hostile, args)
			}
			if last := args[len(args)-1]; last != hostile && last != "@-" {
				t.Errorf("%q: the body is %q", hostile, last)
			}
		}
		x.UpstreamURL = "http://127.0.0.1:8080/" + word
		argumentsOf(t, replayOf(x))
		if _, err := os.Stat(mark); err == nil {
			t.Fatalf("%q ran", hostile)
		}
	}
}

func TestReplayCommand(t *testing.T) {
	x := asked{}.exchange(1)
	x.Run = runID
	if got, want := replayOf(x), "benchproxy replay "+string(runID)+" --only-id "+string(x.ID)+" --target http://127.0.0.1:8080"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if x.UpstreamURL = ""; replayOf(x) != "" {
		t.Error("a command to nowhere")
	}
}

func TestTrace(t *testing.T) {
	s := &Server{o: Options{TraceURL: "http://j/trace/{trace}"}}
	x := asked{}.exchange(1)
	if id, url := s.traceOf(x); id != "4bf92f3577b34da6a3ce929d0e0e4736" || url != "http://j/trace/"+id {
		t.Errorf("of the client: %s, %s", id, url)
	}
	x.Interventions = append(x.Interventions, exchange.Intervention{Kind: "header_changed", Where: exchange.SideEngine, Name: "traceparent", To: "00-" + strings.Repeat("a", 32) + "-00f067aa0ba902b7-01"})
	if id, _ := s.traceOf(x); id != strings.Repeat("a", 32) {
		t.Errorf("as it was sent on: %s", id)
	}
	x.Interventions, x.Request.Headers = nil, []exchange.Header{{Name: "traceparent", Value: `00-"><script>`}}
	if id, url := s.traceOf(x); id != "" || url != "" {
		t.Errorf("of a header that is none: %s, %s", id, url)
	}
}

// TestMessages holds that the conversation of a request is read in the forms that dialects share.
func TestMessages(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}]}`: `user: hi|assistant calls: [{"id":"1"}]`,
		`{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}]}`:     "system: s|user: a\n[part 2: image_url]",
		`{"prompt":"p"}`: "prompt: p", `{"input":["a","b"]}`: `input: ["a","b"]`, `{"prompt":{"x":1}}`: `prompt: {"x":1}`, `not json`: "", `{}`: "",
	} {
		x := asked{}.exchange(1)
		x.Request.Body = exchange.NewBody([]byte(body))
		var got []string
		for _, m := range turnsOf(x, &excerpts{left: pageText}) {
			got = append(got, m.Role+": "+bracketed(m.Text))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestGatesOfACase holds that verdicts that the run keeps stand beside those of today.
func TestGatesOfACase(t *testing.T) {
	x := asked{model: "m", pieces: []string{"a"}}.exchange(1)
	x.Item = &exchange.PlanItem{Item: "case-1"}
	run := &exchange.Run{Replay: &exchange.Replay{Cases: []exchange.PlannedCase{{Case: exchange.Case{ID: "case-1"}, Reason: "why",
		Verdicts: []exchange.CaseVerdict{{Gate: "json_schema", Version: 2, Status: exchange.VerdictFail}}}}}}
	got := gatesOf(x, run, judgedBytes)
	if len(got) < 2 || got[0] != (gateRow{"json_schema", 2, exchange.VerdictFail, "", "why", "recorded"}) || got[1].When != "now" {
		t.Errorf("%+v", got)
	}
	x.Response.Body.Kept = judgedBytes + 1
	if got := gatesOf(x, run, judgedBytes); len(got) != 1 {
		t.Errorf("a huge answer is judged: %+v", got)
	}
}
