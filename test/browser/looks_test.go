package browser

import (
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// faint are the texts that are shown with less contrast to what is behind them than WCAG asks for (level AA: 4.5, and 3 for
// large ones), as strings.
const faint = `(() => {
  const parts = (c) => c.match(/[\d.]+/g).map(Number);
  const srgb = (c) => c.startsWith("color(srgb") ? parts(c.slice(10)).map((v, i) => i < 3 ? v * 255 : v) : parts(c);
  const over = (top, under) => { const a = top[3] ?? 1; return top.slice(0, 3).map((v, i) => v * a + under[i] * (1 - a)); };
  const ground = (e) => e === null ? [255, 255, 255] : over(srgb(getComputedStyle(e).backgroundColor), ground(e.parentElement));
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const opacity = (e) => e === null ? 1 : Number(getComputedStyle(e).opacity) * opacity(e.parentElement);
  const out = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode()); ) {
    const e = n.parentElement, style = getComputedStyle(e);
    if (!n.data.trim() || !e.checkVisibility() || e.closest("title, option, script, dialog")) continue;
    const svg = e.closest("svg");
    const under = ground(svg ?? e), ink = srgb(svg ? style.fill : style.color);
    ink[3] = (ink[3] ?? 1) * opacity(e);
    const [a, b] = [light(over(ink, under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
    if (ratio < (size >= 24 || size >= 18.66 && style.fontWeight >= 600 ? 3 : 4.5)) out.push(ratio.toFixed(2) + " " + e.nodeName + "." + e.className + " " + n.data.trim().slice(0, 30));
  }
  return [...new Set(out)].slice(0, 10);
})()`

// cutOff are the texts of tables that are shown in part and do not tell the rest when they are pointed at.
const cutOff = `[...document.querySelectorAll("td *, td, h1, h2, dd")].filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible" && getComputedStyle(e).overflowX !== "auto" && !e.closest("[title]") && e.textContent.trim() !== "").map((e) => e.nodeName + "." + e.className + " " + e.textContent.trim().slice(0, 40)).slice(0, 10)`

// nameless are the controls that a screen reader has no name for.
const nameless = `[...document.querySelectorAll("a, button, input, select, meter, progress, svg[role=img]")].filter((e) => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map((e) => e.outerHTML.slice(0, 80))`

// TestPagesAreReadable looks at every page in light, dark and on a phone: every text has contrast, nothing stands out at the
// side, what is cut says so, and every control has a name. Pictures are left for people to look at.
func TestPagesAreReadable(t *testing.T) {
	ui := start(t, 1, "ui", "--store", setting(t, "TEST_STORE"), "--listen", "127.0.0.1:0", "--trace-url", "http://127.0.0.1:16686/trace/{trace}")[0]
	b := open(t)
	b.visit(ui + "/runs/shapes")
	b.await(`document.querySelectorAll("#rows .go").length === 10`)
	ids := is[[]string](b, `[...document.querySelectorAll("#rows .go")].map(a => a.pathname.split("/").pop())`)
	pages := map[string]string{
		"runs": "/runs", "shapes": "/runs/shapes", "many": "/runs/many?status=503&sort=-total", "nomatch": "/runs/shapes?status=404", "search": "/runs/many?text=question+7", "nothing": "/runs/shapes?text=zzzzz",
		"compare": "/compare?a=" + ids[0] + "&b=" + ids[1], "form": "/compare", "half": "/compare?a=" + ids[0], "differ": "/compare?a=" + ids[2] + "&b=" + ids[3],
	}
	for i, form := range []string{"short", "short2", "long", "reasoning", "failed", "broken", "truncated", "image", "named", "silent"} {
		pages["x-"+form] = "/exchanges/" + ids[i]
	}
	screens := []struct {
		name string
		set  func()
	}{
		{"light", func() {}}, {"dark", b.dark}, {"phone", b.phone},
	}
	for _, screen := range screens {
		screen.set()
		for name, path := range pages {
			b.visit(ui + path)
			b.await(`document.readyState === "complete" && ![...document.querySelectorAll("td[data-spark]")].some(c => c.offsetParent !== null) && document.querySelector("#stop")?.hidden !== false`)
			for what, found := range map[string]string{"faint": faint, "cut": cutOff, "nameless": nameless} {
				if got := is[[]string](b, found); len(got) > 0 {
					t.Errorf("%s %s: %s: %s", screen.name, path, what, strings.Join(got, "; "))
				}
			}
			if wide := is[float64](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
				t.Errorf("%s %s stands out by %v pixels", screen.name, path, wide)
			}
			b.whole(screen.name + "-" + name)
		}
	}
	b.clean("pages")
}

// TestErrorsSayWhatToDo looks at the pages of what is not there.
func TestErrorsSayWhatToDo(t *testing.T) {
	ui := start(t, 1, "ui", "--store", setting(t, "TEST_STORE"), "--listen", "127.0.0.1:0")[0]
	b := open(t)
	for name, path := range map[string]string{"exchange": "/exchanges/01M8NTXDM0VRXW95NWJMZ4X3AH", "run": "/runs/none", "page": "/nowhere", "id": "/compare?a=x&b=y", "sort": "/runs/many?sort=x"} {
		b.do(chromedp.Navigate(ui + path))
		b.forgive(path) // the browser's log has each of them
		if n := is[int](b, `document.querySelectorAll("main a").length`); n == 0 {
			t.Errorf("%s leads nowhere: %s", path, is[string](b, `document.body.innerText`))
		}
		b.whole("problem-" + name)
	}
	b.clean("problems")
}

// whole keeps how the page looks from its top to its end, or as far down as anybody looks.
func (b *tab) whole(name string) {
	b.t.Helper()
	const far = 2600
	wide, high := is[float64](b, `document.documentElement.clientWidth`), is[float64](b, `document.documentElement.scrollHeight`)
	yes := true
	r, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &yes, Clip: &page.Viewport{Width: wide, Height: min(high, far), Scale: 1},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.keep(name, r.Data)
}

// forgive takes out what was noted of an answer that is no success.
func (b *tab) forgive(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []string
	for _, w := range b.wrongs {
		if !strings.Contains(w, path) {
			left = append(left, w)
		}
	}
	b.wrongs = left
}

// TestLivePageInTrouble holds that a page that was left open says when the engine dies and when the program is away, and goes
// on by itself when both are back.
func TestLivePageInTrouble(t *testing.T) {
	script := "ttft=100ms; prefill=2000; decode=20; answer=400"
	engines, killEngine := startEnding(t, 1, "sim", "--listen", "127.0.0.1:0", "--set", script)
	store := t.TempDir()
	record := func(listen, admin string) ([]string, func()) {
		return startEnding(t, 3, "record", "--upstream", engines[0], "--listen", listen, "--admin", admin, "--store", store, "--drain", "1s")
	}
	addresses, end := record("127.0.0.1:0", "127.0.0.1:0")
	b := open(t)
	b.visit(addresses[2] + "/")
	var asked sync.WaitGroup
	for range 60 {
		asked.Go(func() { _ = ask(addresses[0], "doomed", 160) }) // it will break off
	}
	b.await(`document.body.innerText.includes("10 more running") && document.querySelectorAll(".running").length === 50`)
	killEngine()
	asked.Wait()
	b.await(`[...document.querySelectorAll(".card .chip.bad")].some(c => c.textContent === "failing") && document.querySelector(".cards .warn") !== null`)
	b.whole("trouble-engine")
	end()
	b.await(`document.body.classList.contains("stale") && document.querySelector("#status").textContent.includes("no answer since")`)
	b.whole("trouble-away")
	engines = start(t, 1, "sim", "--listen", strings.TrimPrefix(engines[0], "http://"), "--set", script)
	record(strings.TrimPrefix(addresses[0], "http://"), strings.TrimPrefix(addresses[2], "http://"))
	b.await(`!document.body.classList.contains("stale") && document.querySelector("#status").textContent === "recorder ok" && document.body.innerText.includes("Nothing came through yet")`)
	if err := ask(addresses[0], "again", 3); err != nil {
		t.Error(err)
	}
	b.await(`document.querySelectorAll("tbody .outcome.good").length === 1`)
	b.forgive("ERR_CONNECTION_REFUSED")
	b.forgive("/part/live")
	b.clean("trouble")
}
