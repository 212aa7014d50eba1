package engines

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/sim"
)

// TestScriptedEngines identifies the scripted engine in each of its disguises, over sockets.
func TestScriptedEngines(t *testing.T) {
	big := int64(8190735360)
	want := map[string]facts{
		"llamacpp": {"engine": "llamacpp", "version": "b10573-3f7c29d", "model": "m-1", "root": "model.gguf", "parameters": big,
			"quantization": "Q4_K_M", "window": int64(8192), "slots": int64(4), "drafting": false},
		"vllm": {"engine": "vllm", "version": "0.11.2", "model": "m-1", "root": "Qwen/Qwen3-8B-AWQ", "quantization": "AWQ", "window": int64(40960)},
		"sglang": {"engine": "sglang", "version": "0.5.6", "model": "m-1", "root": "m-1", "quantization": "FP8", "window": int64(40960),
			"slots": int64(64), "gpus": int64(2), "device": "cuda", "drafting": true, "method": "eagle"},
		"ollama": {"engine": "ollama", "version": "0.17.4", "model": "m-1", "parameters": big, "quantization": "Q4_K_M", "window": int64(4096),
			"device": "gpu", "digest": "sha256:3bebf8f9e612c26f20fa839ec5b2b59d6414703887fca5dcac2885b50f8f43a2"},
		"tensorsharp": {"engine": "tensorsharp", "model": "m-1"},
		"litellm":     {"engine": "litellm", "version": "1.80.0", "model": "m-1"},
		"tabbyapi":    {"engine": "tabbyapi", "model": "m-1", "window": int64(32768), "slots": int64(8)},
		"strata": {"engine": "strata", "version": "0.9.1", "model": "m-1", "window": int64(32768), "slots": int64(1),
			"drafting": true, "method": "mtp"},
		"tensorfold": {"engine": "tensorfold", "model": "m-1", "window": int64(65536), "slots": int64(4)},
		"ninfer":     {"engine": "ninfer", "model": "m-1"},
		"halogen":    {"engine": "halogen", "version": "0.16.2", "model": "m-1"},
		"foundry":    {"engine": "foundry", "model": "m-1"},
		"prism":      {"engine": "prism", "inner": "onnx", "model": "m-1", "device": "cuda"},
		"lmstudio":   {"engine": "lmstudio", "model": "m-1", "quantization": "Q4_K_M", "window": int64(8192)},
	}
	all := sim.Disguises()
	if len(all) != len(want) {
		t.Fatalf("%d disguises, %d expectations", len(all), len(want))
	}
	for _, engine := range all {
		t.Run(engine, func(t *testing.T) {
			h, err := sim.Disguise(engine, "m-1")
			if err != nil {
				t.Fatal(err)
			}
			d, err := builtin(t).Identify(t.Context(), Client(ClientOptions{}), serve(t, sim.Config{Handler: h}), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[engine], factsOf(d)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if d.Evidence == "" || d.Fingerprint == nil {
				t.Errorf("no evidence or fingerprint: %+v", d)
			}
		})
	}
}

func TestAGenericServerIsUnknown(t *testing.T) {
	d, err := builtin(t).Identify(t.Context(), Client(ClientOptions{}), serve(t, sim.Config{Model: "m"}), Options{})
	if err != nil || d.Engine != Unknown || show(d.Model) != "m" {
		t.Errorf("got %+v, %v", factsOf(d), err)
	}
}

// serve runs a scripted engine until the test ends and gives its URL.
func serve(t *testing.T, cfg sim.Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := sim.New(cfg)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = s.Close() // always nil
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}
