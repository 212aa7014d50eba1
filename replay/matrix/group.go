package matrix

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

// How a model is spread over several devices.
const (
	SplitTensor = "tensor" // every layer over all of them
	SplitLayer  = "layer"  // whole layers on each: more memory, not more speed; never shown as tensor parallelism
)

// Launch is what is known of a group's server before it runs: values for whoever puts the command line together. Paths are
// those of this machine.
type Launch struct {
	Profile   string     `json:"profile"`   // id in the catalog of engines
	Transport string     `json:"transport"` // server or connect
	URL       string     `json:"url,omitempty"`
	Access    Access     `json:"access,omitzero"`
	Program   string     `json:"program,omitempty"` // binary or assembly; "" = the profile's own
	Port      int        `json:"port,omitempty"`    // asked for; 0 = the profile's own
	Model     ModelFiles `json:"files"`
	Backend   string     `json:"engine_backend,omitempty"` // the engine's own word for the backend
	NGL       *int       `json:"ngl,omitempty"`            // layers on the device, for engines that count them
	Slots     int        `json:"slots"`                    // requests that are to run at once
	Context   int        `json:"context,omitempty"`        // tokens of all slots together; 0 = the engine's own
	SlotNeed  int        `json:"slot_need,omitempty"`      // tokens that the longest request of the group needs; 0 = not known
	MaxTokens int        `json:"server_max_tokens,omitempty"`

	Args        []string          `json:"args,omitempty"`         // of all launches: those of the engine, then those of the backend
	TPArgs      []string          `json:"tp_args,omitempty"`      // behind them, for more than one device
	OffloadArgs []string          `json:"offload_args,omitempty"` // layers and threads
	DraftArgs   []string          `json:"draft_args,omitempty"`   // of the config, for method and depth; none = the profile's own
	Env         map[string]string `json:"env,omitempty"`          // over the environment of the launcher, visible devices included
	Devices     []string          `json:"devices,omitempty"`      // the ones that are made visible; none = all
	DevicesEnv  string            `json:"devices_env,omitempty"`  // the variable that does it
	Split       string            `json:"split,omitempty"`        // tensor or layer, for more than one device
	Kind        string            `json:"kind"`                   // of the backend: gpu or cpu
	ReadyS      int               `json:"ready_timeout_s"`        // by the size of the model
	LogFile     string            `json:"log,omitempty"`          // below the directory of results
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
	Weights   string `json:"weights,omitempty"`
	Projector string `json:"mmproj,omitempty"`    // of images and sound
	MTPDraft  string `json:"mtp_draft,omitempty"` // draft head of its own file
	Drafter   string `json:"drafter,omitempty"`   // draft model of a speculative method
}
