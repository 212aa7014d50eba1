package engines

import (
	"errors"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestLaunchRefuses(t *testing.T) {
	for want, launch := range map[string]string{
		"there is no axis":              `"args":[{"axis":"speed","args":["x"]}]`,
		"needs an axis":                 `"args":[{"is":"all","args":["x"]}]`,
		"are none":                      `"args":[{"axis":"slots"}]`,
		"needs an id, and the kind":     `"args":[],"backends":[{"id":"x","kind":"tpu"}]`,
		"are both called":               `"args":[],"backends":[{"id":"x","kind":"gpu"},{"id":"y","kind":"cpu","aliases":["X"]}]`,
		"no usable expression":          `"args":[],"devices":{"seen":[{"match":"(","device":"x"}]}`,
		"a hint needs a time":           `"args":[],"hints":[{"when":"later","say":"x"}]`,
		`there is no "all" to serve`:    `"args":[],"serves":"all"`,
		`"/x" is no pattern of`:         `"args":[],"parts":["/x"]`,
		`"[" is no pattern of`:          `"args":[],"parts":["["]`,
		`no way to stop called "bang"`:  `"args":[],"stop":"bang"`,
		`there is no key "argh"`:        `"args":[],"argh":1`,
		"load and unload need a method": `"args":[]},"load":{"path":"x"`,
	} {
		c := builtin(t)
		raw := `{"schema":1,"id":"ours","name":"Ours","kind":"server","recognize":{},"requests":{},"launch":{"program":"x","port":1,"busy":"next",` + launch + `}}`
		err := c.Add([]byte(raw))
		if !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestDaemonRefuses(t *testing.T) {
	const commands = `,"load":["x","$model"],"unload":["x","$model"]`
	for daemon, want := range map[string]string{
		`"file":"/etc/x","addresses":"a","start":"s"` + commands:                       "is no file below the home directory",
		`"file":"../x","addresses":"a","start":"s"` + commands:                         "is no file below the home directory",
		`"file":"x","start":"s"` + commands:                                            "it needs the key of its addresses",
		`"file":"x","addresses":"a"` + commands:                                        "how it is started",
		`"file":"x","addresses":"a","start":"s"`:                                       "is a program and arguments",
		`"file":"x","addresses":"a","start":"s","load":["$model"],"unload":["$model"]`: "is a program and arguments",
	} {
		err := builtin(t).Add([]byte(`{"schema":1,"id":"ours","name":"Ours","kind":"server","recognize":{},"requests":{},"daemon":{` + daemon + `}}`))
		if !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, p := range builtin(t).Profiles() {
		if (p.Daemon != nil) != (p.ID == "foundry") {
			t.Errorf("%s is found by the file of a daemon: %v", p.ID, p.Daemon != nil)
		}
	}
}

func TestLaunchBackend(t *testing.T) {
	p, _ := builtin(t).Lookup("tensorsharp")
	for name, want := range map[string]string{"ggml_cuda": "ggml_cuda", "gpu": "ggml_cuda", "GPU": "ggml_cuda", "cuda": "cuda", "Cpu": "cpu", "none": ""} {
		if b, ok := p.Launch.Backend(name); b.ID != want || ok != (want != "") {
			t.Errorf("%s is %q, %v", name, b.ID, ok)
		}
	}
	if !p.Launch.Does(AxisDraft) || p.Launch.Does(AxisSlots) || len(LaunchAxes()) == 0 {
		t.Error("its axes are wrong")
	}
}
