package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// pageNames are the pages; each fills the "content" of the layout.
var pageNames = []string{"live", "runs", "run", "exchange", "compare", "takes", "problem"}

// parsePages reads the templates, which are part of the program.
func parsePages() map[string]*template.Template {
	pages := map[string]*template.Template{}
	layout := template.Must(template.New("layout.html").Funcs(templateFuncs()).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	for _, name := range pageNames {
		pages[name] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return pages
}

// frame is what every page has around its own content.
type frame struct {
	Title   string
	Nav     string // which entry of the head the page is under
	Live    bool   // there is a live page
	Store   bool   // there are recordings
	Health  *Health
	Version string
	Zone    string // time zone of the times shown
	Took    string // to make the page
	Body    any
}

// show renders a page. part renders its content alone, for a page that is there already.
func (s *Server) show(w http.ResponseWriter, began time.Time, f frame, name, part string) error {
	b, took, err := s.render(began, f, name, part)
	if err != nil {
		return err
	}
	writePage(w, b, took)
	return nil
}

// writePage writes what render gave; took is in ms.
func writePage(w http.ResponseWriter, page []byte, took float64) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Server-Timing", fmt.Sprintf("page;dur=%.3f", took))
	_, _ = w.Write(page) // as in fail
}

// render makes a page and tells in how many ms.
func (s *Server) render(began time.Time, f frame, name, part string) (page []byte, took float64, err error) {
	f.Live, f.Store, f.Health = s.o.Live != nil, s.o.Store != nil, s.healthOf()
	if f.Health != nil {
		f.Version = f.Health.Version
	}
	f.Zone = began.Local().Format("MST")
	f.Took = chart.Milliseconds(float64(clock.Since(began)) / 1e6)
	var out bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&out, part, f); err != nil {
		return nil, 0, fmt.Errorf("render page %s: %w", name, err)
	}
	return out.Bytes(), float64(clock.Since(began)) / 1e6, nil
}

const wholePage = "layout.html"

// page guards the routes of pages: what goes wrong is a page too.
func (s *Server) page(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		status := statusOf(err)
		began := clock.Now()
		f := frame{Title: http.StatusText(status), Body: problemPage{status, http.StatusText(status), err.Error()}}
		w = &statusWriter{ResponseWriter: w, status: status}
		if err := s.show(w, began, f, "problem", wholePage); err != nil {
			fail(w, http.StatusInternalServerError, err)
		}
	}
}

type problemPage struct {
	Status int
	Words  string
	Text   string
}

// statusWriter writes a status with the first byte.
type statusWriter struct {
	http.ResponseWriter
	status  int
	written bool
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if !w.written {
		w.written = true
		w.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(p)
}

// stored guards pages that need recordings.
func (s *Server) stored(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return s.page(func(w http.ResponseWriter, r *http.Request) error {
		if s.o.Store == nil {
			return fmt.Errorf("%w: nothing is recorded here, this proxy only measures", exchange.ErrMiss)
		}
		return h(w, r)
	})
}

// routePages adds the pages.
func (s *Server) routePages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.page(s.livePage))
	mux.HandleFunc("GET /part/live", s.page(s.livePart))
	mux.HandleFunc("GET /runs", s.stored(s.runsPage))
	mux.HandleFunc("GET /runs/{run}", s.stored(s.runPage))
	mux.HandleFunc("GET /runs/{run}/search", s.stored(s.alone(s.search)))
	mux.HandleFunc("GET /exchanges/{id}", s.stored(s.oneByOne(s.exchangePage)))
	mux.HandleFunc("GET /exchanges/{id}/text/{channel}", s.stored(s.oneByOne(s.text)))
	mux.HandleFunc("GET /part/sparks", s.recorded(s.sparkPart))
	mux.HandleFunc("GET /takes/{key}", s.stored(s.takesPage))
	mux.HandleFunc("GET /compare", s.stored(s.oneByOne(s.comparePage)))
	mux.HandleFunc("GET /static/{file}", s.static)
	mux.HandleFunc("GET /", s.page(func(_ http.ResponseWriter, r *http.Request) error {
		return fmt.Errorf("%w: there is no page %q", exchange.ErrMiss, oneLine(r.URL.Path, 100))
	}))
}

