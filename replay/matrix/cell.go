package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// AllLayers is the number of offloaded layers that stands for every layer of a model.
const AllLayers = -1

// Axes are what one launch of a server differs in from another.
type Axes struct {
	Engine        string `json:"engine"`          // id of the config
	Backend       string `json:"backend"`         // id of the config
	Model         string `json:"model"`           // id of the config
	MTP           bool   `json:"mtp"`             // the draft head that the engine has a switch for
	TP            int    `json:"tp"`              // devices that the model is spread over, from 1
	CPUMoELayers  int    `json:"cpu_moe_layers"`  // layers whose experts stay in host memory: 0 = none, AllLayers = all
	CPUMoEThreads int    `json:"cpu_moe_threads"` // host threads for them; 0 = the engine's own number
	Method        string `json:"method"`          // of speculative decoding, see Methods; "" where that axis is not used
	Depth         int    `json:"depth"`           // tokens drafted at a time; 0 = the engine's own number
	Device        string `json:"device"`          // asked of an engine that can choose: auto, cuda, cpu ...; "" where that axis is not used
}

// Cell is one entry of the matrix: a scenario, asked of one server in one way.
type Cell struct {
	Axes
	Scenario    string `json:"scenario"`
	Concurrency int    `json:"concurrency"` // requests, or conversations, that run together
	Thinking    bool   `json:"thinking"`
	MaxTokens   int    `json:"max_tokens"` // of each answer
	Stream      bool   `json:"stream"`     // false for models that do not write token by token
	Repeats     int    `json:"repeats"`    // times it is measured
	Warmup      int    `json:"warmup"`     // requests before the first timed one of the server
	Build       string `json:"build"`      // name under which the requests of the scenario are built
	Version     int    `json:"version"`    // of what it asks

	Name       string `json:"name"`             // unique in the plan; the result file without its extension
	Definition string `json:"definition"`       // digest of everything that changes its numbers, see DefinitionScheme
	Do         Do     `json:"do"`               // run, skip, keep or leave
	Skip       *Skip  `json:"skip,omitempty"`   // why, for skip
	Reason     string `json:"reason,omitempty"` // why, for keep and leave, and for run where an ok result does not stand
}

// Do is what is to become of a cell.
type Do string

// What can become of a cell.
const (
	DoRun   Do = "run"   // it is measured
	DoSkip  Do = "skip"  // it cannot run; a record says why
	DoKeep  Do = "keep"  // there is a result of the same definition that is ok
	DoLeave Do = "leave" // it was not asked for in this sitting; its result, if there is one, stays
)

// File is the name of the cell's result file.
func (c *Cell) File() string { return c.Name + ".json" }

// base is the part of all names that is the same for every scenario.
func (a Axes) base() string { return word(a.Engine) + "__" + word(a.Backend) + "__" + word(a.Model) }

// suffix tells the launch from the baseline: no drafts, one device, nothing offloaded.
func (a Axes) suffix() string {
	var b strings.Builder
	if a.MTP {
		b.WriteString("__mtp")
	}
	if a.TP > 1 {
		b.WriteString("__tp" + strconv.Itoa(a.TP))
	}
	if a.CPUMoELayers != 0 {
		b.WriteString("__ncmoe" + layersWord(a.CPUMoELayers))
		if a.CPUMoEThreads > 0 {
			b.WriteString("t" + strconv.Itoa(a.CPUMoEThreads))
		}
	}
	if a.Method != "" {
		b.WriteString("__" + word(a.Method))
		if a.Depth > 0 {
			b.WriteString("-d" + strconv.Itoa(a.Depth))
		}
	}
	if a.Device != "" {
		b.WriteString("__on-" + word(a.Device))
	}
	return b.String()
}

func layersWord(layers int) string {
	if layers == AllLayers {
		return "all"
	}
	return strconv.Itoa(layers)
}

// GroupName names a launch: its log file without its extension.
func (a Axes) GroupName() string { return a.base() + a.suffix() }

// CellName names a cell. thinking is "" where the cell thinks as the config's own default says, else the word that tells
// it apart.
func (a Axes) CellName(scenario string, concurrency int, thinking string) string {
	name := a.base() + "__" + word(scenario) + a.suffix()
	if thinking != "" {
		name += "__" + thinking
	}
	if concurrency > 1 {
		name += "__c" + strconv.Itoa(concurrency)
	}
	return name
}

// word makes an id a part of a file name that every system takes. One that has to be changed keeps a digest of what it
// was, so that two ids never meet. So does one that is too long: a name of three of them and its suffixes has to fit.
func word(id string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '-'
	}, id)
	if safe == id && id != "" && len(id) <= longestWord && !strings.Contains(id, "__") && !strings.HasPrefix(id, ".") && !strings.HasPrefix(id, "_") && !strings.HasSuffix(id, "_") {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.Trim(firstRunes(strings.ReplaceAll(safe, "__", "-"), longestWord), "._") + "-" + hex.EncodeToString(sum[:3])
}

// longestWord is how much of an id a file name shows. File systems take names of 255 bytes, with a suffix for the time in
// which a file is written.
const longestWord = 64
