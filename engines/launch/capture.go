package launch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/redact"
)

// Bounds of what is held of an engine's output in memory.
const (
	tailKept    = 64 << 10 // its end
	queueKept   = 4 << 20  // what waits to be written
	longestLine = 64 << 10 // longer ones are cut in pieces
)

// drainTime is how long the rest of the output may take after the engine has ended.
const drainTime = time.Second

// capture takes the output of an engine. One goroutine does nothing but read, so that the engine never waits for a disk;
// another one masks, looks and writes.
type capture struct {
	r, w *os.File
	out  *boundedFile // nil: nothing is written
	see  func(line string)
	page []byte // what the next write takes

	mu      sync.Mutex
	end     []byte // of the output, as it came
	queue   [][]byte
	queued  int
	dropped int64
	gap     int64 // what was dropped before the first that is queued
	closed  bool
	more    chan struct{} // something is queued, or nothing comes any more
	wg      sync.WaitGroup
}

// newCapture opens the log and writes the command into its first line.
func newCapture(s Spec, command string) (*capture, error) {
	c := &capture{more: make(chan struct{}, 1)}
	var err error
	if c.r, c.w, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("open pipe for output: %w", err)
	}
	if s.LogFile == "" || s.LogFile == os.DevNull {
		return c, nil
	}
	if c.out, err = createBounded(s.LogFile, s.LogMax); err == nil {
		err = c.out.write([]byte("CMD: " + command + "\n"))
	}
	if err != nil {
		_, _ = c.r.Close(), c.w.Close()
		return nil, fmt.Errorf("write log %s: %w", s.LogFile, err)
	}
	return c, nil
}

// input is where the engine writes.
func (c *capture) input() *os.File { return c.w }

// closeInput leaves the writing end to the engine alone.
func (c *capture) closeInput() { _ = c.w.Close() }

// start begins to read. Each line is shown to see.
func (c *capture) start(see func(line string)) {
	c.see = see
	c.wg.Go(c.read)
	c.wg.Go(c.write)
}

func (c *capture) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.r.Read(buf)
		c.take(buf[:n])
		if err != nil {
			break
		}
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wake()
}

// take keeps what was read. Where there is no room, the oldest that waits is dropped: the end tells most.
func (c *capture) take(b []byte) {
	if len(b) == 0 {
		return
	}
	c.mu.Lock()
	c.end = append(c.end, b...)
	if over := len(c.end) - tailKept; over > tailKept { // moved seldom
		c.end = slices.Delete(c.end, 0, over)
	}
	c.queue, c.queued = append(c.queue, bytes.Clone(b)), c.queued+len(b)
	for c.queued > queueKept {
		n := len(c.queue[0])
		c.queue, c.queued, c.gap = c.queue[1:], c.queued-n, c.gap+int64(n)
	}
	c.mu.Unlock()
	c.wake()
}

func (c *capture) wake() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// write handles the output line by line until no more comes.
func (c *capture) write() {
	var line []byte
	for range c.more {
		c.mu.Lock()
		list, gap, closed := c.queue, c.gap, c.closed
		c.queue, c.queued, c.gap, c.dropped = nil, 0, 0, c.dropped+c.gap
		c.mu.Unlock()
		if gap > 0 {
			line = c.lines(fmt.Appendf(line, "\n[benchproxy: %d bytes came faster than they could be written, and are left out here]\n", gap))
		}
		for _, b := range list {
			line = c.lines(append(line, b...))
		}
		if closed && len(line) > 0 {
			c.line(line)
		}
		c.flush()
		if closed {
			return
		}
	}
}

// lines handles the whole lines of b and returns the rest.
func (c *capture) lines(b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 && len(b) < longestLine {
			return bytes.Clone(b)
		}
		if i < 0 || i >= longestLine {
			i = longestLine - 1
		}
		c.line(b[:i+1])
		b = b[i+1:]
	}
}

func (c *capture) line(b []byte) {
	text := redact.Text(string(b))
	c.see(strings.TrimRight(text, "\r\n"))
	if c.out == nil {
		return
	}
	if c.page = append(c.page, text...); len(c.page) >= c.out.page() {
		c.flush()
	}
}

// flush writes the page.
func (c *capture) flush() {
	if len(c.page) == 0 {
		return
	}
	if err := c.out.write(c.page); err != nil {
		c.mu.Lock()
		c.dropped += int64(len(c.page))
		c.mu.Unlock()
	}
	c.page = c.page[:0]
}

// tail is the end of the output in lines.
func (c *capture) tail(n int) []string {
	c.mu.Lock()
	text := string(c.end[max(0, len(c.end)-tailKept):])
	whole := len(c.end) <= tailKept
	c.mu.Unlock()
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if !whole {
		lines = lines[1:]
	}
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		lines[i] = redact.Text(strings.TrimRight(l, "\r"))
	}
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines
}

// lost is what there was no room or no disk for.
func (c *capture) lost() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

// drain waits until all that was written is handled. Somebody who still holds the writing end is not waited for.
func (c *capture) drain() {
	over := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.closed
	}
	if !poll(drainTime, over) {
		_ = c.r.Close()
	}
	c.wg.Wait()
}

// Close ends the reading and puts the log together.
func (c *capture) Close() error {
	_ = c.w.Close() // it is closed already when the engine was started
	_ = c.r.Close()
	c.wg.Wait()
	if c.out == nil {
		return nil
	}
	return c.out.Close()
}
