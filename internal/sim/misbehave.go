package sim

import (
	"time"
)

// cut is how the body of a Script ends after its Fault.
type cut struct {
	end      Ending
	at       time.Duration
	proper   bool // the body gets the end of its framing
	headless bool // not even a head is sent
}

// applyFault gives the steps that are sent when the Script's Fault strikes, and how they end.
func applyFault(s *Script) ([]piece, cut) {
	all := make([]piece, len(s.Steps))
	c := cut{end: s.End, at: s.HeadAt, proper: s.End == "" || s.End == EndKeep || s.End == EndClose}
	for i, st := range s.Steps {
		all[i] = piece{Step: st}
		c.at = max(c.at, st.At)
	}
	if s.Fault.Kind == "" {
		return all, c
	}
	k := min(s.Fault.After, len(all))
	sent := all[:k:k]
	next := piece{Step: Step{At: c.at}}
	if k < len(all) {
		next = all[k]
	}
	half := next
	half.Data, half.Token, half.Tokens = next.Data[:len(next.Data)/2], false, 0
	put := func(data string, bare bool) piece {
		return piece{Step: Step{At: next.At, Data: []byte(data)}, bare: bare}
	}
	broken := cut{end: EndTruncate, at: next.At}
	proper := cut{end: c.end, at: next.At, proper: true}

	switch s.Fault.Kind {
	case FaultError:
		return append(sent, put(errorEvent(s, k), false)), proper
	case FaultErrorDone:
		return append(sent, put(errorEvent(s, k), false), put(lastStep(s), false)), proper
	case FaultCleanCut:
		return sent, proper
	case FaultGarbage:
		sent = append(sent, put(garbageEvent(s), false))
		return append(sent, all[k:]...), c
	case FaultGarbageBody:
		return []piece{put("\x00\xff\xfe{\"\x80<html>\r\n\r\ndata", false)}, proper
	case FaultNoLastChunk:
		return sent, broken
	case FaultTruncateEvent:
		return append(sent, half), broken
	case FaultTruncateChunk:
		return append(sent, brokenChunk(s, next)), broken
	case FaultBadChunk:
		return append(sent, put("zz\r\n"+string(next.Data)+"\r\n", true)), broken
	case FaultReset:
		broken.end = EndReset
		return sent, broken
	case FaultStall:
		broken.end = EndHang
		return sent, broken
	case FaultBadHead:
		return []piece{put("HTTP/1.1 abc Nonsense\r\nno colon here\r\n\r\n", true)}, cut{end: EndTruncate, headless: true}
	case FaultCrash:
		return nil, cut{end: EndCrash, headless: true}
	default: // FaultCrashConn
		return nil, cut{end: EndTruncate, headless: true}
	}
}

// brokenChunk is the chunk of a step without its second half; without chunks it is half of the step.
func brokenChunk(s *Script, next piece) piece {
	data := next.Data
	if s.Framing == FramingChunked || s.Framing == "" {
		data = chunk(next.Data)
	}
	return piece{Step: Step{At: next.At, Data: data[:max(1, len(data)/2)]}, bare: true}
}

// errorEvent is the error an engine sends in the middle of an answer, after so many steps.
func errorEvent(s *Script, sent int) string {
	switch {
	case s.Failure != nil:
		return string(s.Failure(sent))
	case s.hasType(mimeSSE):
		return string(breakOpenAI(sent))
	}
	return string(errorObject(500, "server_error", lostModel))
}

// garbageEvent is an event that is not JSON.
func garbageEvent(s *Script) string {
	if s.hasType(mimeLines) {
		return "{\"not\": json,,\n"
	}
	return "data: {\"not\": json,,\n\n"
}

// lastStep is what a good stream of the Script ends with.
func lastStep(s *Script) string {
	if s.Last != nil {
		return string(s.Last)
	}
	return "data: [DONE]\n\n"
}
