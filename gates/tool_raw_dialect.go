package gates

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// callsOnWire are the calls of an answer as a plain client of its dialect joins them from the bytes. Where a call comes in
// one piece there is nothing to join, and the calls as read stand for them.
func callsOnWire(t Turn, a *Asked, calls []wire.ToolCall) ([]rawCall, error) {
	streamed := t.Transcript.Framing == wire.FramingSSE
	switch {
	case a.Dialect == wire.DialectChat:
		return rawCalls(t)
	case streamed && a.Dialect == wire.DialectAnthropic:
		return joinedBlocks(t)
	case streamed && a.Dialect == wire.DialectResponses:
		return joinedItems(t)
	}
	var out []rawCall
	for _, c := range calls {
		out = append(out, rawCall{id: c.ID, kind: c.Type, name: c.Name, args: c.Arguments})
	}
	return out, nil
}

// joinedBlocks are the blocks of the type tool_use of a stream of Messages.
func joinedBlocks(t Turn) ([]rawCall, error) {
	datas, err := t.datas()
	if err != nil {
		return nil, err
	}
	var order []int
	byIndex := map[int]*joining{}
	for _, data := range datas {
		var e struct {
			Type  string
			Index int
			Block struct{ Type, ID, Name string } `json:"content_block"`
			Delta struct {
				Part string `json:"partial_json"`
			}
		}
		if json.Unmarshal(data, &e) != nil {
			continue
		}
		switch {
		case e.Type == "content_block_start" && e.Block.Type == "tool_use":
			j := &joining{kind: e.Block.Type}
			j.id.WriteString(e.Block.ID)
			j.name.WriteString(e.Block.Name)
			byIndex[e.Index] = j
			order = append(order, e.Index)
		case e.Type == "content_block_delta" && byIndex[e.Index] != nil:
			byIndex[e.Index].args.WriteString(e.Delta.Part)
		}
	}
	return inOrder(order, byIndex), nil
}

// joinedItems are the function calls of a stream of Responses: what the deltas add up to, and where the item that is done
// says something else, that.
func joinedItems(t Turn) ([]rawCall, error) {
	datas, err := t.datas()
	if err != nil {
		return nil, err
	}
	var order []int
	byIndex := map[int]*joining{}
	for _, data := range datas {
		var e struct {
			Type  string
			Index int `json:"output_index"`
			Delta json.RawMessage
			Item  struct {
				Type, Name, Arguments string
				ID                    string `json:"call_id"`
			}
		}
		if json.Unmarshal(data, &e) != nil {
			continue
		}
		j := byIndex[e.Index]
		switch {
		case e.Item.Type == "function_call" && (e.Type == "response.output_item.added" || e.Type == "response.output_item.done"):
			done := &joining{kind: e.Item.Type}
			done.id.WriteString(e.Item.ID)
			done.name.WriteString(e.Item.Name)
			if e.Type == "response.output_item.done" {
				done.args.WriteString(e.Item.Arguments)
			}
			if byIndex[e.Index] = done; j == nil {
				order = append(order, e.Index)
			}
		case e.Type == "response.function_call_arguments.delta" && j != nil:
			var piece string
			if json.Unmarshal(e.Delta, &piece) == nil {
				j.args.WriteString(piece)
			}
		}
	}
	return inOrder(order, byIndex), nil
}

// inOrder are joined calls in the order in which they began.
func inOrder(order []int, byIndex map[int]*joining) (out []rawCall) {
	for _, i := range order {
		c := byIndex[i].call()
		if c.args == "" && c.kind == "tool_use" { // a block that no delta filled is the empty object it was opened with
			c.args = "{}"
		}
		out = append(out, c)
	}
	return out
}
