package matrix

import (
	"encoding/json"
	"reflect"
	"strings"
)

// document is the content of a config file. Its schema is that of TensorSharp's benchmark_config files, with keys of our own
// for more engines and axes. Where nothing else is said, a key that is missing has no value.
type document struct {
	Schema    string                `json:"$schema" doc:"of this file, for editors"`
	Paths     pathsDoc              `json:"paths" doc:"places of this machine"`
	Profiles  map[string]rawDoc     `json:"profiles" doc:"parts of profiles of engines, laid over the built-in ones"`
	Engines   registry[engineDoc]   `json:"engines" doc:"engines by id; those of the built-in catalog are there without being mentioned"`
	Backends  registry[backendDoc]  `json:"backends" doc:"compute backends by id; a list of ids is the older form, with maps beside it"`
	Models    registry[modelDoc]    `json:"models" doc:"models by id"`
	Own       []pathDoc             `json:"scenario_files" doc:"files of scenarios of your own, JSONL"`
	Scenarios registry[scenarioDoc] `json:"scenarios" doc:"scenarios by id; the built-in ones are there without being mentioned"`
	Maps      mapsDoc               `json:"maps" doc:"of the older form of backends"`
	Llama     llamaDoc              `json:"llama" doc:"options of llama-server"`
	Ready     readyDoc              `json:"ready_timeout_s" doc:"seconds that an engine has to be ready, by the size class of the model"`
	Defaults  defaultsDoc           `json:"defaults" doc:"what a run measures when no flag says otherwise"`
}

// rawDoc is JSON that is read elsewhere.
type rawDoc json.RawMessage

func (r *rawDoc) bindNode(b *binder, n *node, key string) {
	raw, err := json.Marshal(n.plain())
	if err != nil {
		b.problem(n, key, "%v", err)
	}
	*r = raw
	b.note(n, key, string(raw))
}

// registryKeys are the keys of a document whose entries are replaced as a whole.
var registryKeys = map[string]bool{"profiles": true, "engines": true, "backends": true, "models": true, "scenarios": true}

type pathsDoc struct {
	ModelRoot      pathDoc  `json:"model_root" doc:"directory of models, ${model_root}"`
	QATDir         pathDoc  `json:"gemma4_qat_dir" doc:"directory of Gemma 4 QAT models, ${gemma4_qat_dir}"`
	Results        pathDoc  `json:"results_dir" doc:"directory of results"`
	DLL            pathDoc  `json:"tensorsharp_server_dll" doc:"assembly of TensorSharp.Server.Host"`
	TSPort         int      `json:"tensorsharp_port" min:"1" doc:"port of TensorSharp.Server.Host"`
	LlamaExe       pathDoc  `json:"llama_server_exe" doc:"llama-server, for backends that name none of their own"`
	LlamaPort      int      `json:"llama_port" min:"1" doc:"first port of llama-server"`
	VLLM           string   `json:"vllm_base_url" doc:"a vLLM that runs already"`
	Media          mediaDoc `json:"media" doc:"what scenarios show and play, instead of the built-in assets"`
	DiffusionSteps int      `json:"diffusion_steps" doc:"of all diffusion models; 0 leaves it to each"`
}

type mediaDoc struct {
	Image pathDoc `json:"image"`
	Audio pathDoc `json:"audio"`
	Video pathDoc `json:"video"`
}

type engineDoc struct {
	Display   string            `json:"display" doc:"for people"`
	Transport string            `json:"transport" enum:"server,connect" doc:"server: it is launched; connect: it runs already"`
	Backends  []string          `json:"backends" doc:"ids or kinds of backends that it is kept to; none: no restriction"`
	Profile   string            `json:"profile" doc:"id in the catalog of engines, where the id of the entry is another"`
	URL       urlDoc            `json:"url" doc:"of an engine that runs already"`
	Program   pathDoc           `json:"program" doc:"to launch, instead of the profile's"`
	File      pathDoc           `json:"file" doc:"that the program runs, instead of the profile's"`
	Port      int               `json:"port" min:"1" doc:"to listen on, instead of the profile's"`
	Args      []string          `json:"extra_args" doc:"further arguments of every launch"`
	Env       map[string]string `json:"env" doc:"set for every launch"`
	Slots     int               `json:"slots" min:"1" doc:"requests at once that it is launched for; else as many as run together"`
	Context   int               `json:"context" min:"1" doc:"tokens of one request's window; else what the scenarios need"`
	KeyEnv    string            `json:"key_env" doc:"variable that holds its key"`
	KeyFile   pathDoc           `json:"key_file" doc:"file that holds its key"`
	Headers   map[string]string `json:"headers" doc:"sent with every request"`
	Dialect   string            `json:"dialect" doc:"of its answers, whatever the path"`
}

