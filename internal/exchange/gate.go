package exchange

import (
	"encoding/json"
	"time"
)

// VerdictStatus is the word of a verdict.
type VerdictStatus string

// The words of DESIGN's list, and the two of the tool suite. Only ok says that the subject passed.
const (
	VerdictOK           VerdictStatus = "ok"
	VerdictFail         VerdictStatus = "fail"
	VerdictSkipped      VerdictStatus = "skipped"      // not asked for, or it does not apply; the reason says which
	VerdictPartial      VerdictStatus = "partial"      // a conversation that stopped early
	VerdictIncomparable VerdictStatus = "incomparable" // the evidence is there and cannot be held against the reference
	VerdictUnsupported  VerdictStatus = "unsupported"  // the engine refused the capability in so many words
	VerdictNotRun       VerdictStatus = "not_run"      // never sent, or its evidence is missing
)

// Verdict is what one gate says of one case. It is a pure function of the case and of the gate's version.
type Verdict struct {
	Gate    string        `json:"gate"`
	Version int           `json:"version"` // of the gate's rule
	Case    string        `json:"case"`
	Status  VerdictStatus `json:"status"`
	// Lenient is the status under the relaxed reading that the gate documents; "" for a gate without one. It never
	// changes Status, an exit code, a count of passes or a request key.
	Lenient  VerdictStatus   `json:"lenient_status,omitempty"`
	Reason   string          `json:"reason,omitempty"` // one line; always there unless ok
	Evidence []EvidenceSum   `json:"evidence"`         // what was judged, in order
	Detail   json.RawMessage `json:"detail,omitempty"` // the gate's own figures: gap, position, token ...
}

// EvidenceSum names one thing that was judged, by content.
type EvidenceSum struct {
	Kind   string `json:"kind"` // exchange, golden, reply
	ID     string `json:"id"`
	Digest string `json:"digest"` // sha256:<hex>
}

// Check asks one gate to judge a case.
type Check struct {
	Gate   string          `json:"gate"`
	Params json.RawMessage `json:"params,omitempty"` // the gate's own parameters; unknown fields are refused
}

// Case is all that one judgment may rest on.
type Case struct {
	ID       string `json:"id"` // within its suite or run: json-c4-r0-i2
	Scenario string `json:"scenario"`
	// ScenarioVersion is that of what the scenario asks; 0 for one that has its suite's.
	ScenarioVersion int    `json:"scenario_version,omitempty"`
	Policy          string `json:"policy,omitempty"` // what was changed from the default: serial tools, thinking ...; such a case never stands in for a default one

	Concurrency int `json:"concurrency"` // requests that ran together, itself included; 0 when unknown
	Repeat      int `json:"repeat"`
	Turns       int `json:"turns"` // planned; 0 when unknown

	Exchanges []*Exchange `json:"-"` // of the subject, a turn each, in order
	Goldens   []*Golden   `json:"-"` // recordings of the reference for turn i stand together; see Golden.Turn
	Replies   []Reply     `json:"-"` // answers to what a gate needed
	Checks    []Check     `json:"checks"`
}

// Party says whose answer is needed.
type Party string

// The parties of a comparison.
const (
	Reference Party = "reference"
	Candidate Party = "candidate"
)

// Needs is an ordered list of requests whose answers a gate wants before it can judge. An empty one means it has judged.
type Needs []Need

// Need is one request to be sent, or to be found in the golden cache. Needs of one list that name the same Group are
// sent in their order to one slot with nothing in between, since each builds on the cache the one before left behind.
type Need struct {
	ID      string          `json:"id"` // unique within the case: what Reply.Need names
	Party   Party           `json:"party"`
	Group   string          `json:"group,omitempty"`
	Wave    string          `json:"wave,omitempty"` // needs of one wave are sent at once; a gate checks by the stamps that they ran together
	Method  string          `json:"method"`
	Path    string          `json:"path"` // request target
	Body    json.RawMessage `json:"body"`
	Variant string          `json:"variant,omitempty"` // launch flags it asks for, space-separated; "" = as launched
	Why     string          `json:"why"`
}

// Reply is the answer to a Need.
type Reply struct {
	Need     string
	Exchange *Exchange // nil when it could not be had
	Reason   string    // why not, when Exchange is nil: the gate does without that view, and says so
}

