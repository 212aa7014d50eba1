package matrix

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
)

// configFiles are all configs of this repository: those in the schema of older tools, and the examples.
func configFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"testdata/configs/*.json", "../../examples/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d configs, %v", pattern, len(found), err)
		}
		out = append(out, found...)
	}
	return slices.DeleteFunc(out, func(f string) bool { return strings.HasSuffix(f, ".schema.json") })
}

func TestConfigsLoadAndArePlanned(t *testing.T) {
	for _, file := range configFiles(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Load(input(t, string(raw), nil, nil))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		p := planOf(t, c)
		if n := p.Counts(); n.Run == 0 || n.Run+n.Skip != n.Cells {
			t.Errorf("%s: %+v", file, n)
		}
		for _, w := range c.Warnings {
			t.Logf("%s: %s", file, w)
		}
		if problems := c.Check(func(string) bool { return false }); len(problems) > 0 {
			t.Errorf("%s: %q", file, problems)
		}
	}
}

func TestConfigsFollowTheSchema(t *testing.T) {
	raw, err := JSONSchema([]string{"tensorsharp", "llamacpp", "vllm", "ollama"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("bench.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("bench.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(strict.Plain([]byte(text)))))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	for _, file := range append(configFiles(t), "builtin.json") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, bad := range []string{
		`{"model":{}}`, `{"models":{"m":{"ggfu":"x"}}}`, `{"models":{"m":{"size_class":"tiny"}}}`, `{"models":{"m":{"min_tp":0}}}`,
		`{"defaults":{"concurrency":[0]}}`, `{"defaults":{"cpu_moe_layers":["none"]}}`, `{"paths":{"tensorsharp_port":"5000"}}`,
		`{"backends":{"b":{"kind":"tpu"}}}`, `{"engines":{"e":{"transport":"magic"}}}`, `{"backends":{"b":{"tensorsharp":{"backnd":"x"}}}}`,
		`{"models":{"m":{"gguf":{"paht":"x"}}}}`, `[]`,
	} {
		if valid(bad) == nil {
			t.Errorf("the schema takes %s", bad)
		}
		if _, err := Load(input(t, bad, nil, nil)); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("the reader takes %s: %v", bad, err)
		}
	}
}

func TestWhatIsWrongIsToldWithItsLine(t *testing.T) {
	for raw, want := range map[string]string{
		"{\n \"models\": {\n  \"m\": {\n   \"ggfu\": \"x\"}}}": `bench.json:4: models.m: there is no key "ggfu"; did you mean "gguf"? there are display, family`,
		`{"modles": {}}`:                                                                `bench.json:1: there is no key "modles"; did you mean "models"?`,
		"{\"paths\":\n{\"model_root\": 4}}":                                             "bench.json:2: paths.model_root: it is a number and has to be an object",
		"{\"paths\": {\"results_dir\": \"${hre}/x\"}}":                                  `paths.results_dir: there is no ${hre}; did you mean "${here}"?`,
		`{"defaults": {"backends": ["ggml_cudaa"]}}`:                                    `there is no backend "ggml_cudaa"; did you mean "ggml_cuda"? there are ggml_cuda, gpu, ggml_vulkan`,
		`{"defaults": {"engines": ["lamacpp"]}}`:                                        `there is no engine "lamacpp"; did you mean "llamacpp"?`,
		`{"defaults": {"scenarios": ["txt_short"]}}`:                                    `there is no scenario "txt_short"; did you mean "text_short"?`,
		`{"models": {"alpha": {}}, "defaults": {"models": ["alhpa"]}}`:                  `there is no model "alhpa"; did you mean "alpha"?`,
		`{"defaults": {"models": ["alpha"]}}`:                                           `there is no model "alpha"; there are none; or name one of an engine's`,
		`{"defaults": {"tp_degrees": [0]}}`:                                             `defaults.tp_degrees: "0" is not a whole number from 1 to 1024`,
		`{"defaults": {"cpu_moe_layers": ["none"]}}`:                                    `"none" is not off, 0, all or a number of layers`,
		`{"defaults": {"cpu_moe_threads": [8]}}`:                                        "threads are for offloaded layers, and none are selected",
		`{"defaults": {"draft_depths": [4]}}`:                                           "a depth is for a method that drafts",
		`{"defaults": {"speculative": ["magic"]}}`:                                      `there is no method "magic"; there are none, draft-mtp`,
		`{"defaults": {"mtp_modes": ["perhaps"]}}`:                                      `"perhaps" is none of off, on, both`,
		`{"defaults": {"concurrency": []}}`:                                             "defaults.concurrency: the list is empty",
		`{"defaults": {"warmup": -1}}`:                                                  "defaults.warmup: -1 is below 0",
		`{"defaults": {"warmup": 2000000000}}`:                                          "defaults.warmup: 2000000000 is above 100000",
		`{"defaults": {"repeats": 1000000000}}`:                                         "defaults.repeats: 1000000000 is above 100000",
		`{"defaults": {"order": "random"}}`:                                             `there is no "random"; there are engine, alternate, together`,
		`{"backends": {"b": {"tensorsahrp": true}}}`:                                    `backends.b: there is no key or engine "tensorsahrp"; did you mean "tensorsharp"?`,
		`{"backends": {"b": {"llamacpp": 1, "llama.cpp": 2}}}`:                          "two keys mean the engine llamacpp",
		`{"backends": {"a": {"aliases": ["x"]}, "b": {"aliases": ["x"]}}}`:              `the alias "x" is another backend's name`,
		`{"backends": {"One": {}, "one": {}}}`:                                          `"One" and "one" differ only by case`,
		`{"engines": {"mine": {}}}`:                                                     `engines.mine: there is no engine "mine" in the catalog`,
		`{"engines": {"mine": {"url": "ftp://x"}}}`:                                     `the url "ftp://x" is not http://, https:// or unix:/socket`,
		`{"engines": {"openai": {"transport": "server"}}}`:                              "openai cannot be launched",
		`{"engines": {"openai": {"url": "http://h", "key_env": "A", "key_file": "b"}}}`: "key_env and key_file exclude each other",
		`{"engines": {"llamacpp": {"backends": ["gpuu"]}}}`:                             `there is no backend "gpuu"; did you mean "gpu"?`,
		`{"models": {"m": {"modalities": ["smell"]}}}`:                                  `there is no modality "smell"; there are text, image, audio, video`,
		`{"models": {"m": {"min_tp": 4, "max_tp": 2}}}`:                                 "max_tp 2 is below min_tp 4",
		`{"models": {"m": {"engines": {"olama": "x"}}}}`:                                `there is no engine "olama"; did you mean "ollama"?`,
		`{"models": {"m": {"mtp_supported": "yes"}}}`:                                   "it is a text and has to be true or false",
		`{"models": {"m": {"min_tp": "2"}}}`:                                            `"2" is not a whole number`,
		`{"a": 1, "a": 2}`:                                                              `bench.json:1: the key "a" is given twice`,
		`{"paths": `:                                                                    "bench.json:1: the text ends early",
		`{} {}`:                                                                         "there is more behind the value",
		`[]`:                                                                            "bench.json:1 is a list and has to be an object",
		`{"models": {"m": {}}}`:                                                         "no engine is selected",
		`{"profiles": {"sim": {"launch": {"prot": 1}}}, "models": {}}`:                  "prot",
	} {
		_, err := Load(input(t, raw, nil, nil))
		switch {
		case err == nil:
			t.Errorf("%s is taken", raw)
		case !errors.Is(err, exchange.ErrUsage):
			t.Errorf("%s: the error is none of usage: %v", raw, err)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%s\n gives %v\n want  %s", raw, err, want)
		}
	}
}

