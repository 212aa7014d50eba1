package matrix

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/engines"
)

// Config is what a file, the environment and the flags come to. Registries keep the order of the file, with the built-in
// entries that it does not mention behind.
type Config struct {
	File      string // as it was named; "" without one
	Paths     Paths
	Engines   []Engine
	Backends  []Backend
	Models    []Model
	Scenarios []Scenario
	Own       []string // files of scenarios of the user's
	Llama     Llama
	ReadyS    map[string]int // size class of a model -> seconds
	Defaults  Defaults       // of the run, flags included
	Baseline  Baseline       // what the file itself says, see there
	Profiles  map[string]json.RawMessage
	Settings  []Setting        // every value that was read, with its source
	Warnings  []string         // what is accepted and may not be meant
	Catalog   *engines.Catalog // with the profiles of the file

	library Library
}

// Baseline is what the file itself says of conditions that have no place in the names of other tools: a cell under another
// one says so in its name.
type Baseline struct{ Thinking bool }

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
	ModelRoot, QATDir string
	Results           string // directory of results
	TensorSharpDLL    string // "" = that of the profile
	LlamaServer       string // "" = that of the profile
	VLLMURL           string
	Image             string // "" = the built-in asset; so for the next two
	Audio             string
	Video             string
	TensorSharpPort   int
	LlamaPort         int
	DiffusionSteps    int // of all diffusion models; 0 = each model's own
}

// Engine is an entry of the registry of engines.
type Engine struct {
	ID        string
	Display   string
	Profile   engines.Profile
	Transport string   // TransportServer or TransportConnect
	Backends  []string // ids or kinds that it is kept to; none = no restriction
	URL       string   // of one that runs already
	Program   string   // "" = the profile's own
	File      string   // "" = the profile's own
	Port      int      // 0 = the profile's own
	Args      []string
	Env       map[string]string
	Access    Access
	Slots     int  // 0 = as many as requests run together
	Context   int  // tokens of one request's window; 0 = what the scenarios need
	Declared  bool // the file mentions it
}

// is reports whether the rules of an engine hold for it.
func (e *Engine) is(id string) bool { return e.ID == id || e.Profile.ID == id }

// Backend is an entry of the registry of backends: one column of a report.
type Backend struct {
	ID         string
	Display    string
	Kind       string // engines.KindGPU or engines.KindCPU
	Aliases    []string
	DevicesEnv string // "" = that of the engine's profile
	Declared   bool   // the file mentions it

	mappings map[string]mappingDoc // engine id -> how it runs there
}

// Model is an entry of the registry of models.
type Model struct {
	ID         string
	Display    string
	Family     string
	Files      ModelFiles            // for engines that say nothing else
	Engines    map[string]ModelFiles // engine id -> for that engine
	Sources    []FileSource
	Modalities []string // of its input, text among them
	Size       string   // small, medium or large
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
	Role     string `json:"role"`             // gguf, mmproj, mtp_draft or drafter
	Engine   string `json:"engine,omitempty"` // that alone takes it; "" = all that take files
	Path     string `json:"path"`
	Repo     string `json:"repo,omitempty"`     // of the hub
	Revision string `json:"revision,omitempty"` // of the repository; "" = main
	Base     string `json:"base_url,omitempty"`
	URL      string `json:"url,omitempty"` // absolute, or the name of the file there; "" = that of Path
}

// Known reports whether the file can be had from somewhere.
func (f FileSource) Known() bool { return f.Repo != "" || f.Base != "" || absoluteURL(f.URL) }

// Scenario is what a plan has to know of a scenario. What it asks is known to whoever builds its requests.
type Scenario struct {
	ID          string
	Build       string // name under which its requests are built; "" = they cannot be
	Kind        string // of older files
	Description string
	Modality    string // what the model must take: text, image, audio or video
	MaxTokens   int    // of an answer; 0 = that of the run
	Fixed       bool   // MaxTokens is part of what is measured
	Turns       int    // requests of one conversation
	Concurrency int    // the only one it is asked at; 0 = those of the run
	Repeats     int    // the fewest times it is measured
	Prompt      int    // tokens of the first prompt, about; 0 = a few hundred at most
	Context     int    // tokens that its longest request needs, as the file says; 0 = what Prompt and MaxTokens come to
	Version     int    // of what is asked
	Digest      string // of what is asked, where the user states it and it has no version of its own
	Blocking    bool   // it is not streamed
	Edit        bool   // of images, an older kind of entry, no part of this matrix
}

// Library knows what scenarios can be asked.
type Library interface {
	// Names lists them; some are forms such as prefill_<N>[k].
	Names() []string
	// Expand puts what a name stands for in its place.
	Expand(names []string) []string
	// Describe fills in what is known of a scenario. An error that wraps exchange.ErrUsage says that there is none of that
	// name.
	Describe(name string) (Scenario, error)
}

// Llama are options of llama-server.
type Llama struct {
	Context int // tokens of all slots
	Args    []string
}

// Defaults are the axes and the conditions of a run.
type Defaults struct {
	Engines     []string // ids
	Models      []Address
	Scenarios   []string // ids
	Backends    []string // ids
	Thinking    []bool
	MTP         []bool
	TP          []int
	TPDevices   []string
	Offload     []int // layers: 0 = none, AllLayers
	Threads     []int
	Methods     []string // of speculative decoding; none = the axis is not used
	Depths      []int
	Devices     []string // none = the axis is not used
	Concurrency []int
	Context     int // tokens of one request's window; 0 = what the scenarios need
	MaxTokens   int
	ThinkingMax int // the least limit of an answer that is thought about
	Warmup      int
	Repeats     int
	ServerMax   int
	Order       string // one of the Order constants
	Download    string // one of the Download constants
}

// Address is a model, on the engines of the run or on one.
type Address struct {
	Engine string // "" = every engine of the run
	Model  string // id in Config.Models
}

// In which order groups are measured.
const (
	OrderEngine    = "engine"    // one launch each
	OrderAlternate = "alternate" // engines take turns: each is launched for each repeat
	OrderTogether  = "together"  // engines take turns while all are up; for those that fit beside each other
)

// What is done about model files that are missing.
const (
	DownloadAuto  = "auto"
	DownloadNever = "never"
	DownloadForce = "force"
)

// engine, backend, model and scenario find entries by their ids, which a resolved config knows.

func (c *Config) engine(id string) *Engine {
	return find(c.Engines, func(e *Engine) bool { return e.ID == id })
}
func (c *Config) backend(id string) *Backend {
	return find(c.Backends, func(b *Backend) bool { return b.ID == id })
}
func (c *Config) model(id string) *Model {
	return find(c.Models, func(m *Model) bool { return m.ID == id })
}
func (c *Config) scenario(id string) *Scenario {
	return find(c.Scenarios, func(s *Scenario) bool { return s.ID == id })
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
