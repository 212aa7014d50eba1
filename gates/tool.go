package gates

// toolGates are the rules about tool calls.
func toolGates() []Gate { return nil }
