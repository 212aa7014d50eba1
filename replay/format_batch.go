package replay

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// OpenAI batch files: one request a line, with the name the user gave it and without an instant.

// batchLine is one request.
type batchLine struct {
	ID     string          `json:"custom_id"`
	Method string          `json:"method"`
	URL    string          `json:"url"`
	Body   json.RawMessage `json:"body"`
}

type batchReader struct {
	lines *lineReader
}

func newBatchReader(l *lineReader) *batchReader { return &batchReader{l} }

func (r *batchReader) about() *fileInfo { return &fileInfo{} }

func (r *batchReader) next() (*entry, error) {
	line, err := r.lines.next()
	if err != nil {
		return nil, err
	}
	var l batchLine
	if err := r.lines.decode(line, &l); err != nil {
		return nil, err
	}
	if field, value, why := requestProblem(l.Method, l.URL, nil); why != "" {
		if field == "path" {
			field = "url"
		}
		return nil, r.lines.bad(field, value, why)
	}
	switch {
	case l.ID == "":
		return nil, r.lines.bad("custom_id", "", "is missing")
	case l.Method != "POST":
		return nil, r.lines.bad("method", l.Method, "want POST")
	case len(l.Body) == 0 || l.Body[0] != '{':
		return nil, r.lines.bad("body", string(l.Body), "want an object")
	}
	it := Item{
		ID: l.ID, Conversation: l.ID, At: AtUnknown, Method: l.Method, Target: l.URL,
		Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}, Body: l.Body,
	}
	it.identify(l.Body)
	return &entry{Item: it}, nil
}
