package exchange

// End is how the exchange stopped, as the proxy saw it on its sockets. It is sealed with the exchange; what it means is
// derived later (Outcome).
type End string

const (
	EndEOF           End = "eof"            // the response ended properly for its framing
	EndShort         End = "short"          // the response ended before its framing said so
	EndReset         End = "reset"          // the engine's connection broke
	EndClientGone    End = "client_gone"    // the client closed first
	EndTimeout       End = "timeout"        // a deadline of ours passed
	EndConnectFailed End = "connect_failed" // no connection to the engine
	EndShutdown      End = "shutdown"       // the proxy was told to stop and the drain time passed
)

// Outcome is what an exchange came to. It is derived from End, status and Transcript; newer code may derive it again.
type Outcome string

const (
	OutcomeComplete          Outcome = "complete"           // no error anywhere, and the dialect's own end was seen
	OutcomeUpstreamTruncated Outcome = "upstream_truncated" // the answer stopped without its dialect's end
	OutcomeUpstreamError     Outcome = "upstream_error"     // no connection, or a status outside 2xx
	OutcomeStreamError       Outcome = "stream_error"       // an error inside a 200
	OutcomeClientAbort       Outcome = "client_abort"       // the client left before the dialect's end
	OutcomeTimeout           Outcome = "timeout"            // a deadline of ours ended it
	OutcomeShutdown          Outcome = "shutdown"           // our shutdown ended it
)

// Side is the party a fault belongs to.
type Side string

const (
	SideClient Side = "client"
	SideProxy  Side = "proxy"
	SideEngine Side = "engine"
	SideStore  Side = "store"
)

// Cause is why an exchange ended as it did, for people: the guilty side and the text of what was seen.
type Cause struct {
	Side Side   `json:"side"`
	Code string `json:"code"` // low cardinality: connect, http_status, reset, eof, idle_timeout, header_timeout, client_gone, shutdown, panic ...
	Text string `json:"text"`
}

// State says whether the whole exchange is in the record.
type State string

const (
	StateStored    State = "stored"    // every byte and read is there
	StateTruncated State = "truncated" // a body or the reads were cut at a memory bound; sizes and digests still cover all of it
)
