// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type arguments struct {
	Path string `json:"path" desc:"where" minLength:"1"`
	Mode string `json:"mode,omitempty" enum:"write,append" default:"write"`
	Size *int   `json:"size,omitempty" minimum:"1" maximum:"9" default:"3"`
}

func catalogue(t *testing.T, tools ...Tool) *Catalogue {
	t.Helper()
	c, err := NewCatalogue(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func echo() Tool {
	return New(Definition{Name: "echo", Description: "says it again", Parameters: SchemaOf[arguments]()}, func(_ context.Context, a arguments) (any, error) {
		switch a.Path {
		case "missing":
			return nil, Errorf(TypeNotFound, "no %s", a.Path).Suggest("look elsewhere")
		case "broken":
			return nil, errors.New("dial tcp 10.0.0.1: secret detail")
		case "unencodable":
			return func() {}, nil
		}
		return map[string]string{"path": a.Path}, nil
	})
}

func TestSchemaOf(t *testing.T) {
	want := `{"additionalProperties":false,"properties":{` +
		`"mode":{"default":"write","enum":["write","append"],"type":"string"},` +
		`"path":{"description":"where","minLength":1,"type":"string"},` +
		`"size":{"default":3,"maximum":9,"minimum":1,"type":"integer"}},"required":["path"],"type":"object"}`
	if got := string(SchemaOf[arguments]()); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestCall(t *testing.T) {
	c := catalogue(t, echo(), New(Definition{Name: "bare", Parameters: SchemaOf[struct{}]()}, func(context.Context, struct{}) (any, error) { return 1, nil }))
	tests := map[string]struct {
		name, arguments, want string
	}{
		"fine":        {"echo", `{"path":"a","mode":"append","size":2}`, `{"success":true,"data":{"path":"a"}}`},
		"spaces":      {"echo", " {\"path\":\"a\"}\n", `{"success":true,"data":{"path":"a"}}`},
		"nothing":     {"bare", "", `{"success":true,"data":1}`},
		"unknown":     {"ech", `{}`, `{"success":false,"error":"there is no tool \"ech\"","errorType":"unknown_tool","suggestion":"available tools: [echo bare]"}`},
		"tool error":  {"echo", `{"path":"missing"}`, `{"success":false,"error":"no missing","errorType":"not_found","suggestion":"look elsewhere"}`},
		"other error": {"echo", `{"path":"broken"}`, `{"success":false,"error":"the tool failed unexpectedly","errorType":"internal_error","suggestion":"try another way"}`},
		"unencodable": {"echo", `{"path":"unencodable"}`, `{"success":false,"error":"the tool failed unexpectedly","errorType":"internal_error","suggestion":"try another way"}`},
		"null":        {"echo", `null`, `{"success":false,"error":"the arguments are null","errorType":"invalid_arguments","suggestion":"send the arguments as one complete JSON object"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, c.Call(t.Context(), tt.name, tt.arguments).Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadArgumentsNameTheRule(t *testing.T) {
	c := catalogue(t, echo())
	tests := map[string]string{
		`{`:                               "not a JSON object",
		`{"path":"a"`:                     "not a JSON object",
		`[]`:                              "not a JSON object",
		`{"path":"a"} {}`:                 "text after",
		`{}`:                              "missing property 'path'",
		`{"path":1}`:                      "path: got number, want string",
		`{"path":""}`:                     "path: minLength",
		`{"path":"a","mode":"x"}`:         "mode: value must be one of 'write', 'append'",
		`{"path":"a","size":10}`:          "size: maximum: got 10, want 9",
		`{"path":"a","size":2097152}`:     "size: maximum: got 2097152, want 9",
		`{"path":"a","size":-1000000000}`: "size: minimum: got -1000000000, want 1",
		`{"path":"a","size":1.5}`:         "size: got number, want integer",
		`{"path":"a","more":1}`:           "additional properties 'more' not allowed",
	}
	for arguments, want := range tests {
		r := c.Call(t.Context(), "echo", arguments)
		if r.ErrorType != TypeInvalidArguments || !strings.Contains(r.Text, want) || !strings.Contains(r.Text, "suggestion") {
			t.Errorf("%s: got %s, want %q", arguments, r.Text, want)
		}
	}
}

// TestNumbersAreDigits: a number in a text about arguments is written as people write it.
func TestNumbersAreDigits(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"n":2097152}`: "n: maximum: got 2097152, want 1048576",
		`{"n":0.00025}`: "n: minimum: got 0.00025, want 0.5",
		`{"n":1e300}`:   "n: maximum: got 1e+300, want 1048576",
		`{"n":1,"s":"` + strings.Repeat("x", 2000) + `"}`: "s: maxLength: got 2000, want 1500",
	} {
		c := catalogue(t, &funcTool[struct{}]{definition: Definition{Name: "f", Parameters: json.RawMessage(
			`{"type":"object","properties":{"n":{"type":"number","minimum":0.5,"maximum":1048576},"s":{"type":"string","maxLength":1500}}}`)}})
		if r := c.Call(t.Context(), "f", arguments); !strings.Contains(r.Text, want) {
			t.Errorf("%.40s: %s, want %s", arguments, r.Text, want)
		}
	}
}

// TestEveryErrorHasASuggestion: a structured error of any type says what to do.
func TestEveryErrorHasASuggestion(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "result.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	types := 0
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Type") {
			return true
		}
		types++
		if i, ok := spec.Type.(*ast.Ident); !ok || i.Name != "ErrorType" {
			t.Errorf("%s has no type", spec.Names[0].Name)
		}
		return true
	})
	if types != len(advice) {
		t.Errorf("%d types of errors, and suggestions for %d", types, len(advice))
	}
	for kind := range advice {
		if text := Failure(Errorf(kind, "broken")).Text; !strings.Contains(text, `"suggestion":"`+advice[kind]) || advice[kind] == "" {
			t.Errorf("%s: %s", kind, text)
		}
	}
	for _, text := range []string{Failure(errors.New("unexpected")).Text, Failure(Errorf("new", "broken")).Text} {
		if !strings.Contains(text, `"suggestion":"try another way"`) {
			t.Error(text)
		}
	}
	if text := Failure(Errorf(TypeTimeout, "broken").Suggest("wait")).Text; !strings.Contains(text, `"suggestion":"wait"`) {
		t.Error(text)
	}
}

func TestCatalogueRefuses(t *testing.T) {
	raw := func(name, schema string) Tool {
		return &funcTool[struct{}]{definition: Definition{Name: name, Parameters: json.RawMessage(schema)}}
	}
	tests := map[string][]Tool{
		"name":        {raw("a b", "")},
		"twice":       {echo(), echo()},
		"not JSON":    {raw("a", "{")},
		"not object":  {raw("a", `{"type":"string"}`)},
		"bad keyword": {raw("a", `{"type":"object","properties":{"p":{"minLength":"x"}}}`)},
		"remote ref":  {raw("a", `{"type":"object","properties":{"p":{"$ref":"http://127.0.0.1:1/x"}}}`)},
		"file ref":    {raw("a", `{"type":"object","properties":{"p":{"$ref":"file:///etc/passwd"}}}`)},
	}
	for name, tools := range tests {
		if _, err := NewCatalogue(tools...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// A reference inside of the schema is fine.
	local := raw("a", `{"type":"object","$defs":{"n":{"type":"integer"}},"properties":{"p":{"$ref":"#/$defs/n"}}}`)
	if got := catalogue(t, local).Call(t.Context(), "a", `{"p":"x"}`); got.ErrorType != TypeInvalidArguments {
		t.Errorf("got %s", got.Text)
	}
}

func TestCancelledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := catalogue(t, New(Definition{Name: "wait", Parameters: SchemaOf[struct{}]()}, func(ctx context.Context, _ struct{}) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	if got := c.Call(ctx, "wait", "{}"); got.ErrorType != TypeCancelled {
		t.Errorf("got %s", got.Text)
	}
}

// FuzzArguments calls a tool with whatever a model may write: the result is
// always JSON, and the tool runs only with arguments that fit its schema.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "{}", `{"path":"a"}`, `{"path":"a","size":3}`, `{"path":"\ud800"}`, `{"path":"a","path":1}`, "[1]", "nul", `{"path":"a"}x`} {
		f.Add(s)
	}
	c, err := NewCatalogue(New(Definition{Name: "f", Parameters: SchemaOf[arguments]()}, func(_ context.Context, a arguments) (any, error) {
		if a.Path == "" || a.Mode != "" && a.Mode != "write" && a.Mode != "append" || a.Size != nil && (*a.Size < 1 || *a.Size > 9) {
			panic("ran with bad arguments")
		}
		return a, nil
	}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := c.Call(t.Context(), "f", s)
		var got struct{ Success bool }
		if err := json.Unmarshal([]byte(r.Text), &got); err != nil || got.Success == r.Failed() {
			t.Errorf("%q: %s", s, r.Text)
		}
	})
}
