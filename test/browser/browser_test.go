package browser

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ask sends a streamed request and reads its answer to the end.
func ask(url, model string, tokens int) error {
	body := fmt.Sprintf(`{"model":%q,"stream":true,"stream_options":{"include_usage":true},"max_tokens":%d,"messages":[{"role":"user","content":"go on"}]}`, model, tokens)
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// TestLivePageFollowsAStream watches a stream from its first token to its record, without a reload.
func TestLivePageFollowsAStream(t *testing.T) {
	engine := start(t, 1, "sim", "--listen", "127.0.0.1:0", "--set", "ttft=300ms; prefill=2000; decode=40; jitter=0.3; answer=400")[0]
	addresses := start(t, 3, "record", "--upstream", engine, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", t.TempDir(), "--run", "live")
	proxy, admin := addresses[0], addresses[2]
	b := open(t)
	b.visit(admin + "/")
	b.await(`document.querySelector(".empty") !== null`)
	is[string](b, `window.marked = "this page"`)
	var asked sync.WaitGroup
	for _, model := range []string{"first-model", "second-model"} {
		asked.Go(func() {
			if err := ask(proxy, model, 160); err != nil {
				t.Error(err)
			}
		})
	}
	rows := `[...document.querySelectorAll(".running")]`
	output := rows + `.map(r => Number(r.cells[4].textContent.replace(/\D/g, ""))).reduce((a, b) => a + b, 0)`
	b.await(rows + `.length === 2`)
	b.await(output + ` > 20`)
	before := is[int](b, output)
	b.await(fmt.Sprintf("%s > %d", output, before+20))                // tokens grow
	b.await(rows + `.some(r => Number(r.cells[6].textContent) > 10)`) // and so does the rate, which is 40
	b.await(rows + `.every(r => r.querySelector("path.f1"))`)         // a sparkline
	b.picture("live")
	b.dark()
	b.picture("live-dark")
	asked.Wait()
	b.await(`document.querySelectorAll(".running").length === 0 && document.querySelectorAll("tbody .outcome.good").length === 2`)
	if is[string](b, `window.marked`) != "this page" {
		t.Error("the page was loaded again")
	}
	b.await(`/answering[^]*2\s+stored/.test(document.querySelector(".cards").innerText)`) // an end is told before its record is kept
	b.do(chromedp.Click(chromedp.CSS(".go")))
	b.await(`document.querySelector("svg.waterfall path.tick") !== null`)
	if n := is[int](b, `document.querySelectorAll("svg.waterfall rect").length`); n < 6 {
		t.Errorf("the waterfall has %d bars", n)
	}
	if box := is[float64](b, `document.querySelector("svg.waterfall").getBoundingClientRect().height`); box < 100 {
		t.Errorf("the waterfall is %v pixels high", box)
	}
	b.picture("exchange-dark")
	b.clean("live page")
}

// TestHostileAnswersAreInert opens every page of answers that attack, and holds that none does anything.
func TestHostileAnswersAreInert(t *testing.T) {
	ui := start(t, 1, "ui", "--store", setting(t, "TEST_STORE"), "--listen", "127.0.0.1:0")[0]
	b := open(t)
	b.visit(ui + "/runs/hostile")
	b.await(`document.querySelectorAll("#rows .go").length > 5`)
	exchanges := is[[]string](b, `[...document.querySelectorAll("#rows .go")].map(a => a.pathname)`)
	b.visit(ui + "/runs")
	pages := append([]string{"/runs/hostile?text=script", "/runs"}, exchanges...)
	pages = append(pages, is[[]string](b, `[...document.querySelectorAll(".go")].map(a => a.pathname)`)...)
	for i, e := range exchanges {
		one, other := path.Base(e), path.Base(exchanges[(i+1)%len(exchanges)])
		pages = append(pages, "/compare?a="+one+"&b="+other)
	}
	for i, p := range pages {
		b.visit(ui + p)
		for _, e := range []string{
			`document.title.includes("owned")`, `document.scripts.length !== 1`, `document.querySelector("iframe, object, embed, img, base, link[href*=evil]") !== null`,
			`document.querySelectorAll("[onload], [onerror], [onmouseover], [onfocus]").length > 0`, `document.documentElement.scrollWidth > innerWidth + 1`,
		} {
			if is[bool](b, e) {
				t.Errorf("%s: %s", p, e)
			}
		}
		if i == 1 || i == 5 {
			b.picture(fmt.Sprintf("hostile-%d", i))
		}
	}
	b.visit(ui + "/runs/hostile?text=script")
	b.await(`document.querySelector("#stop").hidden && document.querySelectorAll("#rows tr").length > 0`)
	b.clean("hostile pages")
}

// quick is the time a page of a large run may take to make, in ms. The machine is shared, so the best of several counts.
const quick = 100

// TestLargeRunPagesQuickly goes through a run of 100,000 exchanges: pages, filters, sorting, keys.
func TestLargeRunPagesQuickly(t *testing.T) {
	ui := start(t, 1, "ui", "--store", setting(t, "TEST_STORE"), "--listen", "127.0.0.1:0")[0]
	b := open(t)
	b.visit(ui + "/runs/many")
	b.await(`document.querySelectorAll("#rows .go").length === 100`) // at once, before the index is made
	b.await(`document.querySelector("[data-poll]") === null`)        // the page becomes whole by itself
	if got := is[string](b, `document.querySelector(".bar").innerText`); !strings.Contains(got, "100\u202f000") {
		t.Errorf("the bar says %q", got)
	}
	b.picture("run")
	for _, query := range []string{"?page=2", "?page=500", "?page=1000", "?sort=-ttft", "?sort=decode&page=77", "?model=qwen3-8b&page=9", "?status=503", "?outcome=upstream_truncated", "?path=/v1/chat/completions&page=3"} {
		best := 1e9
		for range 4 {
			b.visit(ui + "/runs/many" + query)
			best = min(best, is[float64](b, `performance.getEntriesByType("navigation")[0].responseEnd - performance.getEntriesByType("navigation")[0].requestStart`))
		}
		t.Logf("%s: %.0f ms", query, best)
		if best > quick {
			t.Errorf("%s took %.0f ms", query, best)
		}
	}
	b.visit(ui + "/runs/many?page=3")
	b.press("j")
	b.press("j")
	b.press("k")
	b.await(`document.activeElement === document.querySelectorAll("#rows .go")[0]`)
	b.press("]")
	b.arrived(`location.search.includes("page=4") && document.querySelector("#rows .go").textContent === "301"`)
	b.press("j")
	b.press(kb.Enter)
	b.arrived(`document.querySelector("svg.waterfall") !== null && document.querySelector("h1").textContent.includes("#301")`)
	b.press("]")
	b.arrived(`document.querySelector("h1").textContent.includes("#302")`)
	b.press("?")
	b.await(`document.querySelector("#help").open`)
	b.press(kb.Escape)
	b.await(`!document.querySelector("#help").open`)
	b.press("g")
	b.press("r")
	b.await(`location.pathname === "/runs"`)
	b.clean("large run")
}

// TestPagesOnAPhone looks at each page on a small screen, in the dark: nothing may stand out at the side.
func TestPagesOnAPhone(t *testing.T) {
	ui := start(t, 1, "ui", "--store", setting(t, "TEST_STORE"), "--listen", "127.0.0.1:0")[0]
	b := open(t)
	b.phone()
	b.dark()
	b.visit(ui + "/runs/many")
	ids := is[[]string](b, `[...document.querySelectorAll("#rows .go")].slice(0, 2).map(a => a.pathname.split("/").pop())`)
	for name, path := range map[string]string{"runs": "/runs", "run": "/runs/many", "exchange": "/exchanges/" + ids[0], "compare": "/compare?a=" + ids[0] + "&b=" + ids[1]} {
		b.visit(ui + path)
		if is[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s is wider than the screen: %v of %v", path, is[float64](b, `document.documentElement.scrollWidth`), is[float64](b, `innerWidth`))
		}
		if light := is[string](b, `getComputedStyle(document.documentElement).backgroundColor`); light != "rgb(14, 18, 24)" {
			t.Errorf("%s is not dark: %s", path, light)
		}
		b.picture("phone-" + name)
	}
	b.clean("phone")
}
