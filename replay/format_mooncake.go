package replay

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Mooncake traces: one object a line with the instant of arrival, the lengths, and the names of the blocks of the
// prompt. A name stands for a block and all before it: two prompts that have a name in common begin alike up to there.

// mooncakeLine is one request.
type mooncakeLine struct {
	Timestamp json.RawMessage `json:"timestamp"`
	Input     int64           `json:"input_length"`
	Output    int64           `json:"output_length"`
	Blocks    []uint64        `json:"hash_ids"`
}

type mooncakeReader struct {
	*tracer
	unit time.Duration
}

func newMooncakeReader(l *lineReader, o *TraceOptions) (reader, error) {
	t, err := newTracer(l, o)
	if err != nil {
		return nil, err
	}
	unit, err := o.unit(FormatMooncake)
	return &mooncakeReader{t, unit}, err
}

func (r *mooncakeReader) next() (*entry, error) {
	line, err := r.lines.next()
	if err != nil {
		return nil, err
	}
	var m mooncakeLine
	if err := r.lines.decode(line, &m); err != nil {
		return nil, err
	}
	if err := r.lengths("input_length", "output_length", m.Input, m.Output); err != nil {
		return nil, err
	}
	at, err := r.instant("timestamp", string(m.Timestamp), r.unit)
	if err != nil {
		return nil, err
	}
	size := int64(r.o.block())
	if n := int64(len(m.Blocks)); n > 0 && n != m.Input/size && n != (m.Input+size-1)/size {
		return nil, r.lines.bad("hash_ids", fmt.Sprintf("%d blocks", n),
			fmt.Sprintf("%d tokens have %d blocks of %d; is the block size another?", m.Input, (m.Input+size-1)/size, size))
	}
	return r.entry(&traced{id: fmt.Sprintf("line-%d", r.lines.n), at: at, prompt: m.Input, output: m.Output, blocks: m.Blocks})
}

// mooncakeWriter writes the lengths, arrivals and shared prefixes of recorded requests, and nothing of what they say.
type mooncakeWriter struct {
	w      io.Writer
	report *ExportReport
	names  map[digest]uint64 // of a prefix -> name of the block that ends it
}

func newMooncakeWriter(w io.Writer, r *ExportReport) *mooncakeWriter {
	return &mooncakeWriter{w: w, report: r, names: map[digest]uint64{}}
}

func (w *mooncakeWriter) begin(*picked) error { return nil }

// add writes a line for an exchange with an instant whose engine told the lengths; others have no place here.
func (w *mooncakeWriter) add(rec *outgoing) error {
	input, output, ok := rec.lengthsOf()
	if !ok {
		return errSkip
	}
	b, err := json.Marshal(struct {
		Timestamp int64    `json:"timestamp"`
		Input     int64    `json:"input_length"`
		Output    int64    `json:"output_length"`
		Blocks    []uint64 `json:"hash_ids"`
	}{rec.Item.At.Milliseconds(), input, output, w.blocks(rec.Item.Body, input)})
	if err != nil {
		return err
	}
	_, err = w.w.Write(append(b, '\n'))
	return err
}

func (w *mooncakeWriter) end() error {
	w.report.Notes = append(w.report.Notes,
		"timestamps are milliseconds; blocks are of 512 tokens, cut every 2048 bytes of text: which prompts share a prefix is known, how many tokens of it only about")
	w.report.lengthsUntold()
	return nil
}

// digest is of the beginning of a prompt.
type digest [sha256.Size]byte

// bytesPerBlock is where prompts are cut: four bytes a token is what English text comes to.
const bytesPerBlock = 4 * defaultBlock

// blocks names the prefixes of a prompt, as many as its tokens fill blocks. The text is cut at fixed places, so that
// prompts which begin alike are cut alike; what is behind the last place belongs to the last block.
func (w *mooncakeWriter) blocks(body []byte, tokens int64) []uint64 {
	names := []uint64{}
	text := promptText(body)
	n := int((tokens + defaultBlock - 1) / defaultBlock)
	var sum digest
	for i := range n {
		from := min(i*bytesPerBlock, len(text))
		to := min(from+bytesPerBlock, len(text))
		if i == n-1 {
			to = len(text)
		}
		sum = sha256.Sum256(append(sum[:], text[from:to]...))
		name, ok := w.names[sum]
		if !ok {
			name = uint64(len(w.names))
			w.names[sum] = name
		}
		names = append(names, name)
	}
	return names
}

// promptText is what a request says, in the order in which chat templates put it: the system's word, tools, messages.
func promptText(body []byte) []byte {
	var request struct{ System, Instructions, Tools, Prompt json.RawMessage }
	if json.Unmarshal(body, &request) != nil {
		return body
	}
	var text []byte
	for _, part := range []json.RawMessage{request.System, request.Instructions, request.Tools, request.Prompt} {
		text = append(text, part...)
	}
	for _, m := range messagesOf(body) {
		text = append(text, m.form...)
	}
	if len(text) == 0 {
		return body
	}
	return text
}
