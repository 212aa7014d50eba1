package exchange

import "strings"

// PlanItem says which part of a plan an exchange carried out. Exchanges of two runs of one workload that have the same
// item, turn and repeat belong together, whatever their keys are.
type PlanItem struct {
	Item         string `json:"item"`                   // id of the workload's item
	Conversation string `json:"conversation,omitempty"` // it is a turn of; "" for a request of its own
	Turn         int    `json:"turn"`                   // of the conversation, from 0
	Turns        int    `json:"turns"`                  // of the conversation as planned; 1 for a request of its own
	Repeat       int    `json:"repeat"`                 // of the workload, from 0
	Attempt      int    `json:"attempt"`                // from 0; a later one is sent because the engine asked for it with a 503, or with a 400 for another spelling
	Warmup       bool   `json:"warmup,omitempty"`       // sent before the measuring began; in no figure of the run
}

// Replay is what a run that sent a plan was to do, and what became of it.
type Replay struct {
	Workload string `json:"workload"`         // hash of the workload
	Plan     string `json:"plan"`             // hash of the requests in the order and at the times planned, before the first was sent
	Source   string `json:"source,omitempty"` // run or file it was read from
	Driver   string `json:"driver"`           // closed, rate, recorded or waves
	Group    ID     `json:"group,omitempty"`  // shared by the runs of one sitting with several targets
	Seed     uint64 `json:"seed"`             // of arrivals and order

	Settings ReplaySettings `json:"settings"`

	Items    ItemCounts `json:"items"`
	Schedule *Schedule  `json:"schedule"` // of an open loop; null for a closed one
	Waves    []WaveRate `json:"waves,omitempty"`
	// Cases are what the exchanges of a suite are judged as, in the order in which they were sent; nil for a plan that is no
	// suite.
	Cases []PlannedCase `json:"cases,omitempty"`
	// Reference is the engine that the cases were held against; null when they were held against none.
	Reference *ReferenceEngine `json:"reference,omitempty"`
	// EventGaps are the gaps between token events of all complete streams together, in ms; null when there are none.
	EventGaps *Tail `json:"event_gaps_ms,omitempty"`

	// Incomplete says why items did not end, "" when all did. The run is incomplete then.
	Incomplete string `json:"incomplete,omitempty"`
	// Invalid says why the run is no evidence of an open loop: it missed its schedule. "" when it kept it.
	Invalid string `json:"invalid,omitempty"`
}

// PlannedCase is a case of a suite as its run keeps it: the checks by which its exchanges are judged at any later time, and
// what they came to when it was sent. Its exchanges are those of the run whose item or conversation has its id.
type PlannedCase struct {
	Case
	Status   VerdictStatus `json:"status,omitempty"` // of all checks together; "" when the case did not come to its end
	Lenient  VerdictStatus `json:"lenient_status,omitempty"`
	Reason   string        `json:"reason,omitempty"` // of the first check that did not pass, or why the conversation stopped
	Verdicts []CaseVerdict `json:"verdicts,omitempty"`
	// Judged is how many turns it was judged by: fewer than planned where the conversation ended before, by an answer that
	// calls for no further turn or by a turn that was not answered. 0 when it did not come to its end, and in runs of builds
	// that did not say.
	Judged int `json:"judged_turns,omitempty"`
	// Lack is why it was not sent: it is judged by the refusal of another case. null when it was sent.
	Lack *Lack `json:"lack,omitempty"`
	// GoldenIDs are the goldens it was held against, and Met where the answers are that its gates needed: a judgment at a
	// later time rests on the same evidence.
	GoldenIDs []ID      `json:"goldens,omitempty"`
	Met       []MetNeed `json:"replies,omitempty"`
}

// Lack is a capability that an engine refused in so many words, and where it did. Further cases that need it are not sent.
type Lack struct {
	Capability string `json:"capability"` // tools, images
	Case       string `json:"case"`       // to which it was said
	Exchange   ID     `json:"exchange"`
}

// MetNeed is where the answer to a Need of a case is kept: among the exchanges of the run itself, or, of a reference, in
// the golden cache of the store.
type MetNeed struct {
	Need     string `json:"need"`
	Exchange ID     `json:"exchange,omitempty"` // "" when it could not be had
	Reason   string `json:"reason,omitempty"`   // why not
}

// ReferenceEngine says whose goldens and replies a run was held against.
type ReferenceEngine struct {
	Weights string `json:"weights"` // as Golden.Weights
	Identity
	Launch string `json:"launch,omitempty"` // command line of one that was started here, as Golden.Launch
	Build  string `json:"build,omitempty"`  // as Golden.Build
}

// CaseVerdict is a verdict in short: that of one check of a case, in their order.
type CaseVerdict struct {
	Gate    string        `json:"gate"`
	Version int           `json:"version"`
	Status  VerdictStatus `json:"status"`
	Lenient VerdictStatus `json:"lenient_status,omitempty"`
}

