package build

import (
	"bytes"
	"encoding/json"
	"strings"
)

// readFields reads a JSON object as other harnesses write it: NaN and Infinity, which Python's writer leaves bare, are null.
func readFields(data []byte) (f fields, err error) {
	if err = json.Unmarshal(data, &f); err == nil {
		return f, nil
	}
	again := withoutNaN(data)
	if again == nil {
		return nil, err
	}
	f = nil
	return f, json.Unmarshal(again, &f)
}

// withoutNaN is data with null for the bare words that are numbers to other languages; nil when it has none of them.
func withoutNaN(data []byte) []byte {
	var out []byte
	text, done := false, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		default:
			if n := bareWord(data[i:]); n > 0 {
				out = append(append(out, data[done:i]...), "null"...)
				done = i + n
				i = done - 1
			}
		}
	}
	if out == nil {
		return nil
	}
	return append(out, data[done:]...)
}

// bareWord is the length of the word at the start of data that is no number of JSON; 0 when it is another.
func bareWord(data []byte) int {
	for _, w := range [...]string{"NaN", "-NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(data, []byte(w)) {
			return len(w)
		}
	}
	return 0
}

// drafter is what drafts for the cell, without its directory: as the file says, else as the engine was told.
func (f fields) drafter() string {
	name := f.first("drafter", "draft_model")
	var command []string
	if name == "" && json.Unmarshal(f["command"], &command) == nil {
		for i, word := range command {
			switch word {
			case "--draft-model", "--spec-draft-model", "--model-draft", "-md":
				if i+1 < len(command) {
					name = command[i+1]
				}
			}
		}
	}
	return name[strings.LastIndexAny(name, `/\`)+1:]
}
