package gates

import "github.com/benchproxy/benchproxy/internal/exchange"

// answerGates are the rules that look at one answer alone.
func answerGates() []Gate {
	return []Gate{{
		ID: "usage_present", Version: 1, Level: LevelDev, Family: "answer",
		Summary: "the engine reported how many tokens it read and wrote",
		Explain: "Every turn that was answered must carry a usage report with prompt and completion tokens. Counts that we estimated do not satisfy it.",
		judge:   usagePresent,
	}}
}

func usagePresent(e *Evidence) (Finding, exchange.Needs) {
	for i, t := range e.Turns {
		if t.Transcript.Usage == nil {
			return fail("turn %d carries no usage", i+1), nil
		}
	}
	return ok(), nil
}
