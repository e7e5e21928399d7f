// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// TestDefinitions: every tool that users choose from is described, in the order of the names, and no tool of coordination is among
// them.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	var names []string
	for _, d := range Definitions() {
		names = append(names, d.Name)
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(Definitions()) {
		t.Errorf("not in order, or twice: %q", names)
	}
	for name, listed := range map[string]bool{"code_exec": true, "recall_memory": true, "web_fetch": true, "delegate_task": false, "update_plan": false} {
		if !Has(name) || slices.Contains(names, name) != listed {
			t.Errorf("%s: a tool %v, which users choose from %v", name, Has(name), !listed)
		}
	}
	for _, b := range In(Runs) {
		if slices.Contains(names, b.Name) == b.Unlisted {
			t.Errorf("%s is described: %v", b.Name, b.Unlisted)
		}
	}
}

// TestCatalogue: the facts about a tool agree with each other, no place has two tools of one name, and models take what each place has.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	for _, place := range []Place{Runs, Chats, APIs} {
		var names []string
		for _, b := range In(place) {
			if slices.Contains(names, b.Name) {
				t.Errorf("two tools are named %s in place %b", b.Name, place)
			}
			names = append(names, b.Name)
			if found, ok := FindIn(place, b.Name); !ok || found != b {
				t.Errorf("%s is not found in place %b", b.Name, place)
			}
		}
	}
	for _, b := range all {
		d := b.Definition()
		if !tool.ValidName(d.Name) || d.Description == "" {
			t.Errorf("%q: %q", d.Name, d.Description)
		}
		if err := tool.CheckSchema(d.Parameters); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		runs := b.In&Runs != 0
		for what, wrong := range map[string]bool{
			"in no place":                                     b.In == 0,
			"without effects, and not absent":                 b.Absent == nil && b.Effects == 0,
			"absent, and in runs or with effects":             b.Absent != nil && (runs || b.Effects != 0),
			"automatic, unlisted or dispensable, not in runs": !runs && (b.Automatic != Named || b.Unlisted || b.Dispensable),
			"asked for in runs":                               runs && b.Asked != Anything,
			"trusted, and reads what nobody reviewed":         b.Trusted && b.Effects.Has(Sends),
			"proposes without writing":                        b.Proposes && !b.Effects.Has(Writes),
			"once without writing":                            b.Once && !b.Effects.Has(Writes),
		} {
			if wrong {
				t.Errorf("%s: %s", b.Name, what)
			}
		}
	}
}

// TestTypedArgumentsAreComplete: where policies see typed arguments, they see each argument of the schema.
func TestTypedArgumentsAreComplete(t *testing.T) {
	t.Parallel()
	some := map[string]any{"string": "http://example.com/a", "integer": 7, "boolean": true}
	seen := func(b *Tool, arguments map[string]any) v1alpha1.ToolCallSpec {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		s := v1alpha1.ToolCallSpec{Arguments: &apiextensionsv1.JSON{Raw: raw}}
		if err := b.Typed(&s); err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		s.Arguments = nil
		return s
	}
	typedTools := 0
	for _, b := range all {
		if b.Typed == nil {
			continue
		}
		typedTools++
		var schema struct {
			Properties map[string]struct{ Type string }
		}
		if err := json.Unmarshal(b.Schema(), &schema); err != nil {
			t.Fatal(err)
		}
		none := seen(b, map[string]any{})
		for name, p := range schema.Properties {
			value := some[p.Type]
			if reflect.DeepEqual(none, seen(b, map[string]any{name: value})) && (p.Type != "boolean" || reflect.DeepEqual(none, seen(b, map[string]any{name: false}))) {
				t.Errorf("%s: policies do not see the argument %s", b.Name, name)
			}
		}
	}
	members := 0
	for f := range reflect.TypeFor[v1alpha1.ToolCallSpec]().Fields() {
		if f.Type.Kind() == reflect.Pointer && strings.HasSuffix(f.Type.Elem().Name(), "Arguments") {
			members++
		}
	}
	if typedTools != members {
		t.Errorf("%d tools have typed arguments, and a ToolCall has %d members for them", typedTools, members)
	}
}

// TestTyped: what policies see of a call, and what they are told about arguments of another type.
func TestTyped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of              *Tool
		arguments, want string
	}{
		"code":        {CodeExec, `{"language":"sh","code":"ls","timeout":5}`, `{"codeExec":{"language":"sh","code":"ls","timeoutSeconds":5}}`},
		"wrong type":  {CodeExec, `{"timeout":"x"}`, `json: cannot unmarshal string into Go struct field .timeout of type int64`},
		"directories": {FileWrite, `{"path":"a"}`, `{"fileWrite":{"path":"a","content":"","mode":"","createDirs":true}}`},
		"host":        {WebFetch, `{"url":"https://Example.COM./x"}`, `{"webFetch":{"url":"https://Example.COM./x","host":"example.com","maxChars":0,"raw":false}}`},
	} {
		s := v1alpha1.ToolCallSpec{Arguments: &apiextensionsv1.JSON{Raw: []byte(c.arguments)}}
		err := c.of.Typed(&s)
		got := fmt.Sprint(err)
		if err == nil {
			raw, err := json.Marshal(struct {
				CodeExec  *v1alpha1.CodeExecArguments  `json:"codeExec,omitempty"`
				FileWrite *v1alpha1.FileWriteArguments `json:"fileWrite,omitempty"`
				WebFetch  *v1alpha1.WebFetchArguments  `json:"webFetch,omitempty"`
			}{s.CodeExec, s.FileWrite, s.WebFetch})
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
