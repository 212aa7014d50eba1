package matrix

// Flag is a setting that the command line can change for one run.
type Flag struct {
	Name  string // without dashes
	Usage string // with the name of the value in back quotes
	key   string // in the config
}

// Flags lists them in the order in which help should show them.
func Flags() []Flag {
	return []Flag{
		{"engines", "`IDS` of engines, with commas between them", "defaults.engines"},
		{"backends", "`IDS` or aliases of compute backends", "defaults.backends"},
		{"models", "`IDS` of models, ENGINE:MODEL for one engine, or installed for all that an engine lists", "defaults.models"},
		{"scenarios", "`IDS` of scenarios; prefill_<N>[k] and steady_<N> are made to size", "defaults.scenarios"},
		{"mtp", "`WORDS` off, on or both: the draft head that an engine has a switch for", "defaults.mtp_modes"},
		{"tp", "`NUMBERS` of devices that a model is spread over", "defaults.tp_degrees"},
		{"tp-devices", "`IDS` of the devices that may be used, in order (or BENCH_TP_DEVICES)", "defaults.tp_devices"},
		{"n-cpu-moe", "`WORDS` off, all, or numbers of layers whose experts stay in host memory", "defaults.cpu_moe_layers"},
		{"cpu-moe-threads", "`NUMBERS` of host threads for those; 0 leaves it to the engine", "defaults.cpu_moe_threads"},
		{"speculative", "`METHODS` of speculative decoding to compare, none among them", "defaults.speculative"},
		{"draft-depth", "`NUMBERS` of tokens of one draft; 0 leaves it to the engine", "defaults.draft_depths"},
		{"devices", "`NAMES` of devices for engines that can choose: auto, cuda, cpu", "defaults.devices"},
		{"thinking", "`WORDS` off, on or both: whether models reason before they answer", "defaults.thinking"},
		{"concurrency", "`NUMBERS` of requests at a time", "defaults.concurrency"},
		{"max-tokens", "`N` tokens of an answer, for scenarios that do not say", "defaults.max_tokens"},
		{"thinking-max-tokens", "`N` tokens that an answer has at least when it is thought about first", "defaults.thinking_max_tokens"},
		{"context-size", "`N` tokens of one request's window", "defaults.context_size"},
		{"warmup", "`N` requests before the first timed one of each launch; 0 sends none", "defaults.warmup"},
		{"repeats", "`N` times that each cell is measured", "defaults.repeats"},
		{"order", "`WORD` engine (one launch each), alternate or together (engines take turns)", "defaults.order"},
		{"download", "`WORD` auto, never or force: what is done about model files that are missing", "defaults.download"},
		{"results", "`DIR` of the results", "paths.results_dir"},
	}
}

// variable is an environment variable that a config can be changed by.
type variable struct{ name, key string }

func variables() []variable {
	return []variable{
		{"BENCH_MODEL_ROOT", "paths.model_root"},
		{"BENCH_GEMMA4_QAT_DIR", "paths.gemma4_qat_dir"},
		{"BENCH_RESULTS", "paths.results_dir"},
		{"BENCH_TS_SERVER_DLL", "paths.tensorsharp_server_dll"},
		{"BENCH_TS_PORT", "paths.tensorsharp_port"},
		{"BENCH_LLAMA_SERVER", "paths.llama_server_exe"},
		{"BENCH_LLAMA_PORT", "paths.llama_port"},
		{"BENCH_VLLM_URL", "paths.vllm_base_url"},
		{"BENCH_IMAGE", "paths.media.image"},
		{"BENCH_AUDIO", "paths.media.audio"},
		{"BENCH_VIDEO", "paths.media.video"},
		{"BENCH_TP_DEVICES", "defaults.tp_devices"},
		{"DIFFUSION_STEPS", "paths.diffusion_steps"},
	}
}
