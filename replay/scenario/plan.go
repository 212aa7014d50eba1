package scenario

import "fmt"

// Member is one case of a plan.
type Member struct {
	Scenario
	Concurrency int // cases that run together, itself included
	Repeat      int // from 0
	Index       int // among those that run together, from 0
}

// Tag names the case: scenario, concurrency, repeat and index.
func (m Member) Tag() string {
	return fmt.Sprintf("%s-c%d-r%d-i%d", m.TagName(), m.Concurrency, m.Repeat, m.Index)
}

// Wave names the cases that run together.
func (m Member) Wave() string {
	return fmt.Sprintf("%s-c%d-r%d", m.TagName(), m.Concurrency, m.Repeat)
}

// Plan lists the cases of scenarios at degrees of concurrency, each repeated. Cases of one wave stand together. A
// scenario that is planned alone runs at the degree 1 only, and only when that is among the degrees; one of so many streams
// runs with these, whatever the degrees.
func Plan(scenarios []Scenario, degrees []int, repeats int) []Member {
	var out []Member
	for _, s := range scenarios {
		degrees := degrees
		if s.Streams > 0 {
			degrees = []int{s.Streams}
		}
		for _, degree := range degrees {
			if s.Alone && degree != 1 {
				continue
			}
			for r := range repeats {
				for i := range degree {
					out = append(out, Member{Scenario: s, Concurrency: degree, Repeat: r, Index: i})
				}
			}
		}
	}
	return out
}

// Requests is the number of requests that the cases of a plan send when every conversation reaches its end.
func Requests(plan []Member) int {
	n := 0
	for _, m := range plan {
		n += m.Turns
	}
	return n
}

// WarmupTokens is the output limit of a warm-up.
const WarmupTokens = 8

// Warmup is a request whose answer nobody looks at: one word is asked for a few.
func Warmup(o Options) Request {
	c := chat{Model: o.Model, Messages: []message{user("Hello")}, MaxTokens: WarmupTokens, Stream: o.Stream}
	if c.Stream {
		c.StreamOptions = map[string]any{"include_usage": true}
	}
	return Request{Method: "POST", Path: "/v1/chat/completions", Body: c.bytes(), Thinking: o.Thinking}
}
