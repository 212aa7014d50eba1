package matrix

import "github.com/benchproxy/benchproxy/engines"

// Group is one launch of a server and the cells that are measured on it.
type Group struct {
	Axes
	Name   string `json:"name"` // of its log file, see Axes.GroupName
	Launch Launch `json:"launch"`
	Cells  []Cell `json:"cells"` // in the order of the scenarios, and of the concurrencies within each
}

// Runs is the number of cells that are to be measured; a group without any is not launched.
func (g *Group) Runs() int {
	n := 0
	for i := range g.Cells {
		if g.Cells[i].Do == DoRun {
			n++
		}
	}
	return n
}

// How a server comes to be there.
const (
	TransportServer  = "server"  // it is launched
	TransportConnect = "connect" // it runs already, at a URL
)

// Launch is what a group's server is started with, in the terms of package launch, or where it is reached. Paths are those
// of this machine.
type Launch struct {
	Profile   string `json:"profile"`   // id in the catalog of engines
	Transport string `json:"transport"` // TransportServer or TransportConnect
	URL       string `json:"url,omitempty"`
	Access    Access `json:"access,omitzero"`

	Program  string              `json:"program,omitempty"` // "" = the profile's own
	File     string              `json:"file,omitempty"`    // that the program runs; "" = the profile's own
	Port     int                 `json:"port,omitempty"`    // 0 = the profile's own
	Model    ModelFiles          `json:"model"`
	Steps    int                 `json:"diffusion_steps,omitempty"` // of diffusion models
	Class    string              `json:"size_class"`                // of the model
	ReadyS   int                 `json:"ready_timeout_s"`           // seconds from the start to the first successful ready check
	Registry engines.Backend     `json:"backend"`                   // with the arguments and variables of the config
	Spelling []engines.LaunchArg `json:"spelling,omitempty"`        // in the place of the profile's

	Devices   []string `json:"devices,omitempty"`    // to make visible; none = all
	SplitMode string   `json:"split_mode,omitempty"` // for more than one device: see Split
	CPUMoE    string   `json:"cpu_moe,omitempty"`    // layers: "", a number, all
	Draft     string   `json:"draft,omitempty"`      // method; "" and none: no drafts
	Drafter   string   `json:"drafter,omitempty"`    // file that drafts
	Window    int      `json:"window,omitempty"`     // tokens of one request's window; 0 = the engine's own
	Slots     int      `json:"slots,omitempty"`      // requests at once; 0 = the engine's own
	MaxTokens int      `json:"max_tokens,omitempty"` // the most that the server lets an answer have
	LogFile   string   `json:"log,omitempty"`        // below the directory of results
}

// Access is how an engine that is not launched is spoken to. Secrets are named, not held.
type Access struct {
	KeyEnv  string            `json:"key_env,omitempty"`
	KeyFile string            `json:"key_file,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Dialect string            `json:"dialect,omitempty"`
}

// ModelFiles are the files of a model for one engine, and its name there. All are "" where there is none.
type ModelFiles struct {
	Name      string `json:"name,omitempty"` // to ask for; "" = the one that the server lists
	Weights   string `json:"gguf,omitempty"`
	Projector string `json:"mmproj,omitempty"`    // of images and sound
	MTPDraft  string `json:"mtp_draft,omitempty"` // draft head that is a file of its own
	Drafter   string `json:"drafter,omitempty"`   // draft model of speculative methods
}
