package reportcases

import (
	"bytes"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// sendStart and requestRead are where an exchange of a case has these marks, ns since the origin: not 0, so that a
// forgotten subtraction of t0 shows.
const (
	requestRead = 2_000_000
	sendStart   = 3_000_000
)

// requestBody is the request of every variant that does not ask for a large one.
const requestBody = `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`

// Exchange is the variant as a proxy without any delay of its own would have sealed it: one read a frame, each stamped
// with the frame's time after the send.
func (v Variant) Exchange() *exchange.Exchange {
	x := &exchange.Exchange{
		ID:    exchange.NewID(time.UnixMilli(0)),
		Mode:  "record",
		State: exchange.StateStored,
		End:   exchange.EndEOF,
		Request: exchange.Request{
			Method: "POST", Target: "/v1/chat/completions", Proto: "HTTP/1.1",
			Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}},
			Body:    exchange.NewBody([]byte(requestBody)),
		},
	}
	if pad := int(v.RequestBytes) - len(requestBody); pad > 0 {
		// White space before a value changes its size and nothing else.
		x.Request.Body = exchange.NewBody(slices.Concat(bytes.Repeat([]byte(" "), pad), []byte(requestBody)))
	}
	tl := &x.Timeline
	tl.Wall = time.UnixMilli(0).UTC()
	tl.Accepted, tl.RequestRead = exchange.MarkAt(0), exchange.MarkAt(requestRead)
	if v.Response == nil {
		x.End = exchange.EndConnectFailed
		x.Cause = &exchange.Cause{Side: exchange.SideEngine, Code: "connect", Text: "connection refused"}
		return x
	}
	tl.Dialed, tl.SendStart, tl.SendDone = exchange.MarkAt(sendStart), exchange.MarkAt(sendStart), exchange.MarkAt(sendStart)
	x.Response = exchange.Response{Status: v.Response.Status, Proto: "HTTP/1.1"}
	for name, value := range v.Response.Headers {
		x.Response.Headers = append(x.Response.Headers, exchange.Header{Name: name, Value: value})
	}
	tl.Clock = exchange.ClockRead
	var chunks [][]byte
	for _, f := range v.Frames {
		chunks = append(chunks, f.Data)
		tl.Reads = append(tl.Reads, exchange.Read{At: sendStart + int64(f.At), Write: 5_000, Size: len(f.Data)})
	}
	body := bytes.Join(chunks, nil)
	x.Response.Body = exchange.Body{Size: int64(len(body)), Kept: int64(len(body)), Chunks: chunks}
	if n := len(tl.Reads); n > 0 {
		tl.HeaderRead, tl.FirstRead = exchange.MarkAt(tl.Reads[0].At), exchange.MarkAt(tl.Reads[0].At)
		tl.LastRead = exchange.MarkAt(tl.Reads[n-1].At)
	}
	tl.BodyEnd = exchange.MarkAt(sendStart + int64(v.End.At))
	tl.ClientDone = tl.BodyEnd
	x.End, x.Cause = v.End.seal()
	return x
}

// seal is what a proxy notes for the way the server ended.
func (e End) seal() (exchange.End, *exchange.Cause) {
	switch e.How {
	case "reset":
		return exchange.EndReset, &exchange.Cause{Side: exchange.SideEngine, Code: "reset", Text: "connection reset by peer"}
	case "fin_without_last_chunk":
		return exchange.EndShort, &exchange.Cause{Side: exchange.SideEngine, Code: "eof", Text: "unexpected end of the body"}
	}
	return exchange.EndEOF, nil
}

// Recut is the exchange with its reads cut in two at the given body offset, the second part with the stamp of the
// first: what a boundary at an awkward place does to the record. An offset at a boundary changes nothing.
func Recut(x *exchange.Exchange, at int64) *exchange.Exchange {
	y := *x
	y.Timeline.Reads = nil
	var off int64
	for _, r := range x.Timeline.Reads {
		if off < at && at < off+int64(r.Size) {
			first := r
			first.Size = int(at - off)
			y.Timeline.Reads = append(y.Timeline.Reads, first)
			off += int64(first.Size)
			r.Size -= first.Size
		}
		y.Timeline.Reads = append(y.Timeline.Reads, r)
		off += int64(r.Size)
	}
	return &y
}
