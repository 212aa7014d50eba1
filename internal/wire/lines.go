package wire

import "bytes"

// lineSplitter cuts NDJSON: every line that is not blank is an event. A CR before the LF is white space of the value.
type lineSplitter struct {
	scanned int // no LF before here
}

// next implements splitter.
func (l *lineSplitter) next(buf []byte) (step, bool) {
	j := bytes.IndexByte(buf[l.scanned:], '\n')
	if j < 0 {
		l.scanned = len(buf)
		return step{}, false
	}
	end := l.scanned + j + 1
	l.scanned = 0
	return lineStep(buf[:end]), true
}

func lineStep(line []byte) step {
	data := bytes.TrimSpace(bytes.TrimPrefix(line, bom))
	return step{end: len(line), data: data, event: len(data) > 0}
}

// end implements splitter. A last line without a line end is an event when it is a whole JSON value. A bare number or
// word could be the beginning of a longer one, so it counts only when the body is whole.
func (l *lineSplitter) end(buf []byte, whole bool) tail {
	s := lineStep(buf)
	t := tail{step: s}
	if !s.event {
		return t
	}
	delimited := s.data[0] == '{' || s.data[0] == '[' || s.data[0] == '"'
	t.event = valid(s.data) && (whole || delimited)
	t.cut = !t.event
	return t
}
