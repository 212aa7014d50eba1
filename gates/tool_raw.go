package gates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// rawCall is a tool call of chat completions as a plain client joins it from the wire: fragments by their index, ids,
// names and arguments appended.
type rawCall struct {
	id, kind, name, args string
	notText              bool // the arguments are no string
}

// rawFragment is a tool call, or a piece of one.
type rawFragment struct {
	Index    int     `json:"index"`
	ID       *string `json:"id"`
	Type     *string `json:"type"`
	Function struct {
		Name      *string         `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// rawChoice is a choice of a message or of a chunk.
type rawChoice struct {
	Index   int `json:"index"`
	Message struct {
		ToolCalls []rawFragment `json:"tool_calls"`
	} `json:"message"`
	Delta struct {
		ToolCalls []rawFragment `json:"tool_calls"`
	} `json:"delta"`
}

// errRaw says that the bytes cannot be read a second time.
var errRaw = errors.New("the calls cannot be read from the wire")

// rawCalls are the calls of choice 0 as a plain client would join them, in the order of their indexes. They are read from
// the bytes once more, past all the forbearance of our own reader.
func rawCalls(t Turn) ([]rawCall, error) {
	datas, err := t.datas()
	if err != nil {
		return nil, err
	}
	return joinCalls(datas)
}

// datas are the documents of the answer, one an event of a stream.
func (t Turn) datas() (datas [][]byte, err error) {
	if t.Transcript.Coding != "" {
		return nil, fmt.Errorf("%w: the body is coded (%s)", errRaw, t.Transcript.Coding)
	}
	body := t.Response.Body.Bytes()
	if t.Transcript.Framing != wire.FramingSSE {
		return [][]byte{body}, nil
	}
	for _, ev := range t.Transcript.Events {
		if ev.End <= int64(len(body)) && !ev.Done {
			datas = append(datas, eventData(body[ev.Start:ev.End]))
		}
	}
	return datas, nil
}

// eventData is the data of one server-sent event.
func eventData(event []byte) []byte {
	event = bytes.ReplaceAll(bytes.ReplaceAll(event, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	var out [][]byte
	for line := range bytes.SplitSeq(event, []byte("\n")) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			out = append(out, bytes.TrimPrefix(data, []byte(" ")))
		}
	}
	return bytes.Join(out, []byte("\n"))
}

// joinCalls joins the fragments of JSON documents. What is no document of a chat is passed over.
func joinCalls(docs [][]byte) ([]rawCall, error) {
	byIndex, top := map[int]*joining{}, -1
	for _, doc := range docs {
		var chunk struct {
			Choices []rawChoice `json:"choices"`
		}
		if !bytes.Contains(doc, []byte("tool_calls")) || json.Unmarshal(doc, &chunk) != nil {
			continue
		}
		for _, c := range chunk.Choices {
			if c.Index != 0 {
				continue
			}
			for _, f := range c.Delta.ToolCalls {
				if f.Index < 0 || f.Index > maxCalls {
					return nil, fmt.Errorf("%w: a fragment has the index %d", errRaw, f.Index)
				}
				if byIndex[f.Index] == nil {
					byIndex[f.Index] = &joining{}
				}
				byIndex[f.Index].add(f)
				top = max(top, f.Index)
			}
			for _, f := range c.Message.ToolCalls {
				top++
				byIndex[top] = &joining{}
				byIndex[top].add(f)
			}
		}
	}
	var out []rawCall
	for i := range top + 1 {
		if byIndex[i] != nil {
			out = append(out, byIndex[i].call())
		}
	}
	return out, nil
}

// maxCalls bounds the index of a call.
const maxCalls = 1 << 12

// joining is a call whose fragments are being joined.
type joining struct {
	id, name, args strings.Builder
	kind           string
	notText        bool
}

func (j *joining) call() rawCall {
	return rawCall{id: j.id.String(), kind: j.kind, name: j.name.String(), args: j.args.String(), notText: j.notText}
}

// add joins a fragment to its call.
func (j *joining) add(f rawFragment) {
	if f.ID != nil {
		j.id.WriteString(*f.ID)
	}
	if f.Function.Name != nil {
		j.name.WriteString(*f.Function.Name)
	}
	if f.Type != nil {
		j.kind = *f.Type
	}
	var text string
	switch args := f.Function.Arguments; {
	case len(args) == 0 || string(args) == "null":
	case json.Unmarshal(args, &text) == nil:
		j.args.WriteString(text)
	default:
		j.notText = true
		j.args.Write(args)
	}
}

// fragmentFault says how the fragments on the wire differ from the calls of the answer; "" when they do not.
func fragmentFault(raw []rawCall, calls []wire.ToolCall) string {
	if len(raw) != len(calls) {
		return fmt.Sprintf("the fragments on the wire join to %d calls, the answer has %d", len(raw), len(calls))
	}
	for i, c := range calls {
		for _, part := range []struct{ name, raw, call string }{
			{"id", raw[i].id, c.ID}, {"type", raw[i].kind, c.Type}, {"name", raw[i].name, c.Name}, {"arguments", raw[i].args, c.Arguments},
		} {
			if part.raw != part.call {
				return fmt.Sprintf("call %d: the fragments on the wire join to the %s %s, the answer has %s", i+1, part.name, excerpt(part.raw), excerpt(part.call))
			}
		}
	}
	return ""
}