// Scenarios are the scenarios of a suite by the case, with the policy of a tool call where there is one; none of what is no
// suite.
func (r *Replay) Scenarios() map[string]string {
	out := map[string]string{}
	if r != nil {
		for i := range r.Cases {
			c := &r.Cases[i]
			out[c.ID] = strings.TrimSpace(c.Scenario + " " + c.Policy)
		}
	}
	return out
}

// CaseID is the case of a suite that the part of a plan belongs to.
func (p *PlanItem) CaseID() string {
	if p.Conversation != "" {
		return p.Conversation
	}
	return p.Item
}

// ReplaySettings are how a plan was asked to be sent.
type ReplaySettings struct {
	Targets     int      `json:"targets"`     // of the sitting, which take turns
	Concurrency int      `json:"concurrency"` // closed loop: requests at a time; waves: of a wave; open loop: the most at once
	Rate        float64  `json:"rate,omitempty"`
	Arrivals    string   `json:"arrivals,omitempty"`
	Speed       *float64 `json:"speed,omitempty"` // of recorded instants: 1 as recorded, 0 all at once
	MaxGapMS    float64  `json:"max_gap_ms,omitempty"`
	Repeats     int      `json:"repeats"`
	Warmup      int      `json:"warmup"` // requests before the measuring began
	Nonce       bool     `json:"nonce"`  // each conversation of each repeat had a text of its own before its prompt
	KeepSeed    bool     `json:"keep_seed,omitempty"`
	LiveHistory bool     `json:"live_history,omitempty"`
	MaxRequests int      `json:"max_requests,omitempty"`
	DurationMS  float64  `json:"duration_ms,omitempty"`
	Retries     int      `json:"retries"` // the most later attempts after a 503
}

// Tail is a set of many numbers by its middle and its upper end. A percentile with too few numbers for it is null.
type Tail struct {
	Exchanges int      `json:"exchanges"` // that gave numbers
	N         int64    `json:"n"`
	P50       *float64 `json:"p50"`
	P90       *float64 `json:"p90"`
	P99       *float64 `json:"p99"`
	P999      *float64 `json:"p99_9"`
	Max       *float64 `json:"max"`
}

// ItemCounts say what became of the items of a plan. A conversation is one item.
type ItemCounts struct {
	Planned  int `json:"planned"`
	Complete int `json:"complete"`           // every turn was answered in full
	Failed   int `json:"failed"`             // the first turn failed
	Partial  int `json:"partial"`            // a conversation that stopped behind a later turn
	Unsent   int `json:"unsent"`             // never begun: the time was over, or the run was ended
	Withheld int `json:"withheld,omitempty"` // not sent, since the engine had said that it lacks what they need
	Broken   int `json:"broken"`             // begun and cut by the end of the run
	Requests int `json:"requests"`           // exchanges, without warm-ups
	Retries  int `json:"retries"`            // of them later attempts, after a 503 or for another spelling
	Warmups  int `json:"warmups"`            // exchanges before the measuring began
}

// Schedule is how an open loop kept the instants it planned. Lags and latencies are of every planned request that was
// sent, so their percentiles are counted, not estimated.
type Schedule struct {
	Planned      int      `json:"planned"`        // requests with a planned instant
	Sent         int      `json:"sent"`           // of them sent
	PlannedRate  *float64 `json:"planned_rate"`   // requests a second over the planned span; null for fewer than two instants
	AchievedRate *float64 `json:"achieved_rate"`  // the same over the span in which they were sent
	LagMS        Spread   `json:"lag_ms"`         // from the planned instant to the first request byte
	SentMS       Spread   `json:"from_sent"`      // whole answers, from the first request byte, in ms
	IntendedMS   Spread   `json:"from_intended"`  // whole answers, from the planned instant, in ms
	SentTTFT     Spread   `json:"ttft_sent"`      // first token, from the first request byte, in ms
	IntendedTTFT Spread   `json:"ttft_intended"`  // first token, from the planned instant, in ms
	BoundMS      float64  `json:"bound_ms"`       // a lag p99 above it makes the run invalid
	BoundRate    float64  `json:"bound_rate"`     // so does an achieved rate below this share of the planned one
	MaxInFlight  int      `json:"max_in_flight"`  // the bound on requests that run at once
	PeakInFlight int      `json:"peak_in_flight"` // the most that did
}

// Spread is a set of numbers by its middle and its upper end. Without numbers all are null.
type Spread struct {
	N   int      `json:"n"`
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

// WaveRate is what requests that ran together came to.
type WaveRate struct {
	Wave     string `json:"wave"`
	Streams  int    `json:"streams"`   // requests of the wave
	Failed   int    `json:"failed"`    // of them not complete: one voids the rates
	PeakLive int    `json:"peak_live"` // the most streams that decoded at the same time
	// Figures are aggregate_decode_tps, steady_tps and batch_tps.
	Figures Figures `json:"figures"`
}
