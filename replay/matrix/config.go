package matrix

import "encoding/json"

// Config is what a file, the environment and the flags come to. Registries keep the order of the file, with the built-in
// entries that it does not mention behind.
type Config struct {
	File     string // as it was named; "" without one
	Paths    Paths
	Engines  []Engine
	Backends []Backend
	Models   []Model
	Scenario []Scenario
	Llama    Llama
	ReadyS   map[string]int // size class -> seconds
	Defaults Defaults       // of the run, flags included
	Baseline bool           // thinking as the file has it: cells that differ from it say so in their names
	Profiles map[string]json.RawMessage
	Settings []Setting // every value with its source, in the order of the file's schema
	Warnings []string  // what is accepted and may not be meant
}

// Source is where a value came from, the strongest last.
type Source string

// The sources.
const (
	SourceBuiltin Source = "built-in"
	SourceFile    Source = "file"
	SourceEnv     Source = "environment"
	SourceFlag    Source = "flag"
)

// Setting is one value of the resolved config.
type Setting struct {
	Key    string `json:"key"` // dotted, as in the file
	Value  string `json:"value"`
	Source Source `json:"source"`
	At     string `json:"at,omitempty"` // the line of the file, the variable, or the flag
}

// Paths are the places of this machine.
type Paths struct {
	Here, RepoRoot   string // directory of the config file, and of the repository it is in
	ModelRoot        string
	QATDir           string // gemma4_qat_dir
	Results          string
	TensorSharpDLL   string
	TensorSharpPort  int
	LlamaServer      string
	LlamaPort        int
	VLLMURL          string
	Image            string // "" = the built-in asset
	Audio            string
	Video            string
	DiffusionSteps   int // 0 = each model's own
	LlamaServerGiven bool
}

// Engine is an entry of the registry of engines.
type Engine struct {
	ID        string
	Display   string
	Profile   string // id in the catalog
	Transport string // server or connect
	Backends  []string
	URL       string
	Program   string
	Port      int
	Args      []string
	Env       map[string]string
	Access    Access
	Slots     int // 0 = as many as requests run together
	Context   int // tokens of all slots; 0 = what the scenarios need
	hasSlots  bool
}

// Backend is an entry of the registry of backends: one column of a report.
type Backend struct {
	ID         string
	Display    string
	Kind       string // gpu or cpu
	Aliases    []string
	DevicesEnv string
	Mappings   map[string]Mapping // engine id -> how it runs there
}

// Mapping is how an engine runs on a backend. Where the file says nothing, what it can do is inferred.
type Mapping struct {
	Off            bool   // it says that the engine does not run, or is not compared, there
	Backend        string // the engine's own word
	Program        string
	NGL            *int
	Args           []string
	Env            map[string]string
	TP             bool
	TPArgs         []string // {tp} is the number of devices
	Offload        bool
	OffloadArgs    []string // {layers}
	OffloadAllArgs []string
	ThreadArgs     []string // {threads}
	Methods        []string // of speculative decoding
	DraftArgs      map[string][]string
	Devices        []string // that the engine can be told to use; none = it cannot
}

// Model is an entry of the registry of models.
type Model struct {
	ID         string
	Display    string
	Family     string
	Files      ModelFiles            // for engines that say nothing else
	Engines    map[string]ModelFiles // engine id -> for that engine
	Only       []string              // engines it is addressed at; none = all that are selected
	Sources    []FileSource
	Modalities []string
	Size       string // small, medium or large
	Diffusion  bool
	Steps      int // of diffusion
	MTP        bool
	MoE        *bool // nil = unknown
	MinTP      int
	MaxTP      int  // 0 = no limit
	ImageEdit  bool // an older kind of entry, no part of this matrix
}

// FileSource says where a file of a model can be had.
type FileSource struct {
	Role     string `json:"role"` // gguf, mmproj, mtp_draft, drafter
	Path     string `json:"path"`
	Repo     string `json:"repo,omitempty"`     // of the hub
	Revision string `json:"revision,omitempty"` // of the repository
	Base     string `json:"base_url,omitempty"`
	URL      string `json:"url,omitempty"` // absolute, or the name of the file there; "" = that of Path
}

// Scenario is an entry of the registry of scenarios. What it asks is known to whoever builds its requests.
type Scenario struct {
	ID          string
	Kind        string
	Description string
	Modality    string // text, image, audio or video
	MaxTokens   int    // 0 = that of the run
	Concurrency int    // the only one it is asked at; 0 = those of the run
	Need        int    // tokens of the longest request; 0 = not known
	Edit        bool   // of images, an older kind of entry
}

// Llama are options of llama-server.
type Llama struct {
	Context int
	Args    []string
}

// Defaults are the axes and the conditions of a run.
type Defaults struct {
	Engines     []string
	Models      []string
	Scenarios   []string
	Backends    []string
	Thinking    []bool
	MTP         []bool
	TP          []int
	TPDevices   []string
	Offload     []int // layers: 0 = none, AllLayers
	Threads     []int
	Methods     []string // none given = the axis is not used
	Depths      []int
	Devices     []string // none given = the axis is not used
	Concurrency []int
	MaxTokens   int
	Warmup      int
	Repeats     int
	ServerMax   int
	Order       string // see Orders
	Download    string // auto, never or force
}
