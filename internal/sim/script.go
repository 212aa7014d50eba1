package sim

import (
	"context"
	"io"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Framing is how the end of a response body is told.
type Framing string

const (
	// FramingChunked makes each step one chunk.
	FramingChunked Framing = "chunked"
	// FramingLength announces the length of all steps in Content-Length.
	FramingLength Framing = "length"
	// FramingClose ends the body by closing the connection, and says "Connection: close".
	FramingClose Framing = "close"
	// FramingRaw sends the steps as they are: they hold the response head and its framing.
	FramingRaw Framing = "raw"
)

// Ending is what happens after the last step.
type Ending string

const (
	// EndKeep ends the body properly. The connection stays open unless the framing or either side said otherwise.
	EndKeep Ending = "keep"
	// EndClose ends the body properly and then closes the connection, whatever the head said.
	EndClose Ending = "close"
	// EndTruncate closes the connection without ending the body.
	EndTruncate Ending = "truncate"
	// EndReset resets the connection (RST) without ending the body.
	EndReset Ending = "reset"
	// EndHang sends nothing more and keeps the connection open until the client leaves, which is how the request ends.
	EndHang Ending = "hang"
	// EndCrash closes every listener and every connection of the server, like a process that died.
	EndCrash Ending = "crash"
)

// Step is one piece of a body and its planned instant. Unless Options or the Script say otherwise it is one write.
type Step struct {
	At     time.Duration // since the request got its slot
	Data   []byte        // body bytes; with FramingRaw, wire bytes
	Token  bool          // it holds generated content
	Tokens int           // generated tokens in it
}

// Script is a whole answer: what is sent and when. A Script may be played any number of times; it is not changed.
type Script struct {
	Status  int               // 0 = 200
	Reason  string            // "" = the usual phrase
	Proto   string            // "" = HTTP/1.1
	Headers []exchange.Header // without those of the framing
	RawHead []byte            // replaces status line and headers, final blank line included; nil = none
	HeadAt  time.Duration     // when the head is sent, since the request got its slot
	HeadGap time.Duration     // > 0: the head is sent line by line, this far apart
	// FromRead counts all instants from the moment the request was read whole, not from its slot: what it takes to make
	// the Script then makes its first write late, and not every one.
	FromRead bool
	// JoinHead sends the head in the write of the first step, at its instant.
	JoinHead bool
	// JoinEnd sends the end of a chunked body in the write of the last step.
	JoinEnd       bool
	Informational []int // status codes of 1xx heads sent before
	Framing       Framing
	Steps         []Step // in order of At
	Trailers      []exchange.Header
	End           Ending        // "" = EndKeep
	EndAt         time.Duration // not before the last step; 0 = with it

	Split int // > 0: every write is cut into pieces of at most this many bytes
	Merge int // > 1: this many steps share one write, at the instant of the last
	Fault Fault

	Usage Usage // what the answer reports, for the truth

	// Relay answers instead of all the above: what it writes goes to the client as it is, and the connection ends when it
	// returns, as it says: EndReset, or else EndClose. ctx ends when the client has left or the server is closed.
	Relay func(ctx context.Context, w io.Writer) Ending
	// Done is told of the request when it has ended, before the next one on the connection is read; nil = nobody is.
	Done func(Record)

	// The dialect's own forms, for faults.
	Failure func(sent int) []byte // what an error fault sends after so many steps; nil = OpenAI's error
	Last    []byte                // what error_done ends a stream with; nil = [DONE]
}

// Usage is the truth about the tokens of a generated answer. It is zero for played ones.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Cached     int `json:"cached_tokens"`
	Reasoning  int `json:"reasoning_tokens"`
}

// Handler gives the Script that answers a request, or nil to let the engine answer. It is called from many goroutines.
type Handler func(Request) *Script

// Always plays one Script for every request outside the reserved paths.
func Always(s *Script) Handler {
	return func(Request) *Script { return s }
}

// Request is a request as the server read it.
type Request struct {
	Seq     int64             `json:"seq"` // order of arrival on the server, from 1
	Method  string            `json:"method"`
	Target  string            `json:"target"` // as sent, query included
	Proto   string            `json:"proto"`
	Headers []exchange.Header `json:"headers"`        // in order, repeats kept
	Body    []byte            `json:"body,omitempty"` // after de-chunking
}

// Path is the target without its query.
func (r Request) Path() string {
	for i := range len(r.Target) {
		if r.Target[i] == '?' {
			return r.Target[:i]
		}
	}
	return r.Target
}