func TestAllThatIsWrongIsToldAtOnce(t *testing.T) {
	_, err := Load(input(t, "{\n\"modles\": {},\n\"paths\": {\"x\": 1},\n\"llama\": {\"context_size\": 0}}", nil, nil))
	for _, want := range []string{"bench.json:2", "bench.json:3", "bench.json:4"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

// TestPrecedence holds which source wins, and that each value knows its own.
func TestPrecedence(t *testing.T) {
	raw := "{\"paths\": {\n\"llama_port\": 6001,\n\"model_root\": \"/file\"},\n\"models\": {\"m\": {\n\"gguf\": {\"path\": \"${model_root}/m.gguf\", \"env\": \"BENCH_M\"},\n" +
		"\"mmproj\": {\"path\": \"${model_root}/p.gguf\", \"env\": \"BENCH_P\"}}},\n\"defaults\": {\"engines\": [\"llamacpp\"], \"max_tokens\": 64, \"concurrency\": [1]}}"
	vars := map[string]string{"BENCH_LLAMA_PORT": "6002", "BENCH_MODEL_ROOT": "/env", "BENCH_M": "/elsewhere/${x}.gguf", "BENCH_TP_DEVICES": "3,1", "BENCH_RESULTS": ""}
	c, err := Load(input(t, raw, vars, map[string]string{"concurrency": "4,1,4", "results": "out"}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Setting{
		"paths.llama_port":           {Value: "6002", Source: SourceEnv, At: "BENCH_LLAMA_PORT"},
		"paths.model_root":           {Value: "/env", Source: SourceEnv, At: "BENCH_MODEL_ROOT"},
		"paths.results_dir":          {Value: "out", Source: SourceFlag, At: "--results"},
		"paths.tensorsharp_port":     {Value: "5000", Source: SourceBuiltin},
		"models.m.gguf":              {Value: "/elsewhere/${x}.gguf", Source: SourceEnv, At: "BENCH_M"},
		"models.m.mmproj":            {Value: "/env/p.gguf", Source: SourceFile, At: "bench.json:6"},
		"models.m.size_class":        {Value: "medium", Source: SourceBuiltin},
		"defaults.concurrency":       {Value: "4,1,4", Source: SourceFlag, At: "--concurrency"},
		"defaults.max_tokens":        {Value: "64", Source: SourceFile, At: "bench.json:7"},
		"defaults.tp_devices":        {Value: "3,1", Source: SourceEnv, At: "BENCH_TP_DEVICES"},
		"defaults.repeats":           {Value: "1", Source: SourceBuiltin},
		"backends.ggml_cuda.kind":    {Value: "gpu", Source: SourceBuiltin},
		"ready_timeout_s.large":      {Value: "1200", Source: SourceBuiltin},
		"backends.ggml_cpu.llamacpp": {Value: "0", Source: SourceBuiltin},
	}
	got := map[string]Setting{}
	for _, s := range c.Settings {
		if _, twice := got[s.Key]; twice {
			t.Errorf("%s is listed twice", s.Key)
		}
		got[s.Key] = s
	}
	for key, w := range want {
		w.Key = key
		if got[key] != w {
			t.Errorf("%+v, want %+v", got[key], w)
		}
	}
	d := c.Defaults
	if !slices.Equal(d.Concurrency, []int{4, 1}) || !slices.Equal(d.TPDevices, []string{"3", "1"}) || c.Paths.LlamaPort != 6002 {
		t.Errorf("%+v %+v", d, c.Paths)
	}
	if c.Models[0].Files.Weights != "/elsewhere/${x}.gguf" || c.Models[0].Files.Projector != "/env/p.gguf" {
		t.Errorf("%+v", c.Models[0].Files)
	}
}

// TestCommentsReachNothing holds that no key with an underscore is exported, listed, or taken for an id.
func TestCommentsReachNothing(t *testing.T) {
	c := loadFile(t, "configs/main.json", nil)
	p := planOf(t, c)
	n := 0
	for i := range p.Groups {
		for name := range p.Groups[i].Launch.Registry.Env {
			n++
			if isComment(name) {
				t.Errorf("%s: the comment %s is exported", p.Groups[i].Name, name)
			}
		}
	}
	if n == 0 {
		t.Error("nothing is exported at all")
	}
	for _, s := range c.Settings {
		for _, part := range strings.Split(s.Key, ".") {
			if isComment(part) && s.Key != "models.dense-12b._hf" {
				t.Errorf("the comment %s is a setting", s.Key)
			}
		}
	}
}

func TestOlderFormOfBackends(t *testing.T) {
	c := loadFile(t, "configs/legacy.json", nil)
	p := planOf(t, c)
	got := map[string]string{}
	for i := range p.Groups {
		g := &p.Groups[i]
		for j := range g.Cells {
			cell := &g.Cells[j]
			text := string(cell.Do) + " " + g.Launch.Registry.Values["backend"] + g.Launch.Registry.Values["ngl"]
			if cell.Skip != nil {
				text = "skip " + string(cell.Skip.Kind)
			}
			got[cell.Name] = text
		}
	}
	want := map[string]string{
		"tensorsharp__gpu__m-4b__text_short": "run ggml_cuda", "tensorsharp__cpu__m-4b__text_short": "run ggml_cpu",
		"llamacpp__gpu__m-4b__text_short": "run 999", "llamacpp__cpu__m-4b__text_short": "run 0",
	}
	for _, engine := range []string{"tensorsharp", "llamacpp"} {
		for _, backend := range []string{"gpu", "cpu"} {
			want[engine+"__"+backend+"__m-4b__recolor"] = "skip modality"
			want[engine+"__"+backend+"__pictures__text_short"] = "skip modality"
			want[engine+"__"+backend+"__pictures__recolor"] = "skip modality"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSourcesOfFiles(t *testing.T) {
	c := loadFile(t, "configs/main.json", nil)
	got := c.model("dense-12b").Sources
	want := []FileSource{
		{Role: "gguf", Path: "D:/models/qat/dense-12b.gguf", Repo: "someone/dense-12b-GGUF", URL: "dense-12b-UD.gguf"},
		{Role: "mmproj", Path: "D:/models/qat/mmproj.gguf", Repo: "someone/dense-12b-GGUF", URL: "https://example.com/mmproj-F16.gguf"},
		{Role: "mtp_draft", Path: "D:/models/draft.gguf", Repo: "someone/dense-12b-GGUF"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := c.model("moe-35b").Sources[0]; got.Repo != "someone/moe-35b-MTP-GGUF" || got.Revision != "abc123" {
		t.Errorf("%+v", got)
	}
	if got := c.model("blocks").Sources[0]; got.Base != "https://example.com/models" || !got.Known() {
		t.Errorf("%+v", got)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"alpha", "beta", "gguf"}
	for word, want := range map[string]string{"alhpa": "alpha", "ALPHA": "alpha", "ggfu": "gguf", "zzzzzz": "", "bet": "beta", "": ""} {
		if got := nearest(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
}

// FuzzLoad states that a config is read or refused, and that what is read can be planned or tells why not.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/configs/*.json", "../../examples/*.json", "builtin.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := Load(input(t, raw, nil, nil))
		if err != nil {
			if !errors.Is(err, exchange.ErrUsage) {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		p, err := NewPlan(c, PlanOptions{})
		if err != nil {
			return
		}
		n := p.Counts()
		if n.Run+n.Skip != n.Cells || p.distinct() != nil {
			t.Errorf("%q: %+v", raw, n)
		}
	})
}
