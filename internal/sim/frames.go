package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// FrameList is an answer given as frames with their instants, in the form that reports from the field use:
//
//	{"response": {"status": 200, "headers": {"Content-Type": "text/event-stream"}, "framing": "chunked"},
//	 "frames": [{"t_ms": 40, "data": "data: {...}\n\n"}, {"t_ms": 100, "every_ms": 10, "n": 5, "data": "..."}],
//	 "end": {"t_ms": 140, "how": "clean"}}
//
// Keys of the surrounding case that say nothing about the answer are ignored.
type FrameList struct {
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Framing Framing           `json:"framing"` // chunked, length or close
	} `json:"response"`
	Frames []Frame  `json:"frames"`
	End    FrameEnd `json:"end"`
}

// Frame is one step, or n of them every EveryMS milliseconds. In Data, "{i}" is the number of the repetition from 0
// and "{request}" the number of the request.
type Frame struct {
	TMS     float64 `json:"t_ms"` // since the request got its slot
	EveryMS float64 `json:"every_ms"`
	N       int     `json:"n"` // 0 = 1
	Data    string  `json:"data"`
	Token   bool    `json:"token"` // it holds generated content
}

// FrameEnd is how the answer ends: clean or keep_open (properly), close, truncate, reset, or hang.
type FrameEnd struct {
	TMS float64 `json:"t_ms"`
	How string  `json:"how"`
}

// ParseFrames reads a FrameList.
func ParseFrames(raw []byte) (FrameList, error) {
	var l FrameList
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, fmt.Errorf("read frames: %w", err)
	}
	return l, nil
}

// Script is the answer to request number request.
func (l FrameList) Script(request int64) (*Script, error) {
	s := &Script{Status: l.Response.Status, Framing: l.Response.Framing, EndAt: fromMS(l.End.TMS)}
	switch s.Framing {
	case FramingChunked, FramingLength, FramingClose:
	case "":
		s.Framing = FramingChunked
	default:
		return nil, fmt.Errorf("frames: unknown framing %q", s.Framing)
	}
	switch l.End.How {
	case "clean", "keep_open", "":
		s.End = EndKeep
	case "close", "truncate", "reset", "hang":
		s.End = Ending(l.End.How)
	default:
		return nil, fmt.Errorf("frames: unknown end %q", l.End.How)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Response.Headers)) {
		s.Headers = append(s.Headers, exchange.Header{Name: name, Value: l.Response.Headers[name]})
	}
	for _, f := range l.Frames {
		s.Steps = append(s.Steps, f.steps(request)...)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return s, nil
}

func (f Frame) steps(request int64) []Step {
	data := strings.ReplaceAll(f.Data, "{request}", strconv.FormatInt(request, 10))
	steps := make([]Step, max(f.N, 1))
	for i := range steps {
		steps[i] = Step{
			At:    fromMS(f.TMS + float64(i)*f.EveryMS),
			Data:  []byte(strings.ReplaceAll(data, "{i}", strconv.Itoa(i))),
			Token: f.Token,
		}
		if f.Token {
			steps[i].Tokens = 1
		}
	}
	return steps
}

func fromMS(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
