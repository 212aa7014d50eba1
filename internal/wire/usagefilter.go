package wire

import (
	"bytes"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// maxHeld bounds what a UsageFilter holds back: a longer event is no report of usage, and passes as it comes.
const maxHeld = 64 << 10

// UsageFilter takes the events out of an event stream that AddUsage asked for, so that the client gets the bytes it would
// have got without the question. It knows an event of usage by what it says, and keeps every other event as it is.
//
// It holds back the bytes of an event until its blank line is there: an event that comes in one read is passed on in that
// read, one that is cut by the end of a read goes with the next. Comments, and all that is no event, are never held.
//
// Bytes go in by Feed and End. What they return is to be passed on at once; it is only valid until the next call.
type UsageFilter struct {
	buf     []byte
	passed  int   // bytes at the front of buf that the last call handed out
	base    int64 // what added to an index of buf, from the block at work on, gives the place in the engine's body
	scanned int   // next byte to look at
	line    int   // first byte of the current line
	begun   bool  // a byte order mark is behind us, or there is none
	skipLF  bool  // the last line ended with CR: a LF that follows is part of that end
	dropLF  bool  // and that end was removed

	block    int  // first byte of the event at work, -1 for none
	through  bool // the current line passes before its end is known
	skip     bool // the rest of the block passes
	comments bool // comments stand before the event in its block
	lines    int  // data lines
	from, to int  // the payload of the first
	joined   []byte

	finish int // index of the last brace of a finish event that is not passed yet, -1 for none
	judge  usageJudge
}

// NewUsageFilter makes a filter at the start of a body.
func NewUsageFilter() *UsageFilter { return &UsageFilter{block: -1, finish: -1} }

// Notes tell what the filter removed, moved and could not remove.
func (u *UsageFilter) Notes() []exchange.Intervention { return u.judge.notes() }

// Feed takes the body bytes of one read and returns those that the client gets now, which may be none.
func (u *UsageFilter) Feed(data []byte) []byte {
	u.shift()
	u.buf = append(u.buf, data...)
	u.scan()
	u.partial()
	return u.hand(u.safe())
}

// End returns what is held back when the body has ended; whole says that it ended properly. An event of usage that only
// lacks its blank line is then removed too: some readers take it for one.
func (u *UsageFilter) End(whole bool) []byte {
	u.shift()
	if whole && u.line < len(u.buf) && !u.through && !u.skip {
		u.field(u.buf[u.line:])
	}
	if whole && u.block >= 0 {
		u.line = len(u.buf) // where the blank line would be
		u.endBlock(len(u.buf))
	}
	return u.hand(len(u.buf))
}

// hand gives out the first n bytes.
func (u *UsageFilter) hand(n int) []byte {
	u.passed = n
	u.line, u.scanned = max(u.line, n), max(u.scanned, n)
	return u.buf[:n]
}

// shift drops what was handed out.
func (u *UsageFilter) shift() {
	n := u.passed
	if n == 0 {
		return
	}
	u.buf = u.buf[:copy(u.buf, u.buf[n:])]
	if len(u.buf) == 0 && cap(u.buf) > 2*maxHeld {
		u.buf = nil
	}
	u.move(-n)
	u.base += int64(n)
	u.finish = max(u.finish-n, -1)
	u.passed = 0
}

// move adds n to every place in the block at work.
func (u *UsageFilter) move(n int) {
	u.scanned += n
	u.line += n
	u.from += n
	u.to += n
	if u.block >= 0 {
		u.block += n
	}
}

// scan reads all lines that are complete.
func (u *UsageFilter) scan() {
	if !u.begun && !u.begin() {
		return
	}
	for {
		if u.skipLF && u.line < len(u.buf) {
			u.lineFeed()
		}
		for u.scanned < len(u.buf) && u.buf[u.scanned] != '\n' && u.buf[u.scanned] != '\r' {
			u.scanned++
		}
		if u.scanned == len(u.buf) {
			return
		}
		u.endLine(u.scanned)
	}
}

// begin steps over a byte order mark. It reports whether it is known that there is one, or none.
func (u *UsageFilter) begin() bool {
	switch {
	case bytes.HasPrefix(u.buf, bom):
		u.line, u.scanned = len(bom), len(bom)
	case bytes.HasPrefix(bom, u.buf):
		return false
	}
	u.begun = true
	return true
}

// lineFeed handles the byte behind a CR that was the last byte of a read.
func (u *UsageFilter) lineFeed() {
	if u.buf[u.line] == '\n' {
		if u.dropLF {
			u.buf = slices.Delete(u.buf, u.line, u.line+1)
			u.base++
			u.judge.alsoRemoved(1)
		} else {
			u.line++
		}
		u.scanned = u.line
	}
	u.skipLF, u.dropLF = false, false
}

// endLine reads the line whose end is at i.
func (u *UsageFilter) endLine(i int) {
	next := i + 1
	if u.buf[i] == '\r' {
		if u.skipLF = next == len(u.buf); !u.skipLF && u.buf[next] == '\n' {
			next++
		}
	}
	switch {
	case u.through:
		u.through = false
	case i == u.line:
		next = u.endBlock(next)
	case !u.skip:
		u.field(u.buf[u.line:i])
	}
	u.line, u.scanned = next, next
}

// field reads a line that is not blank.
func (u *UsageFilter) field(line []byte) {
	name, _, colon := bytes.Cut(line, []byte{':'})
	switch string(name) {
	case "data":
		u.open()
		from := u.line + len(name)
		if colon {
			from, _ = value(u.buf, from+1, u.line+len(line))
		}
		u.data(from, u.line+len(line))
	case "event", "id":
		u.open()
	case "":
		if u.block >= 0 {
			u.release()
		}
		u.comments = true
	default:
		u.release()
	}
}

// open begins the event at the current line, unless it has begun.
func (u *UsageFilter) open() {
	if u.block < 0 {
		u.block = u.line
	}
}

// data adds a data line.
func (u *UsageFilter) data(from, to int) {
	if u.lines++; u.lines == 1 {
		u.from, u.to = from, to
		return
	}
	if u.lines == 2 {
		u.joined = append(u.joined[:0], u.buf[u.from:u.to]...)
	}
	u.joined = append(append(u.joined, '\n'), u.buf[from:to]...)
}

// release lets the block pass that is at work: it is no plain event.
func (u *UsageFilter) release() { u.block, u.skip = -1, true }

// endBlock ends the block whose blank line ends before next, and gives back where that is now.
func (u *UsageFilter) endBlock(next int) int {
	if u.block >= 0 && u.lines > 0 {
		payload := u.buf[u.from:u.to]
		if u.lines > 1 {
			payload = u.joined
		}
		v := u.judge.read(payload)
		if v.remove {
			next += u.remove(next, v.timings)
		} else if v.finish {
			u.finish = -1
			if end := bytes.TrimRight(payload, " \t"); u.lines == 1 && len(end) > 0 {
				u.finish = u.from + len(end) - 1
			}
		}
	}
	u.block, u.lines, u.skip, u.comments = -1, 0, false, false
	return next
}

// remove takes the block at work out, up to next; comments before it stay, and with them the blank line. timings, which
// llama.cpp puts into the finish event when it is not asked for usage, go back there. It gives back how much less, or
// more, there is now before what follows.
func (u *UsageFilter) remove(next int, timings []byte) int {
	to := next
	if u.comments {
		to = min(u.line, next)
	}
	u.dropLF = u.skipLF && !u.comments
	back := []byte(nil)
	switch {
	case timings != nil && u.finish >= 0:
		back = append([]byte(`,"timings":`), timings...)
	case timings != nil:
		u.judge.lose("timings")
	}
	u.judge.removed(u.base+int64(u.block), int64(to-u.block), back != nil)
	n := len(back) - (to - u.block)
	u.buf = slices.Delete(u.buf, u.block, to)
	if back != nil {
		u.buf = slices.Insert(u.buf, u.finish, back...)
		u.finish = -1
	}
	u.base -= int64(n)
	return n
}

// partial looks at the line that has not ended, whether it can pass.
func (u *UsageFilter) partial() {
	if !u.begun || u.line == len(u.buf) || u.through || u.block >= 0 {
		return
	}
	rest := u.buf[u.line:]
	switch {
	case u.skip:
		u.through = true
	case rest[0] == ':':
		u.through, u.comments = true, true
	case !mayBeField(rest):
		u.through, u.skip = true, true
	}
}

// mayBeField reports whether a line that begins like this can be a field of an event of usage.
func mayBeField(start []byte) bool {
	for _, name := range [...]string{"data", "event", "id"} {
		n := min(len(start), len(name))
		if string(start[:n]) == name[:n] && (n == len(start) || start[n] == ':') {
			return true
		}
	}
	return false
}

// safe is how many bytes can be passed on.
func (u *UsageFilter) safe() int {
	hold := len(u.buf)
	switch {
	case u.block >= 0:
		hold = u.block
	case !u.begun:
		hold = 0
	case !u.through:
		hold = u.line
	}
	if len(u.buf)-hold > maxHeld {
		u.release()
		u.through = u.line < len(u.buf)
		hold = len(u.buf)
	}
	return hold
}
