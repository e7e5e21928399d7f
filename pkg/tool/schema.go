// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/jsonsize"
)

// schema is a compiled JSON Schema; nil accepts every object.
type schema struct {
	// compiled is nil if no rule of the schema can be checked.
	compiled *jsonschema.Schema
	// referring says that the schema has references, so the work of a check has to be bounded.
	referring bool
}

// errRemoteRef means that a schema refers to another document. Following such references would
// let a Tool object make the worker read files or dial hosts.
var errRemoteRef = errors.New("references to other documents are not allowed")

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errRemoteRef }

// CheckSchema returns an error if raw cannot describe a tool's parameters.
func CheckSchema(raw json.RawMessage) error {
	_, err := compile(raw)
	return err
}

// schemaBounds are far above what models accept. Compiling takes quadratic time.
var schemaBounds = jsonsize.Bounds{Values: 5000, Depth: 64}

// compiled keeps the schemas that were compiled last, by their text: a server makes a catalogue of the same tools for each request of
// a chat or a vendor's API, and compiling is most of that. A schema that is longer than maxKept is not kept, which bounds the memory.
var compiled = lru.New(512)

const maxKept = 8 << 10

// compile returns a schema that any number of goroutines may use; nil for no text.
func compile(raw json.RawMessage) (*schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > maxKept {
		return compileNew(raw)
	}
	key := string(raw)
	if s, ok := compiled.Get(key); ok {
		return s.(*schema), nil
	}
	s, err := compileNew(raw)
	if err != nil {
		return nil, err
	}
	compiled.Add(key, s)
	return s, nil
}

func compileNew(raw json.RawMessage) (*schema, error) {
	if err := schemaBounds.Check(raw); err != nil {
		return nil, fmt.Errorf("the schema %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("the schema must be an object")
	}
	if root["type"] != "object" {
		return nil, errors.New(`the schema's root must have "type": "object"`)
	}
	s, err := compileDocument(root)
	if err != nil || !hasUnchecked(root) {
		return s, err
	}
	// What can be checked is in a schema of its own. References into what it lacks lead nowhere: then nothing is checked.
	part, _ := weaker(root)
	if s, err = compileDocument(part); err != nil {
		return &schema{}, nil //nolint:nilerr // the whole schema is valid
	}
	return s, nil
}

// base is where schemas are, for references and for the library's errors. Nothing is loaded from there.
const base = "https://schema.invalid/"

// compileDocument compiles a schema. Its errors name parts of the schema and nothing of the server.
func compileDocument(doc any) (*schema, error) {
	const location = base + "parameters"
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	err := c.AddResource(location, doc)
	var s schema
	if err == nil {
		s.compiled, err = c.Compile(location)
	}
	if err == nil {
		if s.referring = references(s.compiled); s.referring {
			err = steps(s.compiled)
		}
	}
	if err == nil {
		return &s, nil
	}
	if broken, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](broken.Err); ok {
			return nil, errors.New(strings.Join(violations(invalid, message.NewPrinter(language.English)), "; "))
		}
	}
	return nil, errors.New(strings.NewReplacer(location, "", base, "").Replace(err.Error()))
}

// check returns an *Error that names each invalid argument and the rule that it breaks.
func (s *schema) check(arguments json.RawMessage) error {
	if s == nil || s.compiled == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return InvalidArguments("the arguments are not JSON")
	}
	if s.referring && !bounded(s.compiled, v) {
		return errTooLarge
	}
	err = s.compiled.Validate(v)
	var invalid *jsonschema.ValidationError
	if err == nil {
		return nil
	}
	if !errors.As(err, &invalid) {
		return InvalidArguments("%v", err)
	}
	return InvalidArguments("%s", strings.Join(violations(invalid, message.NewPrinter(language.English)), "; ")).
		Suggest("correct the arguments to fit the tool's parameters and call it again")
}

// violations flattens a validation error into one line for each broken rule.
func violations(e *jsonschema.ValidationError, p *message.Printer) []string {
	if len(e.Causes) == 0 {
		where := strings.Join(e.InstanceLocation, ".")
		if where != "" {
			where += ": "
		}
		return []string{where + broken(e.ErrorKind, p)}
	}
	var out []string
	for _, c := range e.Causes {
		out = append(out, violations(c, p)...)
	}
	return out
}

