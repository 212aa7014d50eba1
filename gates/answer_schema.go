package gates

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
)

// schemaParams are the parameters of json_schema.
type schemaParams struct {
	Schema json.RawMessage `json:"schema"` // none = the request's own
}

func schemaGate() Gate {
	return Gate{
		ID: "json_schema", Version: 1, Family: "answer",
		Summary: "the answer is JSON that its schema allows",
		Explain: `The content channel must be one JSON text, as strictly as the gate json reads it, and valid under the parameter "schema", else
under the schema that the request itself declares, where its dialect puts it: response_format (OpenAI, with llama.cpp's short
form), text.format (Responses), format (Ollama), generationConfig.responseSchema or responseJsonSchema (Gemini), output_format
and output_config.format (Anthropic), json_schema (llama.cpp, SGLang), guided_json and structured_outputs.json (vLLM). The
draft is the one that $schema names, else 2020-12; "format" is a note, as that draft has it. A schema that refers outside of
itself is not followed.
ok: valid. fail: no JSON, or not valid; the reason names the place. incomparable: the schema is none that can be used. skipped:
no schema is stated, or the request declares tools and the answer calls one. not_run: there is no whole answer.` + fenced + `
Judged by itself: requests that declare a schema.`,
		Params: func() any { return &schemaParams{} },
		auto:   func(a *Asked) (json.RawMessage, bool) { return nil, schemaOf(a) != nil },
		judge:  answered(jsonSchema),
	}
}

func jsonSchema(e *Evidence, t Turn) Finding {
	text, own := e.params.(*schemaParams).Schema, false
	if len(text) == 0 {
		text, own = schemaOf(AskedOf(t.Exchange)), true
	}
	switch {
	case text == nil:
		return skipped("neither the check nor the request states a schema")
	case own && t.callsInstead():
		return skipped("the answer calls a tool")
	}
	s, err := compileSchema(text)
	if err != nil {
		return incomparable("%s", oneLine(err.Error()))
	}
	var unsure error
	f := eachChoice(t, func(text string) string {
		v, err := strictJSON([]byte(text))
		if err != nil {
			return "it is no JSON: " + oneLine(err.Error())
		}
		why, err := s.fault(v)
		unsure = cmp.Or(unsure, err)
		return why
	})
	if unsure != nil {
		return incomparable("%s", oneLine(unsure.Error()))
	}
	return f
}

// schemaPlaces are where requests declare the schema of their answer.
var schemaPlaces = [][]string{
	{"response_format", "json_schema", "schema"},
	{"response_format", "schema"},
	{"text", "format", "schema"},
	{"output_format", "schema"},
	{"output_config", "format", "schema"},
	{"structured_outputs", "json"},
	{"guided_json"},
	{"json_schema"},
	{"sampling_params", "json_schema"},
	{"format"},
	{"generationConfig", "responseJsonSchema"},
	{"generation_config", "response_json_schema"},
	{"request", "generationConfig", "responseJsonSchema"},
}

// geminiPlaces are where Gemini's own form of a schema stands.
var geminiPlaces = [][]string{
	{"generationConfig", "responseSchema"},
	{"generation_config", "response_schema"},
	{"request", "generationConfig", "responseSchema"},
}

// schemaOf is the schema that a request declares for its answer, nil when there is none. An engine that takes it as a
// text gets it as a text; it is read.
func schemaOf(a *Asked) json.RawMessage {
	for _, place := range schemaPlaces {
		v := a.Field(place...)
		if text := ""; len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &text) == nil {
			v = json.RawMessage(strings.TrimSpace(text))
		}
		if len(v) > 0 && v[0] == '{' {
			return v
		}
	}
	for _, place := range geminiPlaces {
		if v := a.Field(place...); len(v) > 0 && v[0] == '{' {
			if plain, err := fromOpenAPI(v); err == nil {
				return plain
			}
		}
	}
	return nil
}

// fromOpenAPI makes a JSON schema of Gemini's: types are in upper case there, and null is a mark beside them.
func fromOpenAPI(schema json.RawMessage) (json.RawMessage, error) {
	v, err := strictJSON(schema)
	if err != nil {
		return nil, err
	}
	object, isObject := v.(map[string]any)
	if !isObject {
		return nil, errors.New("a schema is an object")
	}
	plainSchema(object)
	return json.Marshal(object)
}

// plainSchema changes a schema and those inside it. Names of properties are not keywords and stay.
func plainSchema(s map[string]any) {
	if word, isWord := s["type"].(string); isWord {
		s["type"] = strings.ToLower(word)
		if s["nullable"] == true {
			s["type"] = []any{strings.ToLower(word), "null"}
			if list, has := s["enum"].([]any); has {
				s["enum"] = append(list, nil)
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, isSchema := s[key].(map[string]any); isSchema {
			plainSchema(inner)
		}
	}
	for _, key := range []string{"anyOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for _, item := range list {
			if inner, isSchema := item.(map[string]any); isSchema {
				plainSchema(inner)
			}
		}
	}
	for _, key := range []string{"properties", "$defs"} {
		named, _ := s[key].(map[string]any)
		for _, item := range named {
			if inner, isSchema := item.(map[string]any); isSchema {
				plainSchema(inner)
			}
		}
	}
}
