package matrix

import "fmt"

// SkipKind is the class of a reason why a cell cannot run. The words are part of the JSON contract.
type SkipKind string

// Why cells are skipped.
const (
	SkipRestricted    SkipKind = "engine_restricted"   // the config keeps the engine to other backends
	SkipNoMapping     SkipKind = "no_mapping"          // the engine has no launch on the backend
	SkipNotComparable SkipKind = "not_comparable"      // numbers of the running server belong to another backend
	SkipMTP           SkipKind = "mtp_unsupported"     // the engine or the model has no draft head to switch
	SkipMTPDraft      SkipKind = "mtp_draft_missing"   // its file is not there
	SkipTP            SkipKind = "tp_unsupported"      // the engine cannot spread the model on this backend
	SkipTPDevices     SkipKind = "tp_devices"          // fewer devices are configured
	SkipMinTP         SkipKind = "min_tp"              // the model does not fit
	SkipMaxTP         SkipKind = "max_tp"              // the model cannot be cut so small
	SkipOffload       SkipKind = "offload_unsupported" // nothing to move, or nobody to move it
	SkipPinned        SkipKind = "offload_pinned"      // the backend's own arguments do it already
	SkipDense         SkipKind = "offload_dense"       // the model has no experts
	SkipTooLarge      SkipKind = "too_large"           // for the processor
	SkipModality      SkipKind = "modality"            // the model or the engine does not take that kind of input
	SkipDiffusion     SkipKind = "diffusion"           // a diffusion model runs few engines and scenarios
	SkipMethod        SkipKind = "method_unsupported"  // of speculative decoding
	SkipDrafter       SkipKind = "drafter_missing"     // the method's draft model is not there
	SkipDevice        SkipKind = "device_unsupported"  // the engine cannot choose a device, or not that one
	SkipNoName        SkipKind = "no_model_name"       // the engine serves many models and the config names none for it
	SkipNoURL         SkipKind = "no_url"              // the engine is not launched and has no address
	SkipModelFile     SkipKind = "model_missing"       // a file of the model is not there
	SkipBinary        SkipKind = "binary_missing"      // the engine's program is not there
	SkipAsset         SkipKind = "asset_missing"       // what the scenario shows or plays is not there
	SkipNoMessages    SkipKind = "no_messages"         // the scenario has nothing to ask of this engine
	SkipUnreachable   SkipKind = "unreachable"         // a server that is not ours does not answer
	SkipDisagreeing   SkipKind = "axes_exclude"        // two axes ask for what excludes each other
)

// Skip says why a cell cannot run.
type Skip struct {
	Kind   SkipKind `json:"kind"`
	Reason string   `json:"reason"` // for the record's detail
}

func skipf(kind SkipKind, format string, args ...any) *Skip {
	return &Skip{Kind: kind, Reason: fmt.Sprintf(format, args...)}
}

// Unreachable is the skip of the cells of a server that was to run already and does not answer.
func Unreachable(url string, cause error) *Skip {
	return skipf(SkipUnreachable, "no server answers at %s: %v", url, cause)
}

// NoMessages is the skip of a cell whose scenario has nothing to ask; why is told by who builds its requests.
func NoMessages(why string) *Skip { return skipf(SkipNoMessages, "%s", why) }
