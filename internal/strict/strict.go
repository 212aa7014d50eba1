package strict

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Decode reads the one JSON value of raw into the value that into points at. place names it in errors, "" for the whole.
func Decode(raw []byte, into any, place string) error {
	if err := check(raw, reflect.TypeOf(into), place); err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// check refuses keys that t does not have. What is no JSON, or of another kind than t, is left to the decoder.
func check(raw []byte, t reflect.Type, place string) error {
	for t.Kind() == reflect.Pointer && !readsItself(t) {
		t = t.Elem()
	}
	if readsItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkObject(raw, fieldsOf(t), place)
	case reflect.Map:
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return nil
		}
		for _, key := range slices.Sorted(maps.Keys(o)) {
			if err := check(o[key], t.Elem(), below(place, key)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return nil
		}
		for i, item := range list {
			if err := check(item, t.Elem(), fmt.Sprintf("%s[%d]", place, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkObject(raw []byte, fields map[string]reflect.Type, place string) error {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		t, known := fields[key]
		if !known {
			there := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			if place == "" {
				return fmt.Errorf("there is no key %q; there are %s", key, there)
			}
			return fmt.Errorf("there is no key %q in %s; there are %s", key, place, there)
		}
		if err := check(o[key], t, below(place, key)); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf are the fields of a struct by their JSON names. Embedded structs are not looked into: types that people write
// have none.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct { // its fields are those of t
			inner := fieldsOf(f.Type)
			maps.Copy(inner, fields)
			fields = inner
			continue
		}
		if name == "" {
			name = f.Name
		}
		if name != "-" && f.IsExported() {
			fields[name] = f.Type
		}
	}
	return fields
}

func readsItself(t reflect.Type) bool {
	unmarshaler := reflect.TypeFor[json.Unmarshaler]()
	return t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
}

func below(place, key string) string {
	if place == "" {
		return key
	}
	return place + "." + key
}
