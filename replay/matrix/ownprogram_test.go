package matrix

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOwnProgramIsLaunched holds that an engine of which nothing is known but its program is started, and not waited for.
func TestOwnProgramIsLaunched(t *testing.T) {
	const models = `"models": {"m": {"engines": {"mine": "m"}}}, "defaults": {"models": ["m"], "engines": ["mine"], "backends": ["gpu"]}}`
	for name, c := range map[string]struct{ engine, transport, program string }{
		"a program":        {`{"profile": "generic", "program": "server", "extra_args": ["--port", "${port}"]}`, TransportServer, "server"},
		"a url":            {`{"profile": "generic", "url": "http://127.0.0.1:1"}`, TransportConnect, ""},
		"one that it runs": {`{"profile": "generic", "program": "server", "transport": "connect", "url": "http://127.0.0.1:1"}`, TransportConnect, "server"},
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, `{"engines": {"mine": `+c.engine+`}, `+models, nil).engine("mine")
			if diff := cmp.Diff([]string{c.transport, c.program}, []string{e.Transport, e.Program}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	p := planOf(t, load(t, `{"engines": {"mine": {"profile": "generic", "program": "server", "extra_args": ["--port", "${port}"]}}, `+models, nil))
	if len(p.Groups) != 1 || p.Groups[0].Launch.Transport != TransportServer || p.Groups[0].Launch.Program != "server" {
		t.Fatalf("%+v", p.Groups)
	}
	if diff := cmp.Diff([]string{"--port", "${port}"}, p.Groups[0].Launch.Registry.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

// TestDaemonNeedsNoURL holds that an engine whose daemon notes where it listens is no engine without an address.
func TestDaemonNeedsNoURL(t *testing.T) {
	for engine, skipped := range map[string]bool{"foundry": false, "lmstudio": true} {
		p := planOf(t, load(t, `{"models": {"m": {"engines": {"`+engine+`": "m"}}}, "defaults": {"models": ["m"], "engines": ["`+engine+`"], "backends": ["gpu"]}}`, nil))
		for _, g := range p.Groups {
			for _, c := range g.Cells {
				if noURL := c.Skip != nil && c.Skip.Kind == SkipNoURL; noURL != skipped {
					t.Errorf("%s: %+v", engine, c.Skip)
				}
			}
		}
		if len(p.Groups) == 0 {
			t.Errorf("%s has no groups", engine)
		}
	}
}

func TestPlacesThatStandForNothing(t *testing.T) {
	for raw, want := range map[string]string{
		`{"paths": {"model_root": "${model_root}/models"}}`:    "paths.model_root: ${model_root} stands for the value of this very key",
		`{"paths": {"model_root": "${gemma4_qat_dir}"}}`:       "${gemma4_qat_dir} stands for paths.gemma4_qat_dir, which the config does not set",
		`{"models": {"m": {"gguf": "${model_rot}/x.gguf"}}}`:   `there is no ${model_rot}; did you mean "${model_root}"?`,
		`{"paths": {"model_root": {"path": "${model_root}"}}}`: "stands for the value of this very key",
	} {
		if _, err := Load(input(t, raw, nil, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
