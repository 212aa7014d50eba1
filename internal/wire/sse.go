package wire

import "bytes"

// sseSplitter cuts an event stream into blocks: lines up to a blank line, where a line ends with LF, CR or CRLF.
//
// A block ends at the first byte that can end its blank line. After a CR that is the CR itself: waiting for a possible
// LF would hold the event back until the next one comes. The LF, if there is one, then belongs to the gap.
type sseSplitter struct {
	past    bool // the first line, which alone can carry a byte order mark, is behind us
	skipLF  bool // the last line ended with CR, so a LF that follows is part of that end
	start   int  // first byte of the block
	line    int  // first byte of the current line
	scanned int  // no line end between line and here
	lf      int  // no LF between scanned and here

	lines    int // data lines of the block
	from, to int // the payload while there is one data line
	joined   []byte
	nameFrom int
	nameTo   int
	hasName  bool
	comments int

	failed           bool // a line of the block is an error
	errFrom, errUpTo int
}

// next implements splitter.
func (s *sseSplitter) next(buf []byte) (step, bool) {
	for {
		if s.skipLF && s.line < len(buf) {
			s.skipLF = false
			if buf[s.line] == '\n' {
				s.passLF()
			}
		}
		i := s.lineEnd(buf)
		if i < 0 {
			return step{}, false
		}
		blank := s.takeLine(buf, buf[s.line:i])
		s.line, s.scanned = i+1, i+1
		s.skipLF = buf[i] == '\r'
		if blank {
			return s.dispatch(buf), true
		}
	}
}

// passLF steps over the LF of a CRLF pair; before the first line of a block it is no part of the block.
func (s *sseSplitter) passLF() {
	if s.line == s.start {
		s.start++
	}
	s.line++
	s.scanned = s.line
}

// lineEnd is the index of the byte that ends the current line, or -1. Both searches start where the last one stopped:
// a line that comes byte by byte, or a stream without any LF, still costs one look at each byte.
func (s *sseSplitter) lineEnd(buf []byte) int {
	lf := max(s.lf, s.scanned)
	if lf < len(buf) && buf[lf] != '\n' {
		if j := bytes.IndexByte(buf[lf:], '\n'); j < 0 {
			lf = len(buf)
		} else {
			lf += j
		}
	}
	s.lf = lf
	if s.scanned < lf {
		if j := bytes.IndexByte(buf[s.scanned:lf], '\r'); j >= 0 {
			return s.scanned + j
		}
	}
	s.scanned = lf
	if lf < len(buf) {
		return lf
	}
	return -1
}

// takeLine reads one line of the block and reports whether it is the blank one that ends it.
func (s *sseSplitter) takeLine(buf, line []byte) (blank bool) {
	if !s.past {
		s.past = true
		if bytes.HasPrefix(line, bom) {
			s.line += len(bom)
			s.start += len(bom)
			line = line[len(bom):]
		}
	}
	switch {
	case len(line) == 0:
		return true
	case line[0] == ':':
		s.comments++
	case bytes.HasPrefix(line, []byte("data:")):
		s.takeData(buf, s.line+len("data:"), s.line+len(line))
	case bytes.HasPrefix(line, []byte("event:")):
		s.hasName = true
		s.nameFrom, s.nameTo = value(buf, s.line+len("event:"), s.line+len(line))
	case string(line) == "data":
		s.takeData(buf, s.line+len(line), s.line+len(line))
	case !s.failed && bytes.HasPrefix(line, []byte("error:")):
		from, to := value(buf, s.line+len("error:"), s.line+len(line))
		if s.failed = isErrorValue(buf[from:to]); s.failed {
			s.errFrom, s.errUpTo = from, to
		}
	}
	return false
}

// isErrorValue reports whether b is an object that tells an error. Older builds of llama.cpp send one as a field of the
// stream in its own name. Any other value under that name makes a field that the format does not know, which is ignored.
func isErrorValue(b []byte) bool {
	b = trim(b)
	if len(b) == 0 || b[0] != '{' || !valid(b) {
		return false
	}
	is := false
	eachField(b, func(key, value []byte) {
		switch string(key) {
		case "error":
			is = is || value[0] == '{' || len(value) > len(`""`) && value[0] == '"'
		case "message":
			is = is || len(value) > len(`""`) && value[0] == '"'
		}
	})
	return is
}

// errorName is the name of an event that is an error.
const errorName = "error"

// value drops the one space that may follow the colon.
func value(buf []byte, from, to int) (int, int) {
	if from < to && buf[from] == ' ' {
		from++
	}
	return from, to
}

// takeData adds a data line. Only a second one makes a copy.
func (s *sseSplitter) takeData(buf []byte, from, to int) {
	from, to = value(buf, from, to)
	s.lines++
	if s.lines == 1 {
		s.from, s.to = from, to
		return
	}
	if s.lines == 2 {
		s.joined = append(s.joined[:0], buf[s.from:s.to]...)
	}
	s.joined = append(append(s.joined, '\n'), buf[from:to]...)
}

// payload is what the block says: its error, if a line is one, whatever else stands beside it, or its data.
func (s *sseSplitter) payload(buf []byte) (name, data []byte) {
	switch {
	case s.failed:
		return []byte(errorName), buf[s.errFrom:s.errUpTo]
	case s.lines == 0:
		return nil, nil
	}
	return s.name(buf), s.data(buf)
}

func (s *sseSplitter) data(buf []byte) []byte {
	if s.lines > 1 {
		return s.joined
	}
	return buf[s.from:s.to]
}

func (s *sseSplitter) name(buf []byte) []byte {
	if !s.hasName {
		return nil
	}
	return buf[s.nameFrom:s.nameTo]
}

// dispatch ends the block at the current line. A block whose data is empty is no event.
func (s *sseSplitter) dispatch(buf []byte) step {
	st := step{start: s.start, end: s.line, comments: s.comments}
	if name, d := s.payload(buf); len(bytes.TrimSpace(d)) > 0 {
		st.event, st.data, st.name = true, d, name
	}
	*s = sseSplitter{past: s.past, skipLF: s.skipLF, lf: max(s.lf-s.line, 0), joined: s.joined}
	return st
}

// end implements splitter. A block without its blank line is never an event; its payload is handed over as it is.
func (s *sseSplitter) end(buf []byte, _ bool) tail {
	if s.line < len(buf) {
		s.takeLine(buf, buf[s.line:])
	}
	t := tail{step: step{end: len(buf), comments: s.comments}}
	if name, d := s.payload(buf); len(bytes.TrimSpace(d)) > 0 {
		t.cut = true
		t.pieces = &leftover{name: name, data: d}
	} else if s.line < len(buf) {
		t.cut = !bytes.HasPrefix(buf[s.line:], []byte(":"))
	}
	return t
}
