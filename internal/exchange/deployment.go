package exchange

import "time"

// Why a deployment was read.
const (
	ReadAtStart   = "start"   // once, before or between the exchanges of a run
	ReadAtRestart = "restart" // the engine had been away and answered again
	ReadAtAnswer  = "answer"  // an answer named another model than before
	ReadOfFile    = "weights" // the model file that the user named was read to its end
)

// Deployment is what answered behind one upstream, as far as it is known: which engine, what it had loaded, on what it
// ran. A nil field is unknown. Unknown is never equal to anything, not to another unknown either.
type Deployment struct {
	Upstream string    `json:"upstream,omitempty"`
	ReadAt   time.Time `json:"read_at"`
	Why      string    `json:"why,omitempty"` // start, restart, answer, weights
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

	Launch string `json:"launch,omitempty"` // digest of the build and the environment that we started; "" for an engine that somebody else runs

	WeightsDigest *string `json:"weights_digest"` // sha256:<hex> of the weights, when the file or the engine gave it

	Weights *Weights `json:"weights,omitempty"` // what the model file states that the user named; nil when none was named

	Fingerprint *Fingerprint `json:"fingerprint"`
}

// DeploymentAt is what is known of an upstream at an instant: the last account of it from before, else the first one. nil
// when there is none.
func (r *Run) DeploymentAt(upstream string, at time.Time) (d *Deployment) {
	for i := range r.Deployments {
		next := &r.Deployments[i]
		if next.Upstream != upstream || d != nil && next.ReadAt.After(at) {
			continue
		}
		d = next
	}
	return d
}

// Weights are what a model file states about itself. A nil field is unknown.
type Weights struct {
	Name         string  `json:"name"`  // of the file, without its directory
	Bytes        int64   `json:"bytes"` // of all shards
	Shards       int     `json:"shards"`
	Architecture string  `json:"architecture"`
	Model        string  `json:"model,omitempty"`  // the model's name as the file gives it
	Quantization *string `json:"quantization"`     // normalized; nil when the file states none or a guess
	Parameters   *int64  `json:"parameters"`       // number of weights
	Context      *int64  `json:"context"`          // tokens the model was trained for
	Digest       string  `json:"digest,omitempty"` // sha256:<hex> of its bytes, "" while it is unknown
}

// Fingerprint says whether two deployments can be told to be the same. It is taken when a deployment is read and never
// rewritten after. Labels that users put on runs have no part in it.
type Fingerprint struct {
	Version int               `json:"schema"`
	Digest  string            `json:"digest"`  // of the known fields, 12 hex digits
	Known   map[string]string `json:"known"`   // field -> value
	Unknown []string          `json:"unknown"` // fields without a value, sorted
}
