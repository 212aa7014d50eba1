package exchange

import "time"

// RunState says whether a run may be used as evidence.
type RunState string

const (
	RunOpen       RunState = "open"       // being written, or its writer died
	RunComplete   RunState = "complete"   // closed by its writer with nothing lost
	RunIncomplete RunState = "incomplete" // closed, but records were dropped or items did not end
)

// Run is one sitting of recording, replay or benchmark.
type Run struct {
	ID        ID                `json:"id"`
	Name      string            `json:"name,omitempty"`
	Mode      string            `json:"mode"` // record, replay, bench, gate
	Labels    map[string]string `json:"labels,omitempty"`
	State     RunState          `json:"state"`
	Started   time.Time         `json:"started"`
	Ended     *time.Time        `json:"ended"`               // null while open
	Upstreams map[string]string `json:"upstreams,omitempty"` // name -> URL, credentials masked
	Identity  Identity          `json:"identity"`
	// Deployments are what answered behind the upstreams, in the order in which they were read: a second one of the
	// same upstream says that the engine was restarted or changed from then on.
	Deployments []Deployment `json:"deployments,omitempty"`
	Models      []ModelNamed `json:"models,omitempty"`  // what answers named first, as far as they were watched
	Harness     string       `json:"harness"`           // version of benchproxy
	MadeBy      []string     `json:"made_by,omitempty"` // arguments of the benchproxy that made it, credentials masked
	Command     []string     `json:"command,omitempty"` // client command of `record -- CMD`, credentials masked
	Counts      RunCounts    `json:"counts"`            // as of the closing write; for an open run as counted now
	Pinned      bool         `json:"pinned"`            // kept by retention
	// Instrument is the newest selftest of this machine when the run began; null when there was none.
	Instrument *Instrument `json:"instrument"`
	Machine    *Machine    `json:"machine,omitempty"` // of a run that launched what it measured, or was asked to look
	Replay     *Replay     `json:"replay,omitempty"`  // of a run that sent a plan
	Drafting   *Drafting   `json:"drafting,omitempty"`
	Serve      *Serve      `json:"serve,omitempty"` // of a run of what a stand-in had no answer to
}

// Serve is how the stand-in answered whose misses a run holds.
type Serve struct {
	Source string   `json:"source"` // run or file it answered from
	Speed  float64  `json:"speed"`  // of the recorded pace; 0 is at once
	Strict bool     `json:"strict"` // each recorded answer was given once
	Relax  []string `json:"relax"`  // JSON paths at which requests could differ
}

// Drafting is what the user states of speculative decoding in a run, since no engine tells it.
type Drafting struct {
	Method      string   `json:"method,omitempty"`
	BaselineTPS *float64 `json:"baseline_tps"` // decode rate of the same requests without drafts, tok/s; null when not stated
}

// RunCounts say what became of the exchanges of a run.
type RunCounts struct {
	Stored    int64             `json:"stored"`
	Truncated int64             `json:"truncated"`          // of the stored ones
	Dropped   int64             `json:"dropped"`            // seen but not stored
	DropWhy   map[string]int64  `json:"drop_why,omitempty"` // reason -> count
	Outcomes  map[Outcome]int64 `json:"outcomes,omitempty"`
}
