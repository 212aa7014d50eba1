package matrix

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// JSONSchema is the schema of a config file, for editors: draft 2020-12, written from the same types that read the file.
// ids of engines, where the catalog's are given, are among the keys that are offered.
func JSONSchema(engineIDs []string) ([]byte, error) {
	w := schemaWriter{engines: engineIDs, defs: object{}}
	root := w.of(reflect.TypeFor[document]())
	root["$defs"] = w.defs
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "benchproxy benchmark config"
	return json.MarshalIndent(root, "", "  ")
}

type schemaWriter struct {
	engines []string
	defs    object // schemas that stand in many places, by name
}

// shared is a reference to a schema that is written once.
func (w schemaWriter) shared(name string, write func() object) object {
	if _, there := w.defs[name]; !there {
		w.defs[name] = nil // it may hold itself
		w.defs[name] = write()
	}
	return object{"$ref": "#/$defs/" + name}
}

// object is a schema.
type object = map[string]any

// comments are the keys that are passed over on every level.
func comments() object { return object{"^_": object{}} }

func anyOf(all ...object) object { return object{"anyOf": all} }

func listOfItems(items object) object { return object{"type": "array", "items": items} }

func ofType(name string) object { return object{"type": name} }

// of is the schema of a type.
func (w schemaWriter) of(t reflect.Type) object {
	if s := w.special(t); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem())
	case reflect.Struct:
		return w.structure(t)
	case reflect.Map:
		return object{"type": "object", "additionalProperties": w.of(t.Elem()), "patternProperties": comments()}
	case reflect.Slice:
		return anyOf(listOfItems(w.of(t.Elem())), ofType("string"))
	case reflect.Bool:
		return ofType("boolean")
	case reflect.Int:
		return ofType("integer")
	}
	return ofType("string")
}

// special is the schema of a type that reads itself; nil for every other.
func (w schemaWriter) special(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[switchList]():
		item := object{"enum": []any{true, false, 0, 1, "off", "on", "both", "false", "true", "no", "yes", "none", "mtp", "0", "1"}}
		return anyOf(item, listOfItems(item), ofType("string"))
	case reflect.TypeFor[countList](), reflect.TypeFor[sizeList]():
		least := map[bool]int{true: 1, false: 0}[t == reflect.TypeFor[countList]()]
		item := object{"type": "integer", "minimum": least}
		return anyOf(item, listOfItems(anyOf(item, object{"type": "string", "pattern": "^[0-9]+$"})), ofType("string"))
	case reflect.TypeFor[layerList]():
		item := anyOf(object{"type": "integer", "minimum": 0}, object{"type": "string", "pattern": "^(?i:off|all|[0-9]+)$"})
		return anyOf(item, listOfItems(item), ofType("string"))
	case reflect.TypeFor[wordList]():
		item := anyOf(ofType("string"), ofType("integer"))
		return anyOf(item, listOfItems(item))
	case reflect.TypeFor[rawDoc]():
		return ofType("object")
	case reflect.TypeFor[pathDoc](), reflect.TypeFor[urlDoc](), reflect.TypeFor[sourceDoc](), reflect.TypeFor[modelOnDoc]():
		return w.shared(strings.TrimSuffix(t.Name(), "Doc"), func() object { return anyOf(ofType("string"), w.structure(t)) })
	case reflect.TypeFor[mappingDoc]():
		return w.shared("mapping", func() object {
			return anyOf(ofType("boolean"), ofType("string"), ofType("integer"), w.structure(t))
		})
	case reflect.TypeFor[backendDoc]():
		return w.backend(t)
	case reflect.TypeFor[registry[engineDoc]]():
		return w.registry(w.of(reflect.TypeFor[engineDoc]()))
	case reflect.TypeFor[registry[modelDoc]]():
		return w.registry(w.of(reflect.TypeFor[modelDoc]()))
	case reflect.TypeFor[registry[scenarioDoc]]():
		return w.registry(w.of(reflect.TypeFor[scenarioDoc]()))
	case reflect.TypeFor[registry[backendDoc]]():
		return anyOf(w.registry(w.backend(reflect.TypeFor[backendDoc]())), listOfItems(ofType("string")))
	}
	return nil
}

func (w schemaWriter) registry(entry object) object {
	return object{"type": "object", "additionalProperties": anyOf(entry, ofType("null")), "patternProperties": comments()}
}

// structure is the schema of an object: keys that it does not have are refused, comments are not.
func (w schemaWriter) structure(t reflect.Type) object {
	properties := object{}
	for _, f := range fieldsOf(t) {
		s := w.of(t.Field(f.index).Type)
		if f.enum != nil && s["type"] == "string" {
			s["enum"] = f.enum
		}
		if least, err := strconv.Atoi(f.min); err == nil {
			s["minimum"] = least
		}
		if most, err := strconv.Atoi(f.max); err == nil {
			s["maximum"] = most
		}
		if f.standard != "" {
			s["default"] = literal(f.standard, t.Field(f.index).Type.Kind()).plain()
		}
		s = anyOf(s, ofType("null"))
		if f.doc != "" {
			s["description"] = f.doc
		}
		properties[f.name] = s
	}
	return object{"type": "object", "properties": properties, "patternProperties": comments(), "additionalProperties": false}
}

// backend is an entry that also has a key for each engine, which the file itself may declare.
func (w schemaWriter) backend(t reflect.Type) object {
	s := w.structure(t)
	mapping := w.of(reflect.TypeFor[mappingDoc]())
	properties, ok := s["properties"].(object)
	if !ok {
		return s
	}
	for _, id := range w.engines {
		properties[id] = mapping
	}
	s["additionalProperties"] = mapping
	return s
}
