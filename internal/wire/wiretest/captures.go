package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Capture is one exchange taken from a real engine.
type Capture struct {
	Server string // llama-server or ollama
	Name   string
	Facts  Facts

	Method, Path   string
	RequestHeaders []exchange.Header // in order
	RequestBody    []byte            // compact JSON, or the malformed text that was sent; nil when there was none

	Raw     []byte // the response as it came off the socket
	Head    []byte // status line and header block with its blank line; nil when nothing came
	Status  int
	Headers []exchange.Header
	Chunked bool
	Body    []byte // after de-chunking
	Whole   bool   // the body came to the end that its framing announced
	Recvs   []Recv // every receive call
	HeadAt  int64  // ns from sending the request to the receive that completed the head
	Reads   []exchange.Read
	TotalNS int64 // ns from sending the request to the end of the exchange
}

// Recv is one receive call.
type Recv struct {
	At     int64 // ns since the request was sent
	Offset int   // first byte, in Raw
	Size   int
}

// Facts are what the index of the captures says about one of them; -1 stands for a count that does not apply.
type Facts struct {
	Status      string // status line without the version
	ContentType string
	Bytes       int
	Recvs       int
	Chunks      int // chunks of the transfer coding that carry data
	DataLines   int // SSE data lines
	End         string
	Note        string
}

// ID is server and name.
func (c Capture) ID() string { return c.Server + "/" + c.Name }

// Exchange is the capture as the proxy would have sealed it, stamped by the receive calls.
func (c Capture) Exchange() *exchange.Exchange {
	x := &exchange.Exchange{
		Request:  exchange.Request{Method: c.Method, Target: c.Path, Proto: "HTTP/1.1", Headers: c.RequestHeaders, Body: exchange.NewBody(c.RequestBody)},
		Response: exchange.Response{Status: c.Status, Proto: "HTTP/1.1", Head: c.Head, Headers: c.Headers, Body: exchange.NewBody(c.Body)},
		End:      exchange.EndEOF,
		State:    exchange.StateStored,
	}
	if !c.Whole {
		x.End = exchange.EndShort
	}
	if c.Facts.End == "client-abort" {
		x.End = exchange.EndClientGone
	}
	tl := &x.Timeline
	tl.Wall, tl.Clock = time.Unix(1_700_000_000, 0).UTC(), exchange.ClockRead
	tl.Accepted, tl.RequestRead, tl.SendStart, tl.SendDone = exchange.MarkAt(0), exchange.MarkAt(0), exchange.MarkAt(0), exchange.MarkAt(0)
	tl.Reads = c.Reads
	if c.Head != nil {
		tl.HeaderRead = exchange.MarkAt(c.HeadAt)
	}
	for _, r := range c.Reads {
		if r.Size > 0 {
			tl.LastRead = exchange.MarkAt(r.At)
			if !tl.FirstRead.Happened() {
				tl.FirstRead = tl.LastRead
			}
		}
	}
	tl.BodyEnd, tl.ClientDone = exchange.MarkAt(c.TotalNS), exchange.MarkAt(c.TotalNS)
	return x
}

const captureDir = "testdata/captures"

// Captures are all captures, in the order of their index.
func Captures(tb testing.TB) []Capture {
	tb.Helper()
	rows := captureRows(tb)
	var out []Capture
	for _, server := range []string{"llama-server", "ollama"} {
		names := map[string]bool{}
		for _, f := range list(tb, captureDir+"/"+server) {
			name, _, _ := strings.Cut(f, ".")
			names[name] = true
		}
		for _, r := range rows {
			if r.server != server || !names[r.name] { // the index names a few that are not kept
				continue
			}
			delete(names, r.name)
			c, err := loadCapture(tb, r)
			if err != nil {
				tb.Fatalf("load capture %s/%s: %v", server, r.name, err)
			}
			out = append(out, c)
		}
		for name := range names {
			tb.Fatalf("capture %s/%s is not in the index", server, name)
		}
	}
	if len(out) == 0 {
		tb.Fatal("there are no captures: nothing would be tested")
	}
	return out
}

// LoadCapture is one capture by its ID, such as "llama-server/chat-stream-200".
func LoadCapture(tb testing.TB, id string) Capture {
	tb.Helper()
	for _, r := range captureRows(tb) {
		if r.server+"/"+r.name != id {
			continue
		}
		c, err := loadCapture(tb, r)
		if err != nil {
			tb.Fatalf("load capture %s: %v", id, err)
		}
		return c
	}
	tb.Fatalf("there is no capture %s", id)
	return Capture{}
}

type row struct {
	server, name string
	facts        Facts
}

// captureRows reads the tables of the index.
func captureRows(tb testing.TB) []row {
	tb.Helper()
	server := ""
	var out []row
	for line := range strings.SplitSeq(string(read(tb, captureDir, "index.md")), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			server = "llama-server"
			if strings.HasPrefix(title, "Ollama") {
				server = "ollama"
			}
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 10 || strings.TrimSpace(cells[0]) == "case" {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, row{server, cells[0], Facts{
			Status: cells[2], ContentType: cells[3], Bytes: cell(tb, cells[4]), Recvs: cell(tb, cells[5]),
			Chunks: cell(tb, cells[6]), DataLines: cell(tb, cells[7]), End: cells[8], Note: cells[9],
		}})
	}
	return out
}

func cell(tb testing.TB, s string) int {
	tb.Helper()
	if s == "-" {
		return -1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		tb.Fatalf("read index of captures: %v", err)
	}
	return n
}

