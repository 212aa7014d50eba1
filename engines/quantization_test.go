package engines

import "testing"

func TestNormalQuantization(t *testing.T) {
	for stated, want := range map[string]string{
		"Q4_K - Medium": "Q4_K_M", "Q4_K - Small": "Q4_K_S", "Q3_K - Large": "Q3_K_L", "Q2_K - Medium": "Q2_K", "Q2_K - Small": "Q2_K_S",
		"IQ2_XXS - 2.0625 bpw": "IQ2_XXS", "IQ4_NL - 4.5 bpw": "IQ4_NL", "IQ3_S mix - 3.66 bpw": "IQ3_M", "TQ1_0 - 1.69 bpw ternary": "TQ1_0",
		"F16": "FP16", "BF16": "BF16", "all F32": "FP32", "Q8_0": "Q8_0", "Q4_K_M": "Q4_K_M", "mostly Q4_0": "Q4_0", "MXFP4 MoE": "MXFP4_MOE",
		"fp8": "FP8", "4bit": "4BIT", "awq": "AWQ", "compressed-tensors": "COMPRESSED-TENSORS", " q5_1 ": "Q5_1",
		"Q4_K - Medium (guessed)": "", "(guessed) Q8_0": "", "unknown, may not work": "", "unknown": "", "": "", "none": "", "a b c": "", "Q4_K - Huge": "",
	} {
		got, ok := NormalQuantization(stated)
		if got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v; want %q", stated, got, ok, want)
		}
	}
}

func TestNameQuantization(t *testing.T) {
	for name, want := range map[string]string{
		"Qwen3-30B-A3B-UD-Q4_K_XL.gguf": "UD-Q4_K_XL", "Qwen3-8B-exl3-4.0bpw": "EXL3", "gemma-3-1b-it-Q8_0": "Q8_0", "x-q4_k_m": "Q4_K_M",
		"Qwen/Qwen3-8B-AWQ": "AWQ", "Qwen3-8B-FP8": "FP8", "m-f16.gguf": "FP16", "m.IQ2_XXS.gguf": "IQ2_XXS", "qwen2.5-coder:7b-instruct-q4_K_M": "Q4_K_M",
		"gpt-oss-20b-MXFP4": "MXFP4", "m-int4-AutoRound": "AutoRound", "mlx-community/m-4bit": "4BIT", "m-UD_IQ1_S": "UD-IQ1_S",
		"gemma4": "", "Model-GGUF": "", "Q4": "", "sq8_0x": "", "seq2_seq": "", "mlx": "", "": "",
	} {
		got, ok := NameQuantization(name)
		if got != want || ok != (want != "") {
			t.Errorf("%q tells %q, %v; want %q", name, got, ok, want)
		}
	}
}

func TestQuantizationOfNameBeforeTheServers(t *testing.T) {
	props := `{"build_info":"b9927","model_ftype":"Q4_K - Medium","model_path":"/srv/models/%s"}`
	for file, want := range map[string]string{
		"a-UD-Q4_K_XL.gguf": "UD-Q4_K_XL", "gemma4.gguf": "Q4_K_M",
	} {
		s := &server{answers: map[string]played{"/props": jsonBody(sprintf(props, file))}}
		d := identify(t, s, Options{})
		if show(d.Quantization) != want || show(d.ModelRoot) != file {
			t.Errorf("%s is %v under %v, want %s", file, show(d.Quantization), show(d.ModelRoot), want)
		}
	}
}

// FuzzQuantization states that a normalized type is its own normal form, and that a name made of one tells it.
func FuzzQuantization(f *testing.F) {
	for _, s := range []string{"Q4_K - Medium", "IQ2_XXS - 2.0625 bpw", "F16", "(guessed)", "UD-Q4_K_XL", "MXFP4 MoE", "all F32"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, ok := NormalQuantization(s)
		if !ok {
			return
		}
		again, ok := NormalQuantization(q)
		if !ok || again != q {
			t.Errorf("%q became %q, and that %q, %v", s, q, again, ok)
		}
	})
}
