package sim

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

//go:embed probes/*.json
var probeFiles embed.FS

// disguise is what an engine answers to those who ask what it is.
type disguise struct {
	Engine string                 `json:"engine"`
	Server string                 `json:"server"` // Server header, "" for none
	Paths  map[string]probeAnswer `json:"paths"`  // path, or "POST path", -> answer
	Other  *probeAnswer           `json:"other"`  // to any other GET; nil leaves it to the scripted engine
}

type probeAnswer struct {
	Status  int               `json:"status"`
	Type    string            `json:"type"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"` // a JSON body
	Text    string            `json:"text,omitempty"` // any other
}

// Disguises are the engines that Disguise can play, sorted.
func Disguises() []string {
	files, err := fs.Glob(probeFiles, "probes/*.json")
	if err != nil { // the pattern is a constant
		return nil
	}
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(path.Base(f), ".json"))
	}
	return out
}

// Disguise is a Handler that answers what identifies a server as the named engine does: listings, health, version and
// metrics. It leaves generation to the scripted engine. The error wraps exchange.ErrUsage when there is no such engine.
func Disguise(engine, model string) (Handler, error) {
	raw, err := probeFiles.ReadFile("probes/" + engine + ".json")
	if err != nil {
		return nil, fmt.Errorf("%w: the scripted engine cannot play %q; it can play %s", exchange.ErrUsage, engine, strings.Join(Disguises(), ", "))
	}
	quoted := bytes.Trim(appendString(nil, model), `"`)
	var d disguise
	if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte("$model"), quoted), &d); err != nil {
		return nil, fmt.Errorf("read probe answers of %s: %w", engine, err)
	}
	return d.answer, nil
}

func (d *disguise) answer(r Request) *Script {
	key := r.Path()
	if r.Method != "GET" && r.Method != "HEAD" {
		key = r.Method + " " + key
	}
	if a, ok := d.Paths[key]; ok {
		return a.script(d.Server)
	}
	if d.Other != nil && r.Method == "GET" {
		return d.Other.script(d.Server)
	}
	if r.Method == "GET" {
		return errorScript(404, "not_found_error", "no such path: "+r.Path())
	}
	return nil
}

func (a probeAnswer) script(server string) *Script {
	body := []byte(a.Body)
	if a.Text != "" || a.Body == nil {
		body = []byte(a.Text)
	}
	s := &Script{Status: a.Status, Framing: FramingLength, JoinHead: true, Steps: []Step{{Data: body}},
		Headers: []exchange.Header{{Name: "Content-Type", Value: a.Type}}}
	if server != "" {
		s.Headers = append(s.Headers, exchange.Header{Name: "Server", Value: server})
	}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		s.Headers = append(s.Headers, exchange.Header{Name: name, Value: a.Headers[name]})
	}
	return s
}
