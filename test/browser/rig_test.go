package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds one test, on a busy machine.
const patience = 6 * time.Minute

// setting is a variable that the script sets.
func setting(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run this through scripts/browser-test.sh", name)
	}
	return v
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start runs the program until the test ends, and gives the addresses that it tells: n of them.
func start(t *testing.T, n int, args ...string) []string {
	t.Helper()
	addresses, _ := startEnding(t, n, args...)
	return addresses
}

// startEnding does the same, and gives what ends the program before.
func startEnding(t *testing.T, n int, args ...string) (addresses []string, end func()) {
	t.Helper()
	cmd := exec.Command(setting(t, "TEST_BENCHPROXY"), args...)
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // an end by a signal is what was asked for
		_ = write.Close()
	})
	t.Cleanup(end)
	found := make(chan []string, 1)
	go func() {
		var all []string
		var said strings.Builder
		for lines := bufio.NewScanner(read); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if all = append(all, address.FindAllString(lines.Text(), -1)...); len(all) >= n {
				break
			}
		}
		if len(all) < n {
			all = []string{said.String()}
		}
		found <- all
		_, _ = io.Copy(io.Discard, read)
	}()
	select {
	case all := <-found:
		if len(all) < n {
			t.Fatalf("%v ended: %s", args, all)
		}
		return all[:n], end
	case <-time.After(patience):
		t.Fatalf("%v told no address", args)
	}
	return nil, end
}

// tab is a page of a browser that notes all that a page of ours must not do.
type tab struct {
	t   *testing.T
	ctx context.Context

	dialogs chan struct{} // that opened
	page    string        // file that is looked at, "" for pages that are served

	mu     sync.Mutex
	wrongs []string
}

// open starts a browser of its own, with nothing of another one's.
func open(t *testing.T) *tab {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true), chromedp.WindowSize(1280, 900),
	}
	if name := os.Getenv("TEST_CHROMIUM"); name != "" {
		options = append(options, chromedp.ExecPath(name))
	}
	limit, stop := context.WithTimeout(context.Background(), patience)
	allocator, end := chromedp.NewExecAllocator(limit, options...)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &tab{t: t, ctx: ctx, dialogs: make(chan struct{}, 100)}
	t.Cleanup(func() {
		close(b.dialogs)
		cancel()
		end()
		stop()
	})
	if err := chromedp.Listen(ctx, b.watch); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, runtime.Enable, cdp.Empty{})
	call(b, page.Enable, page.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	go b.dismiss()
	return b
}

// call sends a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// dismiss closes dialogs, which would hold up the page and the test with it.
func (b *tab) dismiss() {
	for range b.dialogs {
		_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) // it may have closed by itself
	}
}

// watch notes dialogs, errors and requests that leave the page's own origin.
func (b *tab) watch(event any) {
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		b.wrong("a dialog opened: %s", e.Message)
		b.dialogs <- struct{}{}
	case *runtime.EventExceptionThrown:
		b.wrong("an exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.wrong("the console has a %s", e.Type)
	case *log.EventEntryAdded: // refusals of the policy are told here
		b.wrong("the log has: %s %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		// The browser's own controls have pictures that are data; what a page would load of that kind the policy refuses, and
		// the log tells.
		if u := e.Request.URL; !address.MatchString(u) && (b.page == "" || u != b.page) && !strings.HasPrefix(u, "about:") && !strings.HasPrefix(u, "data:") {
			b.wrong("a request for %s", u)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			b.wrong("%s answered %d", e.Response.URL, e.Response.Status)
		}
	}
}

func (b *tab) wrong(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrongs = append(b.wrongs, fmt.Sprintf(format, args...))
}

// clean holds that nothing was wrong since the last look.
func (b *tab) clean(what string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrongs {
		b.t.Errorf("%s: %s", what, w)
	}
	b.wrongs = nil
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// visit opens a page.
func (b *tab) visit(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

// press presses keys, one after the other.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// is evaluates an expression.
func is[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// await waits until an expression is true. A page that is just being left may have no answer.
func (b *tab) await(expression string) {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			b.t.Fatalf("it never came true: %s", expression)
		}
	}
}

// arrived waits for another page, with its script at work.
func (b *tab) arrived(expression string) {
	b.t.Helper()
	b.await(`document.readyState === "complete" && ` + expression)
}

// picture keeps how the page looks.
func (b *tab) picture(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	b.keep(name, png)
}

// keep leaves a picture for people.
func (b *tab) keep(name string, png []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(setting(b.t, "TEST_PICTURES"), name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// dark shows pages as to someone who asked for dark ones.
func (b *tab) dark() {
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
}

// replaced puts what into an expression.
func replaced(expression, what string) string { return strings.Replace(expression, "%", what, 1) }

// phone shows pages on a small screen.
func (b *tab) phone() { b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile)) }
