package gates

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Schemas come from requests and values from engines: neither is trusted. What a schema and a value can cost together is
// bounded, and what goes beyond is said to be no evidence.

// errNoSchema says that a schema is none that can be judged by: the request is at fault, not the answer.
var errNoSchema = errors.New("schema cannot be used")

// Bounds of schemas.
const (
	schemaWork   = 1 << 21 // steps of one validation: a schema can double itself at each of its levels
	schemaDigits = 2000    // of a number, and of its exponent's size: beyond it exact arithmetic is not tried
	schemaFaults = 5       // that a reason names
)

// noLoader refuses what a schema refers to outside of itself: judging reads no file and no network.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, which is not part of the request", url)
}

// readySchema is a declared schema that values are held against, one at a time.
type readySchema struct {
	compiled *jsonschema.Schema
	work     *work
}

// work counts the steps of one validation.
type work struct{ left int }

// errWork is what a validation that has used up its steps ends with. It is thrown: the validator has no other way out.
var errWork = errors.New("holding the answer against it takes too long")

// step is what one schema within a schema costs each time it is applied.
type step struct {
	work *work
	cost int
}

// Validate implements jsonschema.SchemaExt. It finds nothing wrong; it counts.
func (s step) Validate(*jsonschema.ValidatorContext, any) {
	if s.work.left -= s.cost; s.work.left < 0 {
		panic(errWork)
	}
}

// counter is the vocabulary without keywords that counts the steps of every schema.
func counter(w *work) *jsonschema.Vocabulary {
	lists := []string{"allOf", "anyOf", "oneOf", "enum", "required", "patternProperties", "dependentSchemas", "dependencies"}
	return &jsonschema.Vocabulary{URL: "benchproxy:work", Compile: func(_ *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
		s := step{work: w, cost: 1}
		for _, key := range lists {
			switch of := obj[key].(type) {
			case []any:
				s.cost += len(of)
			case map[string]any:
				s.cost += len(of)
			}
		}
		return s, nil
	}}
}

// compileSchema makes a declared JSON schema ready for judging. The error wraps errNoSchema.
func compileSchema(schema json.RawMessage) (*readySchema, error) {
	refuse := func(err error) (*readySchema, error) {
		return nil, fmt.Errorf("%w: %s", errNoSchema, oneLine(err.Error()))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return refuse(err)
	}
	if err := exact(doc); err != nil {
		return refuse(err)
	}
	w := &work{left: schemaWork}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.RegisterVocabulary(counter(w))
	c.AssertVocabs()
	const place = "declared.json"
	if err := c.AddResource(place, doc); err != nil {
		return refuse(err)
	}
	s, err := c.Compile(place)
	if err != nil {
		return refuse(err)
	}
	return &readySchema{s, w}, nil
}

// exact refuses numbers that exact arithmetic, which the validator uses, cannot hold in reasonable space: it would pass
// them over.
func exact(v any) error {
	switch v := v.(type) {
	case json.Number:
		digits, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		n, err := strconv.Atoi(cmp.Or(exponent, "0"))
		if err != nil || max(n, -n) > schemaDigits || len(digits) > schemaDigits {
			return fmt.Errorf("the number %s is too long to reckon with", excerpt(string(v)))
		}
	case []any:
		for _, item := range v {
			if err := exact(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := exact(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// fault is what is wrong with a value under the schema, in one line; "" when nothing is. The error wraps errNoSchema: it
// cannot be told.
func (s *readySchema) fault(v any) (why string, err error) {
	if err := exact(v); err != nil {
		return "", fmt.Errorf("%w: %w", errNoSchema, err)
	}
	defer func() {
		if thrown := recover(); thrown == errWork {
			err = fmt.Errorf("%w: %w", errNoSchema, errWork)
		} else if thrown != nil {
			panic(thrown)
		}
	}()
	s.work.left = schemaWork
	wrong := s.compiled.Validate(v)
	var found *jsonschema.ValidationError
	switch {
	case wrong == nil:
		return "", nil
	case !errors.As(wrong, &found):
		return "", fmt.Errorf("%w: %s", errNoSchema, oneLine(wrong.Error()))
	}
	f := faults{}
	f.gather(found)
	if f.cycle {
		return "", fmt.Errorf("%w: it refers to itself without end", errNoSchema)
	}
	return f.words(), nil
}

// faults are what is wrong with a value. The validator walks maps, so that it finds them in any order.
type faults struct {
	lines []string
	cycle bool
}

// gather takes the ends of a tree of faults; what stands above them only says where they were found.
func (f *faults) gather(e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		f.gather(cause)
	}
	switch k := e.ErrorKind.(type) {
	case *kind.RefCycle:
		f.cycle = true
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
	}
	if len(e.Causes) == 0 {
		f.lines = append(f.lines, shorten(oneLine(e.Error())))
	}
}

// words are the first faults in the order of their text.
func (f *faults) words() string {
	slices.Sort(f.lines)
	f.lines = slices.Compact(f.lines)
	if more := len(f.lines) - schemaFaults; more > 0 {
		f.lines = append(f.lines[:schemaFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(f.lines, "; ")
}