// broken describes a broken rule. The library writes numbers as exponents and with separators; here they are digits.
func broken(k jsonschema.ErrorKind, p *message.Printer) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return compared("minimum", k.Got, k.Want)
	case *kind.Maximum:
		return compared("maximum", k.Got, k.Want)
	case *kind.ExclusiveMinimum:
		return compared("exclusiveMinimum", k.Got, k.Want)
	case *kind.ExclusiveMaximum:
		return compared("exclusiveMaximum", k.Got, k.Want)
	case *kind.MultipleOf:
		return compared("multipleOf", k.Got, k.Want)
	case *kind.MinLength:
		return counted("minLength", k.Got, k.Want)
	case *kind.MaxLength:
		return counted("maxLength", k.Got, k.Want)
	case *kind.MinItems:
		return counted("minItems", k.Got, k.Want)
	case *kind.MaxItems:
		return counted("maxItems", k.Got, k.Want)
	case *kind.MinProperties:
		return counted("minProperties", k.Got, k.Want)
	case *kind.MaxProperties:
		return counted("maxProperties", k.Got, k.Want)
	}
	return k.LocalizedString(p)
}

func counted(rule string, got, want int) string {
	return fmt.Sprintf("%s: got %d, want %d", rule, got, want)
}

func compared(rule string, got, want *big.Rat) string {
	return fmt.Sprintf("%s: got %s, want %s", rule, digits(got), digits(want))
}

// maxDigits is the length of a number that is written out.
const maxDigits = 30

// digits writes a number as people do, and one that is too long for that as an exponent.
func digits(r *big.Rat) string {
	s := r.FloatString(0)
	if !r.IsInt() { // zeros at the end are no digits that anybody wrote
		s = strings.TrimRight(r.FloatString(maxDigits/2), "0")
	}
	if len(s) > maxDigits || s == "0." || s == "-0." {
		return new(big.Float).SetRat(r).Text('g', 6)
	}
	return s
}

// SchemaOf returns the JSON Schema of an argument struct. Field tags:
//
//	json     the name; with ",omitempty" the argument is optional
//	desc     the description
//	enum     allowed values, separated by commas (strings)
//	default  the default, told to the model in the schema
//	minimum, maximum, minLength   bounds
//
// A Choice sets the allowed values of an argument.
//
// It panics on a field that a schema cannot describe. That is a mistake in the program, which
// the first test that creates the tool finds.
func SchemaOf[A any](choices ...Choice) json.RawMessage {
	of := reflect.TypeFor[A]()
	if len(choices) > 0 {
		return makeSchema(of, choices)
	}
	raw, ok := ofStructs.Load(of)
	if !ok {
		raw, _ = ofStructs.LoadOrStore(of, makeSchema(of, nil))
	}
	return slices.Clone(raw.(json.RawMessage))
}

// ofStructs keeps the schemas of argument structs, by reflect.Type. They are as many as the program has tools.
var ofStructs sync.Map

func makeSchema(of reflect.Type, choices []Choice) json.RawMessage {
	s := structSchema(of)
	for _, c := range choices {
		c.apply(s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return raw
}

// Choice is an argument whose allowed values are known only when the tool is created, such as
// the installed languages.
type Choice struct {
	Argument string
	Values   []string
}

func (c Choice) apply(s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	property, ok := properties[c.Argument].(map[string]any)
	if !ok {
		panic("tool: there is no argument " + c.Argument)
	}
	property["enum"] = c.Values
}

func structSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			panic(fmt.Sprintf("tool: field %s of %s needs a json name", f.Name, t))
		}
		property := typeSchema(f.Type)
		if d := f.Tag.Get("desc"); d != "" {
			property["description"] = d
		}
		if e := f.Tag.Get("enum"); e != "" {
			property["enum"] = strings.Split(e, ",")
		}
		for _, key := range []string{"default", "minimum", "maximum", "minLength", "maxLength"} {
			if v, ok := f.Tag.Lookup(key); ok {
				property[key] = literal(property, v)
			}
		}
		properties[name] = property
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// literal returns a tag's value: unchanged for a string property, parsed as JSON otherwise.
func literal(property map[string]any, v string) any {
	if property["type"] == "string" && !json.Valid([]byte(v)) {
		return v
	}
	return json.RawMessage(v)
}

func typeSchema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Struct:
		return structSchema(t)
	default:
		panic(fmt.Sprintf("tool: %s has no place in a schema", t))
	}
}
