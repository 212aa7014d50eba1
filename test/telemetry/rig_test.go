package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait; it is reached only when something is broken.
const patience = time.Minute

// tool is a program that the script names.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := os.Getenv(name)
	if path == "" {
		t.Fatalf("%s names no program: run scripts/telemetry-test.sh", name)
	}
	return path
}

// process is a program that runs beside the test.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   bytes.Buffer // stdout, to be read after its end
	lines chan string  // of stderr
	mu    sync.Mutex
	text  strings.Builder // all of stderr
	ended chan struct{}
	once  sync.Once
}

func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), lines: make(chan string, 1<<12), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout = &p.out
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		scan := bufio.NewScanner(pipe)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			p.mu.Lock()
			p.text.WriteString(scan.Text() + "\n")
			p.mu.Unlock()
			select {
			case p.lines <- scan.Text():
			default:
			}
		}
	}()
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

// said waits for a line that matches and gives its first group.
func (p *process) said(pattern string) string {
	p.t.Helper()
	re, deadline := regexp.MustCompile(pattern), time.After(patience)
	for {
		select {
		case line := <-p.lines:
			if m := re.FindStringSubmatch(line); m != nil {
				return m[1]
			}
		case <-deadline:
			p.t.Fatalf("%s never said %s:\n%s", p.cmd.Path, pattern, p.stderr())
		}
	}
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// stop ends the process and waits for it.
func (p *process) stop(sig os.Signal) {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(sig)
		<-p.ended
		_ = p.cmd.Wait()
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// startSim starts the scripted engine and gives its URL.
func startSim(t *testing.T, args ...string) string {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	start(t, nil, tool(t, "TEST_BENCHPROXY"), append([]string{"sim", "--listen", addr}, args...)...)
	waitFor(t, "the scripted engine", func() bool {
		resp, err := http.Get("http://" + addr + "/v1/models")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
	return "http://" + addr
}

// waitFor asks until something is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// recording is a recording proxy.
type recording struct {
	*process
	store, base, admin string
}

func record(t *testing.T, engine string, env ...string) *recording {
	t.Helper()
	r := &recording{store: filepath.Join(t.TempDir(), "store")}
	r.process = start(t, env, tool(t, "TEST_BENCHPROXY"), "record", "--upstream", engine, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--store", r.store, "--run", "r", "--no-identify", "--engine-label", "sim@7")
	r.base = r.said(`^(http://127\.0\.0\.1:\d+)  ->`)
	r.admin = r.said(`^admin (http://127\.0\.0\.1:\d+)`)
	return r
}

// ask sends a request and gives status and body as far as they came.
func ask(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) // a stream may break off, as asked
	return resp.StatusCode, string(b)
}

// exchange is what is compared of a record.
type exchange struct {
	ID, Run, Key, State, Method, Path, Model, Outcome string
	Cell, Wave, Upstream                              string
	Item                                              *struct {
		Item, Conversation string
		Warmup             bool
	}
	Status        int
	FinishReason  *string `json:"finish_reason"`
	RequestBytes  int64   `json:"request_bytes"`
	ResponseBytes int64   `json:"response_bytes"`
	Metrics       map[string]*float64
	Basis         map[string]string
	Interventions []struct{ Kind, Where, Name, From, To, Reason string }
	Origin        *struct{ Exchange string }
	Timeline      struct {
		Wall        time.Time
		RequestRead int64  `json:"request_read"`
		SendStart   *int64 `json:"send_start"`
		SendDone    *int64 `json:"send_done"`
		HeaderRead  *int64 `json:"header_read"`
		FirstRead   *int64 `json:"first_read"`
		BodyEnd     *int64 `json:"body_end"`
		ClientDone  *int64 `json:"client_done"`
	}
}

// sent is the trace and the span that the engine got, "" for none.
func (x *exchange) sent() (trace, span string) {
	for _, v := range x.Interventions {
		if v.Reason == "trace_context" && v.Where == "engine" && strings.EqualFold(v.Name, "traceparent") {
			return v.To[3:35], v.To[36:52]
		}
	}
	return "", ""
}

// run is benchproxy's output; an exit code other than want fails.
func run(t *testing.T, env []string, want int, args ...string) (stdout []byte, stderr string) {
	t.Helper()
	stdout, stderr, code := runAny(t, env, args...)
	if code != want {
		t.Fatalf("benchproxy %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout, stderr
}

// runAny is benchproxy's output and exit code.
func runAny(t *testing.T, env []string, args ...string) (stdout []byte, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(tool(t, "TEST_BENCHPROXY"), args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the code tells
	return out.Bytes(), errs.String(), cmd.ProcessState.ExitCode()
}

// shown are the records of a run, in order.
func shown(t *testing.T, store, name string) []exchange {
	t.Helper()
	rows, _ := run(t, nil, 0, "store", "ls", name, "--store", store, "--json")
	var out []exchange
	for line := range bytes.Lines(rows) {
		var row, x exchange
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		doc, _ := run(t, nil, 0, "store", "show", row.ID, "--store", store, "--json")
		if err := json.Unmarshal(doc, &x); err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		out = append(out, x)
	}
	if len(out) == 0 {
		t.Fatalf("run %s has no records", name)
	}
	return out
}
