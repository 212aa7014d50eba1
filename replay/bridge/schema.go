package bridge

import (
	"encoding/json"
	"slices"
	"strings"
)

// Where schemas stand inside a schema. A property may have the name of a keyword; it is told by its place.
var (
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaLists = []string{"anyOf", "allOf", "oneOf", "prefixItems"}
	schemaHeld  = []string{"items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames"}
)

// eachSchema gives every object schema within a schema to change, from the inside out, and puts together what it makes
// of them.
func eachSchema(v Value, change func(o object, path string) object) json.RawMessage {
	o, ok := parseObject(v.Raw)
	if !ok {
		return v.Raw // true, false, or no schema
	}
	for i, m := range o {
		path := below(v.Path, m.name)
		switch {
		case slices.Contains(schemaHeld, m.name):
			o[i].value = eachSchema(Value{m.value, path}, change)
		case slices.Contains(schemaMaps, m.name):
			inner, ok := parseObject(m.value)
			if !ok {
				continue
			}
			for k, p := range inner {
				inner[k].value = eachSchema(Value{p.value, below(path, p.name)}, change)
			}
			o[i].value = encode(inner)
		case slices.Contains(schemaLists, m.name):
			list, ok := parseArray(m.value)
			if !ok {
				continue
			}
			for k, raw := range list {
				list[k] = eachSchema(Value{raw, at(path, k)}, change)
			}
			o[i].value = encode(list)
		}
	}
	return encode(change(o, v.Path))
}

// rejected are the constraints that Anthropic's structured output does not take.
var rejected = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
	"maxItems", "uniqueItems", "minProperties", "maxProperties",
}

// supported is a schema without what Anthropic rejects. An object must say that it has no other members.
func (w *writer) supported(v Value) json.RawMessage {
	return eachSchema(v, func(o object, path string) object {
		var out object
		isObject, closed := false, false
		for _, m := range o {
			switch {
			case slices.Contains(rejected, m.name), m.name == "minItems" && string(m.value) != "0" && string(m.value) != "1":
				w.tell(below(path, m.name), m.value, "", "the API rejects this constraint; gates still check it")
				continue
			case m.name == "type" && string(m.value) == `"object"`, m.name == "properties":
				isObject = true
			case m.name == "additionalProperties":
				closed = true
			}
			out = append(out, m)
		}
		if isObject && !closed {
			out.put("additionalProperties", false)
			w.tell(below(path, "additionalProperties"), nil, "false", "the API asks for it")
		}
		return out
	})
}

// lowerTypes is a schema of Gemini's older form, whose types are in capitals, as a JSON schema.
func lowerTypes(raw json.RawMessage) json.RawMessage {
	return eachSchema(Value{Raw: raw}, func(o object, _ string) object {
		nullable := false
		var out object
		for _, m := range o {
			if m.name == "nullable" {
				nullable = string(m.value) == "true"
				continue
			}
			if s, ok := parseText(m.value); ok && m.name == "type" {
				m.value = encode(strings.ToLower(s))
			}
			out = append(out, m)
		}
		for i, m := range out {
			if s, ok := parseText(m.value); ok && m.name == "type" && nullable {
				out[i].value = encode([]string{s, "null"})
			}
		}
		return out
	})
}
