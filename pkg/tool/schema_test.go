// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestDrafts: schemas of every draft are checked against the rules of their draft, also when several are compiled at once.
func TestDrafts(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, draft := range []string{
		"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#",
		"https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema",
	} {
		for range 4 {
			all.Go(func() {
				s, err := compile(json.RawMessage(fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"n":{"type":"integer","minimum":3}}}`, draft)))
				if err != nil {
					t.Errorf("%s: %v", draft, err)
					return
				}
				if s.check(json.RawMessage(`{"n":3}`)) != nil || s.check(json.RawMessage(`{"n":2}`)) == nil {
					t.Errorf("%s: the minimum is not applied", draft)
				}
				if _, err := compile(json.RawMessage(fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"n":{"minimum":"3"}}}`, draft))); err == nil {
					t.Errorf("%s: a minimum that is a text is accepted", draft)
				}
				if _, err := compile(json.RawMessage(fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"n":{"type":"strnig"}}}`, draft))); err == nil {
					t.Errorf("%s: an unknown type is accepted", draft)
				}
			})
		}
	}
}

// TestSchemasAreKept: a schema is compiled once, and a long one each time.
func TestSchemasAreKept(t *testing.T) {
	of := func(description string) *schema {
		s, err := compile(json.RawMessage(fmt.Sprintf(`{"type":"object","description":%q}`, description)))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	kept, again := of("kept"), of("kept")
	if kept != again || kept == of("another") {
		t.Error("one text must be one schema, and two texts two")
	}
	text := strings.Repeat("a", maxKept)
	if long, again := of(text), of(text); long == again {
		t.Error("a long schema is kept")
	}
}

// BenchmarkCatalogue makes the catalogue of a request with 30 tools.
func BenchmarkCatalogue(b *testing.B) {
	type arguments struct {
		Name  string   `json:"name" desc:"The name of the task" minLength:"1"`
		State string   `json:"state,omitempty" desc:"Only tasks in this state" enum:"Pending,Running,Succeeded"`
		Limit *int64   `json:"limit,omitempty" desc:"How many" minimum:"1" maximum:"100"`
		Tags  []string `json:"tags,omitempty" desc:"Labels of it"`
	}
	for b.Loop() {
		var tools []Tool
		for i := range 30 {
			tools = append(tools, New(Definition{Name: fmt.Sprintf("tool_%d", i), Description: "does something", Parameters: SchemaOf[arguments]()}, func(context.Context, arguments) (any, error) { return nil, nil }))
		}
		if _, err := NewCatalogue(tools...); err != nil {
			b.Fatal(err)
		}
	}
}

func mustCompile(t *testing.T, text string) *schema {
	t.Helper()
	s, err := compile(json.RawMessage(text))
	if err != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return s
}

// TestRecursiveSchemas: a schema that refers to itself is checked at each level, in whatever way it does.
func TestRecursiveSchemas(t *testing.T) {
	for name, text := range map[string]string{
		"root":     `{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#"}}}`,
		"defs":     `{"type":"object","allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/x"}}}}}`,
		"lists":    `{"type":"object","$defs":{"x":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":{"$ref":"#/$defs/x"}}},"$ref":"#/$defs/x"}`,
		"anchor":   `{"type":"object","$anchor":"x","properties":{"n":{"type":"integer"},"next":{"$ref":"#x"}}}`,
		"dynamic":  `{"type":"object","$dynamicAnchor":"x","properties":{"n":{"type":"integer"},"next":{"$dynamicRef":"#x"}}}`,
		"2019-09":  `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","$recursiveAnchor":true,"properties":{"n":{"type":"integer"},"next":{"$recursiveRef":"#"}}}`,
		"draft-07": `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#"}}}`,
		"pointer":  `{"type":"object","properties":{"n":{"type":"integer"},"next":{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/properties/next"}}}}}`,
	} {
		s := mustCompile(t, text)
		if err := s.check(json.RawMessage(`{"n":1,"next":{"n":2,"next":{"n":3}}}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.check(json.RawMessage(`{"n":1,"next":{"n":2,"next":{"n":"x"}}}`)); err == nil {
			t.Errorf("%s: the third level is not checked", name)
		}
	}
}

// TestWorkOfChecks: what is small and takes for ever is refused, in a schema or in the arguments of one that branches at each level.
func TestWorkOfChecks(t *testing.T) {
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	for name, c := range map[string]struct{ schema, want string }{
		"doubling":    {`{"type":"object","properties":{"p":{"$ref":"#/$defs/a0"}},"$defs":{` + doubling.String() + `"a40":{"type":"null"}}}`, "more than 10000 rules"},
		"endless":     {`{"type":"object","properties":{"p":{"$ref":"#/properties/p"}}}`, "leads to itself without an end"},
		"through not": {`{"type":"object","if":{"not":{"$ref":"#"}}}`, "leads to itself without an end"},
	} {
		if _, err := compile(json.RawMessage(c.schema)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Each level is checked twice for each time that the one above is.
	s := mustCompile(t, `{"type":"object","anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["z"]},{"properties":{"a":{"$ref":"#"}}}]}`)
	nested := func(n int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"a":`, n) + `{"z":1}` + strings.Repeat("}", n))
	}
	if err := s.check(nested(10)); err != nil {
		t.Error(err)
	}
	if err := s.check(nested(60)); err == nil || !strings.Contains(err.Error(), "too deep to be checked") {
		t.Errorf("60 levels: %v", err)
	}
	// A long list of what is alike costs as much as it has elements.
	list := mustCompile(t, `{"type":"object","properties":{"all":{"type":"array","items":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"type":"object","properties":{"n":{"type":"integer"}}}}}`)
	if err := list.check(json.RawMessage(`{"all":[` + strings.Repeat(`{"n":1},`, 50_000) + `{"n":1}]}`)); err != nil {
		t.Error(err)
	}
}

// TestReferencesInData: what looks like a reference in a default, an example or a value is data.
func TestReferencesInData(t *testing.T) {
	s := mustCompile(t, `{"type":"object","default":{"$ref":"#/nowhere"},"examples":[{"$ref":"http://h/x"}],"properties":{"p":{"enum":[{"$ref":"file:///etc/passwd"}]},"default":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`)
	for arguments, valid := range map[string]bool{
		`{"p":{"$ref":"file:///etc/passwd"}}`: true, `{"p":{"$ref":"x"}}`: false, `{"default":1}`: true, `{"default":"x"}`: false,
	} {
		if err := s.check(json.RawMessage(arguments)); (err == nil) != valid {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

// TestPatterns: patterns are those of ECMAScript. One that cannot be checked refuses nothing, whatever it stands in, and the rest of
// the schema is checked.
func TestPatterns(t *testing.T) {
	for name, c := range map[string]struct {
		schema        string
		good, refused []string
	}{
		"look-ahead": {
			`{"type":"object","properties":{"p":{"type":"string","pattern":"^(?!root$)[a-z]+$","maxLength":5},"q":{"type":"integer"}}}`,
			[]string{`{"p":"abc"}`, `{"p":"root"}`},
			[]string{`{"p":"abcdef"}`, `{"p":7}`, `{"q":"x"}`},
		},
		"look-behind, reference, count": {
			`{"type":"object","properties":{"a":{"pattern":"(?<=a)b"},"b":{"pattern":"(a)\\1"},"c":{"pattern":"^(?<n>a)\\k<n>$"},"d":{"pattern":"^a{1,5000}$"},"e":{"pattern":"^[\\w-.]+$"},"f":{"pattern":"\\p{Script=Greek}"},"g":{"pattern":"[\\ud800-\\udbff]"}}}`,
			[]string{`{"a":"x","b":"x","c":"x","d":"x","e":".","f":"x","g":"x"}`},
			nil,
		},
		"by its number":     {`{"type":"object","properties":{"p":{"pattern":"^[\\u0041-\\u005A\\u{e4}]+$"}}}`, []string{`{"p":"ABä"}`}, []string{`{"p":"ab"}`}},
		"not":               {`{"type":"object","properties":{"p":{"not":{"pattern":"(?=x)"}}}}`, []string{`{"p":"y"}`, `{"p":"x"}`}, nil},
		"oneOf":             {`{"type":"object","properties":{"p":{"oneOf":[{"type":"string","pattern":"^(?=a)"},{"type":"string","pattern":"^b"}]}}}`, []string{`{"p":"b"}`, `{"p":"a"}`}, []string{`{"p":1}`}},
		"if":                {`{"type":"object","if":{"properties":{"p":{"pattern":"^(?=a)"}}},"then":{"required":["q"]},"required":["p"]}`, []string{`{"p":"b"}`}, []string{`{}`}},
		"names":             {`{"type":"object","patternProperties":{"^(?!x)":{"type":"integer"},"^y":{"type":"string"}},"additionalProperties":false}`, []string{`{"xa":"s"}`, `{"a":1}`}, []string{`{"y":1}`}},
		"contains":          {`{"type":"object","properties":{"p":{"contains":{"pattern":"^(?=a)"},"maxContains":1}}}`, []string{`{"p":["a","b"]}`}, []string{`{"p":[]}`}},
		"by a reference":    {`{"type":"object","properties":{"p":{"not":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"pattern":"(?=x)"}}}`, []string{`{"p":"y"}`}, nil},
		"reference into it": {`{"type":"object","properties":{"p":{"oneOf":[{"pattern":"(?=x)"}]},"q":{"$ref":"#/properties/p/oneOf/0"}}}`, []string{`{"p":"y","q":"y"}`}, nil},
		"format":            {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"format":"regex"}}}`, []string{`{"p":"(?!x)y"}`}, []string{`{"p":"("}`}},
	} {
		s := mustCompile(t, c.schema)
		for _, arguments := range c.good {
			if err := s.check(json.RawMessage(arguments)); err != nil {
				t.Errorf("%s: %s: %v", name, arguments, err)
			}
		}
		for _, arguments := range c.refused {
			if err := s.check(json.RawMessage(arguments)); err == nil {
				t.Errorf("%s: %s is accepted", name, arguments)
			}
		}
	}
	for _, pattern := range []string{"(", "a**", "[a", "(?=", `x\\`} {
		if _, err := compile(json.RawMessage(`{"type":"object","properties":{"p":{"pattern":"` + pattern + `"}}}`)); err == nil {
			t.Errorf("%s is accepted", pattern)
		}
	}
}

// TestErrorsHaveNoPaths: an error about a schema names its parts, and nothing of the machine.
func TestErrorsHaveNoPaths(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"nothing"}}}`: "properties.a.type: value must be one of",
		`{"type":"object","properties":{"a":{"pattern":"("}}}`:    "properties.a.pattern: ",
		`{"type":"object","properties":{"a":{"$ref":"#/x"}}}`:     "#/x",
		`{"type":"object","properties":{"a":{"$ref":"b.json"}}}`:  `"b.json"`,
		`{"type":"object","$schema":"own.json"}`:                  `"own.json"`,
		`{"type":"object","properties":{"a":{"$id":"%"}}}`:        "a",
		`{"type":"object","patternProperties":{"(":{}}}`:          "(",
	} {
		_, err := compile(json.RawMessage(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "file:") || strings.Contains(err.Error(), "/worker/") || strings.Contains(err.Error(), base) {
			t.Errorf("%s: %v", text, err)
		}
	}
	s := mustCompile(t, `{"type":"object","properties":{"a":false,"b":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}},"propertyNames":{"maxLength":1}}`)
	if err := s.check(json.RawMessage(`{"a":1,"b":"x","cc":1}`)); err == nil || strings.Contains(err.Error(), "/") {
		t.Error(err)
	}
}