func loadCapture(tb testing.TB, r row) (Capture, error) {
	tb.Helper()
	c := Capture{Server: r.server, Name: r.name, Facts: r.facts}
	dir := captureDir + "/" + r.server
	c.Raw = read(tb, dir, r.name+".response.txt")
	if err := c.parseRequest(read(tb, dir, r.name+".request.json")); err != nil {
		return c, fmt.Errorf("read request: %w", err)
	}
	if err := c.parseRecvs(string(read(tb, dir, r.name+".chunks.tsv"))); err != nil {
		return c, fmt.Errorf("read receive calls: %w", err)
	}
	if len(c.Raw) == 0 {
		return c, nil
	}
	if err := c.parseResponse(); err != nil {
		return c, fmt.Errorf("read response: %w", err)
	}
	return c, nil
}

func (c *Capture) parseRequest(b []byte) error {
	var in struct {
		Method  string          `json:"method"`
		Path    string          `json:"path"`
		Headers json.RawMessage `json:"headers"`
		Body    json.RawMessage `json:"body"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return err
	}
	c.Method, c.Path = in.Method, in.Path
	d = json.NewDecoder(bytes.NewReader(in.Headers))
	for name := ""; ; {
		tok, err := d.Token()
		if err != nil {
			break
		}
		s, ok := tok.(string)
		switch {
		case !ok:
		case name == "":
			name = s
		default:
			c.RequestHeaders = append(c.RequestHeaders, exchange.Header{Name: name, Value: s})
			name = ""
		}
	}
	var raw struct {
		Raw string `json:"_raw"`
	}
	if json.Unmarshal(in.Body, &raw) == nil && raw.Raw != "" {
		c.RequestBody = []byte(raw.Raw)
		return nil
	}
	if string(in.Body) == "null" {
		return nil
	}
	var body bytes.Buffer
	err := json.Compact(&body, in.Body)
	c.RequestBody = body.Bytes()
	return err
}

func (c *Capture) parseRecvs(tsv string) error {
	for line := range strings.Lines(tsv) {
		line = strings.TrimSpace(line)
		if _, total, ok := strings.Cut(line, "total_us="); ok {
			us, err := strconv.ParseInt(total, 10, 64)
			if err != nil {
				return err
			}
			c.TotalNS = us * 1000
			continue
		}
		var i, us, size, offset int
		if _, err := fmt.Sscanf(line, "%d\t%d\t%d\t%d", &i, &us, &size, &offset); err != nil {
			return fmt.Errorf("line %q: %w", line, err)
		}
		if i != len(c.Recvs) {
			return fmt.Errorf("receive call %d stands at place %d", i, len(c.Recvs))
		}
		c.Recvs = append(c.Recvs, Recv{At: int64(us) * 1000, Offset: offset, Size: size})
	}
	return nil
}

func (c *Capture) parseResponse() error {
	end := bytes.Index(c.Raw, []byte("\r\n\r\n"))
	if end < 0 {
		return fmt.Errorf("no end of the head in %d bytes", len(c.Raw))
	}
	c.Head = c.Raw[:end+4]
	lines := strings.Split(string(c.Raw[:end]), "\r\n")
	if _, err := fmt.Sscanf(lines[0], "HTTP/1.1 %d", &c.Status); err != nil {
		return fmt.Errorf("status line %q: %w", lines[0], err)
	}
	length := -1
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		c.Headers = append(c.Headers, exchange.Header{Name: name, Value: strings.TrimSpace(value)})
		switch strings.ToLower(name) {
		case "transfer-encoding":
			c.Chunked = true
		case "content-length":
			var err error
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	spans, whole, err := c.bodySpans(length)
	c.Whole = whole
	if err != nil {
		return err
	}
	for _, s := range spans {
		c.Body = append(c.Body, c.Raw[s.from:s.to]...)
	}
	c.cutReads(spans)
	return nil
}

// span is a run of body bytes in Raw.
type span struct{ from, to int }

// bodySpans finds the body bytes after the head; whole says that the announced end was reached.
func (c *Capture) bodySpans(length int) (spans []span, whole bool, err error) {
	at := len(c.Head)
	if !c.Chunked {
		whole = c.Method == "HEAD" || len(c.Raw)-at == length || length < 0
		return []span{{at, len(c.Raw)}}, whole, nil
	}
	for {
		eol := bytes.Index(c.Raw[at:], []byte("\r\n"))
		if eol < 0 {
			return spans, false, nil
		}
		size, err := strconv.ParseInt(string(c.Raw[at:at+eol]), 16, 32)
		if err != nil {
			return nil, false, fmt.Errorf("chunk size at %d: %w", at, err)
		}
		at += eol + 2
		if size == 0 {
			return spans, true, nil
		}
		to := min(at+int(size), len(c.Raw))
		spans = append(spans, span{at, to})
		if at = to + 2; at > len(c.Raw) {
			return spans, false, nil
		}
	}
}

// cutReads counts the body bytes of each receive call after the head.
func (c *Capture) cutReads(spans []span) {
	for _, r := range c.Recvs {
		end := r.Offset + r.Size
		if r.Offset < len(c.Head) && end >= len(c.Head) {
			c.HeadAt = r.At
		}
		if end <= len(c.Head) {
			continue
		}
		read := exchange.Read{At: r.At}
		first, _ := slices.BinarySearchFunc(spans, r.Offset, func(s span, off int) int { return s.to - off })
		for _, s := range spans[min(first, len(spans)):] {
			if s.from >= end {
				break
			}
			read.Size += max(0, min(s.to, end)-max(s.from, r.Offset))
		}
		c.Reads = append(c.Reads, read)
	}
}