// staticTypes are the types of the files of ours.
var staticTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// static serves style, script and icon; the style of charts goes with the style of pages.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	b, err := staticFiles.ReadFile("static/" + name)
	kind := staticTypes[path.Ext(name)]
	if err != nil || kind == "" {
		fail(w, http.StatusNotFound, fmt.Errorf("there is no file %q", name))
		return
	}
	if name == "app.css" {
		b = append([]byte(chart.Style), b...)
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(b) // as in fail
}

// livePage is the first page: what runs now, or the runs where nothing does.
func (s *Server) livePage(w http.ResponseWriter, r *http.Request) error {
	if s.o.Live == nil {
		http.Redirect(w, r, "/runs", http.StatusFound)
		return nil
	}
	began := clock.Now()
	return s.show(w, began, frame{Title: "live", Nav: "live", Body: s.liveBody()}, "live", wholePage)
}

// livePart is the part of it that changes, as it was made last. However many look, it is not made more often than a person
// can see: it is made in a process that measures.
type livePart struct {
	mu   sync.Mutex
	made time.Time
	page []byte
	took float64 // ms
}

// partAge is how old the part may be.
const partAge = 200 * time.Millisecond

// livePart answers with it.
func (s *Server) livePart(w http.ResponseWriter, _ *http.Request) error {
	if s.o.Live == nil {
		return fmt.Errorf("%w: nothing runs here", exchange.ErrMiss)
	}
	page, took, err := s.freshPart()
	if err != nil {
		return err
	}
	writePage(w, page, took)
	return nil
}

func (s *Server) freshPart() (page []byte, took float64, err error) {
	p := &s.part
	p.mu.Lock()
	defer p.mu.Unlock()
	began := clock.Now()
	if p.page == nil || began.Sub(p.made) >= partAge {
		if page, took, err = s.render(began, frame{Nav: "live", Body: s.liveBody()}, "live", "content"); err != nil {
			return nil, 0, err
		}
		p.page, p.took, p.made = page, took, clock.Now()
	}
	return p.page, p.took, nil
}

// shownStreams bounds the running exchanges that a page follows one by one.
const shownStreams = 50

type liveBody struct {
	Streams []Stream
	All     int
	Engines []liveEngine
	Ended   []Ended
	Health  *Health
}

// More is the number of running exchanges that are not shown.
func (b liveBody) More() int { return b.All - len(b.Streams) }

// liveEngine is an engine with its address.
type liveEngine struct {
	Engine
	URL      string
	Identity exchange.Identity
}

func (s *Server) liveBody() liveBody {
	b := liveBody{Health: s.healthOf(), Ended: s.o.Live.Ended()}
	b.Streams, b.All = s.o.Live.Running(shownStreams)
	for _, e := range s.o.Live.Engines() {
		g := liveEngine{Engine: e}
		if b.Health != nil && b.Health.Run != nil {
			g.URL, g.Identity = b.Health.Run.Upstreams[e.Name], b.Health.Run.Identity
		}
		if e.Deployment != nil {
			g.Identity = e.Deployment.Identity
		}
		b.Engines = append(b.Engines, g)
	}
	return b
}

// What is a line on the engine: its name and version.
func (e liveEngine) What() string {
	switch e.Identity.Engine {
	case "":
		return "engine not read"
	case "unknown":
		return "not recognized"
	}
	return strings.TrimSpace(e.Identity.Engine + " " + e.Identity.Version)
}

// Facts are what is known of the model that it serves.
func (e liveEngine) Facts() (out []string) {
	d := e.Deployment
	if d == nil {
		return nil
	}
	add := func(name string, v *string) {
		if v != nil && *v != "" {
			out = append(out, strings.TrimSpace(name+" "+oneLine(*v, 60)))
		}
	}
	number := func(name string, v *int64) {
		if v != nil {
			out = append(out, name+" "+chart.Number(float64(*v)))
		}
	}
	add("", d.Model)
	add("", d.Quantization)
	add("on", d.ObservedDevice)
	number("window", d.Window)
	number("slots", d.Slots)
	add("drafts", d.DraftMethod)
	if d.CPUFallback {
		out = append(out, "CPU fallback")
	}
	return out
}

// Since is when the last answer ended.
func (e liveEngine) Since() string {
	if e.Last.IsZero() {
		return "no answer yet"
	}
	return "last answer " + e.Last.Local().Format("15:04:05")
}

// runName is the name of a run, or its id.
func runName(r *exchange.Run) string { return cmp.Or(r.Name, string(r.ID)) }
