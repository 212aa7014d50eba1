package gates

// goldenGates are the rules that hold an answer against a recorded one.
func goldenGates() []Gate { return nil }