type modelDoc struct {
	Display    string                `json:"display" doc:"for people"`
	Family     string                `json:"family"`
	Source     sourceDoc             `json:"source" doc:"where its files can be had"`
	HF         sourceDoc             `json:"_hf" doc:"older name of source"`
	GGUF       pathDoc               `json:"gguf" doc:"weights"`
	MMProj     pathDoc               `json:"mmproj" doc:"projector of images and sound"`
	MTPDraft   pathDoc               `json:"mtp_draft" doc:"draft head that is a file of its own"`
	Drafter    pathDoc               `json:"drafter" doc:"draft model of speculative methods"`
	Modalities []string              `json:"modalities" doc:"of its input beside text: image, audio, video"`
	Size       string                `json:"size_class" default:"medium" enum:"small,medium,large"`
	Diffusion  bool                  `json:"is_diffusion" default:"false" doc:"it writes blocks, not tokens: its answers are not streamed"`
	Steps      int                   `json:"diffusion_steps" default:"32" min:"1"`
	MTP        bool                  `json:"mtp_supported" default:"false" doc:"it has a draft head"`
	MoE        *bool                 `json:"is_moe" doc:"it has experts; missing: not known"`
	MinTP      int                   `json:"min_tp" default:"1" min:"1" doc:"fewest devices that it fits on"`
	MaxTP      int                   `json:"max_tp" default:"0" min:"0" doc:"most devices that TensorSharp can cut it for; 0: no limit"`
	Engines    map[string]modelOnDoc `json:"engines" doc:"its name, or its files, for single engines"`
	ImageEdit  bool                  `json:"is_image_edit" doc:"older entries: no part of this matrix"`
	Components map[string]pathDoc    `json:"components" doc:"older entries: no part of this matrix"`
}

// modelOnDoc is what a model is on one engine: a name, or an object.
type modelOnDoc struct {
	Name     string    `json:"name" doc:"to ask for"`
	GGUF     pathDoc   `json:"gguf" doc:"weights: a file, or a directory for engines that take one"`
	MMProj   pathDoc   `json:"mmproj"`
	MTPDraft pathDoc   `json:"mtp_draft"`
	Drafter  pathDoc   `json:"drafter"`
	Source   sourceDoc `json:"source"`
}

func (m *modelOnDoc) bindNode(b *binder, n *node, key string) {
	if n.kind == stringNode {
		m.Name = n.text
		b.note(n, key, n.text)
		return
	}
	b.bindStruct(n, reflect.ValueOf(m).Elem(), key, nil)
}

type scenarioDoc struct {
	Kind        string `json:"kind" doc:"text, multi_turn, function_call, json_mode, image, audio, video, prefill ..."`
	Description string `json:"description"`
	Modality    string `json:"modality" enum:"text,image,audio,video"`
	MaxTokens   int    `json:"max_tokens" min:"1" doc:"of an answer; else that of the run"`
	Edit        bool   `json:"edit" doc:"older entries: of images, no part of this matrix"`
	Concurrency int    `json:"concurrency" min:"1" doc:"the only number of requests at a time that it is asked at"`
	Context     int    `json:"context" min:"1" doc:"tokens that its longest request needs"`
}

// backendDoc has, beside these keys, one for each engine: how that is launched there.
type backendDoc struct {
	Display    string   `json:"display" doc:"for people"`
	Kind       string   `json:"kind" default:"gpu" enum:"gpu,cpu"`
	Aliases    []string `json:"aliases" doc:"other names of it"`
	DevicesEnv string   `json:"visible_devices_env" doc:"variable that limits the devices an engine sees"`

	mappings map[string]mappingDoc
}

