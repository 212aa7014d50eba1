package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// CaptureScript plays a capture: the bytes of a response as they came off a socket, head and chunk framing included,
// in the sizes and at the times of a log of receive calls. speed divides the times; 0 sends everything at once, in the
// same pieces. The log has one line per call, tab-separated: index, microseconds since the request was sent, bytes,
// offset of the first one; its first line is a comment whose end= says how the capture ended:
//
//	complete      the body was whole, the connection stays open unless the head says otherwise
//	eof           the engine closed the connection
//	client-abort  the client left; played as silence after the last byte
func CaptureScript(response, log []byte, speed float64) (*Script, error) {
	var recvs []Recv
	var end Ending
	offset := 0
	for n, line := range strings.Split(string(log), "\n") {
		var err error
		switch {
		case n == 0:
			end, err = captureEnd(line)
		case line != "":
			var r Recv
			r, err = captureLine(line, offset)
			recvs = append(recvs, r)
			offset += r.Size
		}
		if err != nil {
			return nil, fmt.Errorf("read capture log line %d: %w", n+1, err)
		}
	}
	return RawScript(response, recvs, end, speed)
}

// Recv is one receive call of a capture.
type Recv struct {
	At   time.Duration // since the request was sent
	Size int           // bytes
}

// RawScript plays the wire bytes of a response, head and framing included, in the pieces of recvs, whose sizes must add
// up to the response. speed divides the times; 0 sends every piece at once. A response that announces the end of its
// connection gets it, when end is EndKeep.
func RawScript(response []byte, recvs []Recv, end Ending, speed float64) (*Script, error) {
	s := &Script{Framing: FramingRaw, End: end}
	rest := response
	for i, r := range recvs {
		if r.Size < 0 || r.Size > len(rest) {
			return nil, fmt.Errorf("play response: receive %d is of %d bytes, %d are left", i, r.Size, len(rest))
		}
		step := Step{Data: rest[:r.Size]}
		if speed > 0 {
			step.At = time.Duration(float64(r.At) / speed)
		}
		s.Steps = append(s.Steps, step)
		rest = rest[r.Size:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("play response: %d bytes are in no receive", len(rest))
	}
	if end == EndKeep && announcesClose(response) {
		s.End = EndClose
	}
	return s, nil
}

// captureEnd reads how the capture ended from the log's first line.
func captureEnd(comment string) (Ending, error) {
	for field := range strings.FieldsSeq(comment) {
		switch field {
		case "end=complete":
			return EndKeep, nil
		case "end=eof":
			return EndTruncate, nil
		case "end=client-abort":
			return EndHang, nil
		}
	}
	return "", fmt.Errorf("no known end= in %q", comment)
}

// captureLine reads one line of the log; its piece must start at byte want.
func captureLine(line string, want int) (Recv, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 4 {
		return Recv{}, fmt.Errorf("want 4 fields in %q", line)
	}
	var n [4]int64
	for i, f := range fields {
		var err error
		if n[i], err = strconv.ParseInt(f, 10, 64); err != nil {
			return Recv{}, fmt.Errorf("field %d: %w", i+1, err)
		}
	}
	if n[3] != int64(want) {
		return Recv{}, fmt.Errorf("offset %d, want %d", n[3], want)
	}
	return Recv{At: time.Duration(n[1]) * time.Microsecond, Size: int(n[2])}, nil
}

// announcesClose reports whether a response head says Connection: close, or its framing has no other end.
func announcesClose(response []byte) bool {
	head, _, _ := strings.Cut(string(response), "\r\n\r\n")
	for line := range strings.SplitSeq(head, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "Connection") && hasToken(value, "close") {
			return true
		}
	}
	return strings.HasPrefix(head, "HTTP/1.0")
}

// BodyScript sends a whole body at once, as it is. step > 0 cuts it into steps of at most that many bytes.
func BodyScript(status int, contentType string, framing Framing, body []byte, step int) *Script {
	s := &Script{
		Status: status, Framing: framing,
		Headers: []exchange.Header{{Name: "Content-Type", Value: contentType}},
	}
	for step > 0 && len(body) > step {
		s.Steps = append(s.Steps, Step{Data: body[:step]})
		body = body[step:]
	}
	if len(body) > 0 {
		s.Steps = append(s.Steps, Step{Data: body})
	}
	return s
}