// TokenProb is one token of a list of most likely tokens.
type TokenProb struct {
	ID      int64   `json:"id"`              // -1 when the engine told no ids
	Text    string  `json:"text,omitempty"`  // as the engine spells it
	Bytes   []byte  `json:"bytes,omitempty"` // its bytes where they are no whole characters, which Text cannot hold
	Logprob float64 `json:"logprob"`         // natural logarithm, of the raw distribution, before sampling
}

// GoldenToken is one generated token of a golden.
type GoldenToken struct {
	ID      int64    `json:"id"`              // -1 when the engine told no ids
	Text    string   `json:"text"`            // its bytes as text
	Bytes   []byte   `json:"bytes,omitempty"` // its bytes where they are no whole characters, which Text cannot hold
	Logprob *float64 `json:"logprob"`         // its own, as TokenProb.Logprob; null when not told
	// Top is the list of most likely tokens at this place, best first; nil where the engine gave none or where its lists
	// no longer line up with the tokens.
	Top []TokenProb `json:"top,omitempty"`
}

// Spelling is the text of the token, byte for byte.
func (t *TokenProb) Spelling() string { return spelling(t.Text, t.Bytes) }

// Spelling is the text of the token, byte for byte.
func (t *GoldenToken) Spelling() string { return spelling(t.Text, t.Bytes) }

func spelling(text string, bytes []byte) string {
	if len(bytes) > 0 {
		return string(bytes)
	}
	return text
}

// CacheState says what an engine's prompt cache did for a request.
type CacheState string

// The states of a prompt cache.
const (
	CacheCold    CacheState = "cold" // nothing was reused
	CacheWarm    CacheState = "warm" // part of the prompt was
	CacheUnknown CacheState = "unknown"
)

// Conditions are what a recording was made under beside its request. Engines answer otherwise when they differ, so a
// comparison across them is named as such.
type Conditions struct {
	Cache        CacheState `json:"cache"`
	CachedTokens *int64     `json:"cached_tokens"` // null when not reported
	Concurrency  int        `json:"concurrency"`   // requests that ran together, itself included; 0 when unknown
	Temperature  *float64   `json:"temperature"`   // null when the request named none
	Seed         *int64     `json:"seed"`
	Drafting     *bool      `json:"drafting"` // null when unknown
	Variant      string     `json:"variant,omitempty"`
}

// GoldenVersion is the version of the document below; readers refuse newer ones.
const GoldenVersion = 1

// Golden is one answer of a reference engine that others are held against.
type Golden struct {
	Version int `json:"schema"`

	ID      ID        `json:"id"`
	Key     string    `json:"key"`    // request key, without exclusions
	Digest  string    `json:"digest"` // sha256:<hex> of the canonical request
	Turn    int       `json:"turn"`   // of the case's conversation, from 0
	Source  ID        `json:"source"` // exchange it was taken from
	Run     ID        `json:"run"`
	Made    time.Time `json:"made"`    // when the answer was recorded
	Harness string    `json:"harness"` // version of benchproxy that recorded it

	Weights  string          `json:"weights"` // sha256:<hex> of the weights; "" when unknown
	Engine   Identity        `json:"engine"`
	Launch   string          `json:"launch,omitempty"` // command line of an engine that was started for the recording, secrets masked
	Build    string          `json:"build,omitempty"`  // digest of what was started: program, what belongs to it, environment
	Sampling json.RawMessage `json:"sampling"`         // the request's sampling fields, canonical
	Conditions

	Path         string  `json:"path"`                 // request target it was asked at
	PromptDigest string  `json:"prompt_digest"`        // sha256:<hex> of the fields that make the prompt, the model's name not among them
	PromptTokens *int64  `json:"prompt_tokens"`        // null when not reported
	PromptIDs    []int64 `json:"prompt_ids,omitempty"` // where the engine told them

	Tokens    []GoldenToken `json:"tokens,omitempty"` // nil for an engine that tells text only
	Spelled   bool          `json:"spelled"`          // the texts of all of them are told
	Basis     string        `json:"basis"`            // tokens_logprobs, tokens, text: how deep a comparison can go
	Text      string        `json:"text"`
	Reasoning string        `json:"reasoning,omitempty"`
	Calls     []ToolCall    `json:"tool_calls,omitempty"`
	Finish    string        `json:"finish"`    // normalized finish reason
	Alternate int           `json:"alternate"` // 0 = the first recording under its key, 1.. = further ones
}
