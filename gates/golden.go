package gates

import "slices"

// goldenGates are the rules that hold an answer against a recorded one, or against other answers of the same engine.
func goldenGates() []Gate {
	return slices.Concat(nearTieGates(), consistencyGates(), determinismGates(), specGates(), samplingGates(), needleGates(), agentGates())
}
