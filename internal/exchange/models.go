package exchange

// ModelNamed is what the first answer of a run to requests for a model named as its own. It is kept with the run, so that
// whoever derives a row again knows what the answers began with.
type ModelNamed struct {
	Upstream string `json:"upstream"`
	Asked    string `json:"asked"`
	Named    string `json:"named"`
}

// Flags of a row whose answer names another model than it should. They rest on the run, not on the exchange alone. The
// words are part of the JSON contract.
const (
	FlagModelChanged = "model_changed" // not the one that answered such a request when the run began
	FlagModelDiffers = "model_differs" // none of those that the engine lists, and not the one that was asked for
)
