package gates

import "github.com/benchproxy/benchproxy/internal/exchange"

// capability is something that an engine may lack and, when it is asked for it, says that it lacks.
type capability struct {
	name  string
	gates []string // to which the lack is no failure
	said  func(Turn) string
}

func capabilities() []capability {
	return []capability{
		{"tools", []string{useGateID, "agent_turns"}, Turn.unsupported},
		{"images", []string{"vision"}, Turn.takesNoImages},
	}
}

// Needs is the capability without which the checks of a case say unsupported; "" for other cases.
func Needs(checks []exchange.Check) string {
	for _, c := range capabilities() {
		for _, check := range checks {
			for _, gate := range c.gates {
				if check.Gate == gate {
					return c.name
				}
			}
		}
	}
	return ""
}

// Refuses is what an answer says that refuses a capability in so many words; "" for every other answer.
func Refuses(x *exchange.Exchange, name string) string {
	for _, c := range capabilities() {
		if c.name == name {
			return c.said(Prepare(&exchange.Case{Exchanges: []*exchange.Exchange{x}}).Turns[0])
		}
	}
	return ""
}