func (d *backendDoc) bindNode(b *binder, n *node, key string) {
	d.mappings = map[string]mappingDoc{}
	b.bindStruct(n, reflect.ValueOf(d).Elem(), key, func(name string, child *node) {
		if !contains(b.engines, name) {
			b.problem(child, key, "there is no key or engine %q%s", name, suggest(name, append(namesOf(reflect.TypeFor[backendDoc]()), b.engines...)))
			return
		}
		var m mappingDoc
		m.bindNode(b, child, below(key, name))
		d.mappings[name] = m
	})
}

// mappingDoc is how an engine runs on a backend. For short: true or false, the engine's own word for the backend, or the
// number of layers on the device.
type mappingDoc struct {
	Backend     string            `json:"backend" doc:"the engine's own word"`
	NGL         *int              `json:"ngl" doc:"layers on the device"`
	ServerExe   pathDoc           `json:"server_exe" doc:"build of the server for this backend"`
	Args        []string          `json:"extra_args"`
	Env         map[string]string `json:"env" doc:"set for the server; {tp} is the number of devices"`
	TP          *bool             `json:"tp" doc:"it can spread a model over several devices; else inferred"`
	TPArg       string            `json:"tp_arg" doc:"argument that takes the number of devices"`
	TPArgs      []string          `json:"tp_extra_args" doc:"arguments for more than one device; {tp} is their number"`
	Offload     *bool             `json:"cpu_moe" doc:"it can keep experts in host memory; else inferred"`
	OffloadArg  string            `json:"cpu_moe_arg" doc:"argument that takes the number of layers"`
	OffloadAll  string            `json:"cpu_moe_all_arg" doc:"argument for all layers"`
	ThreadsArg  string            `json:"cpu_moe_threads_arg" doc:"argument that takes the number of threads"`
	Methods     []string          `json:"speculative" doc:"methods of speculative decoding that it has here; else those of its profile"`
	Comparable  *bool             `json:"comparable" doc:"the numbers of a server that runs already belong to this backend"`
	shorthand   bool
	notCompared bool // the short form false
}

func (m *mappingDoc) bindNode(b *binder, n *node, key string) {
	switch n.kind {
	case boolNode:
		m.shorthand, m.notCompared = true, n.text == "false"
		b.note(n, key, n.text)
	case stringNode:
		m.shorthand, m.Backend = true, n.text
		b.note(n, key, n.text)
	case numberNode:
		m.shorthand, m.NGL = true, new(int)
		b.bind(n, reflect.ValueOf(m.NGL).Elem(), key)
	default:
		b.bindStruct(n, reflect.ValueOf(m).Elem(), key, nil)
	}
}

type mapsDoc struct {
	TensorSharp map[string]string `json:"tensorsharp_backend"`
	NGL         map[string]int    `json:"llama_ngl"`
}

type llamaDoc struct {
	Context int      `json:"context_size" min:"1" doc:"tokens of all slots; raised to fit what is asked"`
	Args    []string `json:"extra_args" doc:"of every launch"`
}

type readyDoc struct {
	Small  int `json:"small" min:"1"`
	Medium int `json:"medium" min:"1"`
	Large  int `json:"large" min:"1"`
}

