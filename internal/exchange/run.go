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
	Harness   string            `json:"harness"`           // version of benchproxy
	Command   []string          `json:"command,omitempty"` // client command of `record -- CMD`, credentials masked
	Counts    RunCounts         `json:"counts"`            // as of the closing write; for an open run as counted now
	Pinned    bool              `json:"pinned"`            // kept by retention
}

// RunCounts say what became of the exchanges of a run.
type RunCounts struct {
	Stored    int64             `json:"stored"`
	Truncated int64             `json:"truncated"`          // of the stored ones
	Dropped   int64             `json:"dropped"`            // seen but not stored
	DropWhy   map[string]int64  `json:"drop_why,omitempty"` // reason -> count
	Outcomes  map[Outcome]int64 `json:"outcomes,omitempty"`
}

// ToolCall is one tool call of an answer, its fragments joined.
type ToolCall struct {
	Index     int    `json:"index"`
	ID        string `json:"id,omitempty"`
	Type      string `json:"type,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as sent; an object argument as compact JSON
}

// SummaryVersion is the version of the row below; readers accept older rows and refuse newer ones.
const SummaryVersion = 1

// Summary is the row that listings, filters and pages read: everything about an exchange but its texts, bytes and
// timeline. It is derived; `store check` can rebuild it.
type Summary struct {
	Version       int            `json:"schema"`
	ID            ID             `json:"id"`
	Run           ID             `json:"run"`
	Seq           uint64         `json:"seq"`
	Key           string         `json:"key"`    // h1:<16 hex>
	Digest        string         `json:"digest"` // sha256 of the request by the interchange recipe, "" when it is not JSON
	Started       time.Time      `json:"started"`
	Upstream      string         `json:"upstream,omitempty"`
	Method        string         `json:"method"`
	Path          string         `json:"path"`
	Model         string         `json:"model,omitempty"`
	Engine        string         `json:"engine,omitempty"`
	Dialect       string         `json:"dialect,omitempty"`
	Status        int            `json:"status"` // HTTP status, 0 when no head came
	End           End            `json:"end"`
	Outcome       Outcome        `json:"outcome"`
	Cause         *Cause         `json:"cause"`
	Stream        bool           `json:"stream"` // the answer came as a stream
	FinishReason  *string        `json:"finish_reason"`
	ToolCalls     int            `json:"n_tool_calls"`
	UsageEstimate bool           `json:"usage_estimated"`
	ParseErrors   int            `json:"parse_errors"`
	Flags         []string       `json:"flags"`
	State         State          `json:"state"`
	RequestBytes  int64          `json:"request_bytes"`
	ResponseBytes int64          `json:"response_bytes"`
	RequestSum    string         `json:"request_body_digest"`
	ResponseSum   string         `json:"response_body_digest"`
	Interventions []Intervention `json:"interventions"`
	Metrics       Figures        `json:"metrics"`
}
