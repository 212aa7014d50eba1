package sim

import (
	"bytes"
	"strings"
)

// bodyCounter counts the body bytes in the wire bytes of one response as they go by. Bytes that follow no rule count
// as body, since a client that stops at them has seen them as such or not at all.
type bodyCounter struct {
	state countState
	line  []byte // the unfinished head or size line
	left  int    // of the running chunk
	total int
}

type countState uint8

const (
	inHead countState = iota
	inBody
	inSize
	inChunk
	inChunkEnd
	afterBody
)

// feed takes the next wire bytes and gives the number of body bytes so far.
func (b *bodyCounter) feed(data []byte) int {
	for len(data) > 0 {
		switch b.state {
		case inBody:
			b.total += len(data)
			return b.total
		case afterBody:
			return b.total
		case inChunk:
			n := min(b.left, len(data))
			b.total += n
			b.left -= n
			data = data[n:]
			if b.left == 0 {
				b.state = inChunkEnd
			}
		default:
			data = b.feedLine(data)
		}
	}
	return b.total
}

// feedLine takes bytes up to the end of the line, and acts on it once it is whole.
func (b *bodyCounter) feedLine(data []byte) []byte {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		b.line = append(b.line, data...)
		return nil
	}
	b.line = append(b.line, data[:i+1]...)
	switch b.state {
	case inHead:
		b.headLine()
	case inSize:
		n, err := chunkSize(strings.TrimSpace(string(b.line)))
		b.left, b.state = n, inChunk
		if err != nil || n == 0 {
			b.state = afterBody
		}
		b.line = nil
	case inChunkEnd:
		b.state, b.line = inSize, nil
	}
	return data[i+1:]
}

// headLine ends the head at its blank line. The head collects in line, so that its first line can be looked at.
func (b *bodyCounter) headLine() {
	if !bytes.HasSuffix(b.line, []byte("\r\n\r\n")) && !bytes.HasSuffix(b.line, []byte("\n\n")) {
		return
	}
	head := strings.ToLower(string(b.line))
	b.line = nil
	switch {
	case strings.HasPrefix(head, "http/1.1 1"):
		return // a 1xx head: the next head follows
	case strings.Contains(head, "\ntransfer-encoding: chunked"):
		b.state = inSize
	default:
		b.state = inBody
	}
}