type defaultsDoc struct {
	Engines     []string   `json:"engines" doc:"ids; else all that the file declares"`
	Models      []string   `json:"models" doc:"ids, engine:model, or installed; else all that the file declares"`
	Scenarios   []string   `json:"scenarios" doc:"ids; else all that the file declares"`
	Backends    []string   `json:"backends" doc:"ids or aliases; else all that the file declares"`
	Thinking    switchList `json:"thinking" doc:"off, on or both: whether models reason before they answer"`
	MTP         switchList `json:"mtp_modes" doc:"off, on or both: the draft head of an engine"`
	TP          countList  `json:"tp_degrees" doc:"numbers of devices that a model is spread over"`
	TPDevices   wordList   `json:"tp_devices" doc:"ids of the devices that may be used; none: nothing is pinned"`
	Offload     layerList  `json:"cpu_moe_layers" doc:"layers whose experts stay in host memory: off, a number, all"`
	Threads     sizeList   `json:"cpu_moe_threads" doc:"host threads for them; 0 is the engine's own number"`
	Methods     []string   `json:"speculative" doc:"methods of speculative decoding to compare, none among them"`
	Depths      sizeList   `json:"draft_depths" doc:"tokens of one draft; 0 is the engine's own number"`
	Devices     []string   `json:"devices" doc:"where engines that can choose are to run: auto, cuda, cpu"`
	Context     int        `json:"context_size" min:"1" doc:"tokens of one request's window; else what the scenarios need"`
	Concurrency countList  `json:"concurrency" doc:"numbers of requests at a time"`
	MaxTokens   int        `json:"max_tokens" min:"1" doc:"of an answer, for scenarios that do not say"`
	ThinkingMax int        `json:"thinking_max_tokens" min:"1" doc:"the least limit of an answer that is thought about first"`
	Warmup      int        `json:"warmup" min:"0" max:"100000" doc:"requests before the first timed one of each launch"`
	Repeats     int        `json:"repeats" min:"1" max:"100000" doc:"times that each cell is measured"`
	ServerMax   int        `json:"server_max_tokens" min:"1" doc:"the most that a server lets an answer have, where it has such a bound"`
	Order       string     `json:"order" enum:"engine,alternate,together" doc:"engine: one launch each; alternate: engines take turns, launched for each repeat; together: they take turns while all are up"`
	Download    string     `json:"download" enum:"auto,never,force" doc:"of model files that are missing"`
}

// pathDoc is a path, or an object with the variable that overrides it and the place it can be had from.
type pathDoc struct {
	Path string `json:"path" doc:"absolute, or below the directory of the config; ${name} is replaced"`
	Env  string `json:"env" doc:"variable that overrides it"`
	URL  string `json:"url" doc:"where the file can be had: absolute, or its name at the model's source"`
}

func (p *pathDoc) bindNode(b *binder, n *node, key string) {
	mark := len(b.settings)
	if n.kind == stringNode {
		p.Path = n.text
	} else {
		b.bindStruct(n, reflect.ValueOf(p).Elem(), key, nil)
	}
	b.settings = b.settings[:mark]
	from := n
	if v := b.variable(p.Env); v != "" {
		from, p.Path = &node{from: origin{SourceEnv, p.Env}}, v
	} else {
		p.Path = b.place(n, key, p.Path)
	}
	b.note(from, key, p.Path)
	if name, isVar := placeholders[key]; isVar {
		b.vars[name] = p.Path
	}
}

// urlDoc is an address, or an object with the variable that overrides it.
type urlDoc struct {
	URL string `json:"url" doc:"http://, https:// or unix:/socket"`
	Env string `json:"env" doc:"variable that overrides it"`
}

func (u *urlDoc) bindNode(b *binder, n *node, key string) {
	mark := len(b.settings)
	if n.kind == stringNode {
		u.URL = n.text
	} else {
		b.bindStruct(n, reflect.ValueOf(u).Elem(), key, nil)
	}
	b.settings = b.settings[:mark]
	from := n
	if v := b.variable(u.Env); v != "" {
		from, u.URL = &node{from: origin{SourceEnv, u.Env}}, v
	}
	b.note(from, key, u.URL)
}

// sourceDoc says where the files of a model can be had: a repository of the hub, or a base URL.
type sourceDoc struct {
	HFRepo   string `json:"hf_repo" doc:"owner/name on the hub"`
	Repo     string `json:"repo" doc:"the same"`
	HF       string `json:"hf" doc:"the same"`
	Revision string `json:"revision" doc:"of the repository; else main"`
	BaseURL  string `json:"base_url" doc:"that names of files are joined to"`
	URL      string `json:"url" doc:"the same"`
}

func (s *sourceDoc) bindNode(b *binder, n *node, key string) {
	switch {
	case n.kind == stringNode && strings.Contains(n.text, "://"):
		s.BaseURL = n.text
		b.note(n, key, n.text)
	case n.kind == stringNode:
		s.HFRepo = n.text
		b.note(n, key, n.text)
	default:
		b.bindStruct(n, reflect.ValueOf(s).Elem(), key, nil)
	}
}
