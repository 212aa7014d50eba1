package gates

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/wire"
)

func sprintTurn(i int) string { return fmt.Sprintf("turn %d: ", i+1) }

// declaredTool is a tool that a request declares.
type declaredTool struct {
	Name   string
	Schema json.RawMessage // of its arguments; nil when none is stated
}

// toolForm is a tool in any dialect's spelling.
type toolForm struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Parameters   json.RawMessage `json:"parameters"`
	InputSchema  json.RawMessage `json:"input_schema"`
	JSONSchema   json.RawMessage `json:"parametersJsonSchema"`
	Function     *toolForm       `json:"function"`
	Declarations []toolForm      `json:"functionDeclarations"`
	Snake        []toolForm      `json:"function_declarations"`
}

// declaredTools are the tools of a request, whatever its dialect calls them.
func declaredTools(a *Asked) []declaredTool {
	var out []declaredTool
	for _, place := range [][]string{{"tools"}, {"functions"}, {"request", "tools"}} {
		var forms []toolForm
		if json.Unmarshal(a.Field(place...), &forms) != nil {
			continue
		}
		for _, f := range forms {
			out = f.flatten(out)
		}
	}
	return out
}

// flatten adds the tools of one entry.
func (f toolForm) flatten(out []declaredTool) []declaredTool {
	for _, d := range slices.Concat(f.Declarations, f.Snake) {
		schema := d.JSONSchema
		if plain, err := fromOpenAPI(d.Parameters); schema == nil && err == nil {
			schema = plain
		}
		out = append(out, declaredTool{Name: d.Name, Schema: schema})
	}
	switch {
	case f.Declarations != nil || f.Snake != nil:
	case f.Function != nil:
		out = append(out, declaredTool{Name: f.Function.Name, Schema: f.Function.Parameters})
	case f.Name != "":
		schema := f.Parameters
		if schema == nil {
			schema = f.InputSchema
		}
		out = append(out, declaredTool{Name: f.Name, Schema: schema})
	case f.Type != "":
		out = append(out, declaredTool{Name: f.Type}) // one that the engine brings along
	}
	return out
}

// wish is what a request asks of tool calls: whether to call, what, and how many.
type wish struct {
	Force    bool   // some tool must be called
	Named    string // this one must be
	Forbid   bool   // none may be
	Parallel *bool  // several at once; nil when not said
}

// toolWish reads the wish of a request in any dialect's spelling.
func toolWish(a *Asked) wish {
	var w wish
	var parallel bool
	if v := a.Field("parallel_tool_calls"); v != nil && json.Unmarshal(v, &parallel) == nil {
		w.Parallel = &parallel
	}
	if v := a.Field("tool_choice", "disable_parallel_tool_use"); v != nil && json.Unmarshal(v, &parallel) == nil {
		parallel = !parallel
		w.Parallel = &parallel
	}
	mode := a.Word("tool_choice")
	for _, place := range [][]string{{"tool_choice", "type"}, {"toolConfig", "functionCallingConfig", "mode"}, {"tool_config", "function_calling_config", "mode"}} {
		if mode == "" {
			mode = a.Word(place...)
		}
	}
	switch mode {
	case "required", "any", "ANY":
		w.Force = true
	case "none", "NONE":
		w.Forbid = true
	case "function", "tool":
		w.Force = true
		if w.Named = a.Word("tool_choice", "function", "name"); w.Named == "" {
			w.Named = a.Word("tool_choice", "name")
		}
	}
	return w
}

// hasCallIDs reports whether calls carry ids in the dialect. Ollama's and Gemini's may come without.
func hasCallIDs(d wire.Dialect) bool {
	return d == wire.DialectChat || d == wire.DialectResponses || d == wire.DialectAnthropic
}
