package exchange

import "time"

// Why a deployment was read.
const (
	ReadAtStart   = "start"   // once, before or between the exchanges of a run
	ReadAtRestart = "restart" // the engine had been away and answered again
	ReadAtAnswer  = "answer"  // an answer named another model than before
)

// Deployment is what answered behind one upstream, as far as it is known: which engine, what it had loaded, on what it
// ran. A nil field is unknown. Unknown is never equal to anything, not to another unknown either.
type Deployment struct {
	Upstream string    `json:"upstream,omitempty"`
	ReadAt   time.Time `json:"read_at"`
	Why      string    `json:"why,omitempty"` // start, restart, answer
	Identity           // the server that is spoken to
	Inner    *Identity `json:"inner"`              // the engine behind it, when the server is only a front
	Evidence string    `json:"evidence,omitempty"` // one line: what the verdict rests on
	Probes   int       `json:"probes"`             // requests that were sent to learn this

	Model        *string  `json:"model"`        // id the server serves it under
	ModelRoot    *string  `json:"model_root"`   // checkpoint or file behind the id, without directories of that machine
	Models       []string `json:"models"`       // ids of the listing, in its order
	Parameters   *int64   `json:"parameters"`   // number of weights
	Quantization *string  `json:"quantization"` // normalized: Q4_K_M, FP16, EXL3 ...
	Window       *int64   `json:"window"`       // tokens that prompt and answer of one request may have together
	Slots        *int64   `json:"slots"`        // requests that run at once
	GPUs         *int64   `json:"gpus"`         // devices the model is spread over
	Drafting     *bool    `json:"drafting"`     // speculative decoding is set up
	DraftMethod  *string  `json:"draft_method"` // what proposes the drafts

	RequestedDevice *string `json:"requested_device"` // what the user asked for: gpu, cuda, metal, cpu ...
	ObservedDevice  *string `json:"observed_device"`  // where the engine says that it runs
	CPUFallback     bool    `json:"cpu_fallback"`     // a GPU was asked for and the engine says CPU; never without such evidence

	WeightsDigest *string `json:"weights_digest"` // sha256:<hex> of the weights, when the file or the engine gave it

	Fingerprint *Fingerprint `json:"fingerprint"`
}

// Fingerprint says whether two deployments can be told to be the same. It is taken when a deployment is read and never
// rewritten after. Labels that users put on runs have no part in it.
type Fingerprint struct {
	Version int               `json:"schema"`
	Digest  string            `json:"digest"`  // of the known fields, 12 hex digits
	Known   map[string]string `json:"known"`   // field -> value
	Unknown []string          `json:"unknown"` // fields without a value, sorted
}
