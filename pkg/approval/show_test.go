// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestArgumentsAreReadable(t *testing.T) {
	var exact bool // as the server says
	spec := func(arguments string) *v1alpha1.ApprovalSpec {
		digest, err := Digest([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		// As read from the log: with HTML escapes.
		event := RequestEvent("n", v1alpha1.ApprovalSpec{
			TaskName: "t", TaskUID: "u", TargetTool: "x", TargetArgsDigest: digest, TargetArgsPreview: &apiextensionsv1.JSON{Raw: Preview([]byte(arguments))},
		})
		a := &Fold([]*v1alpha1.ExecutionEvent{event})[0]
		exact = a.Status.ArgumentsExact
		return &a.Spec
	}
	s := spec(`{"command":"a && b > \"c\"\nrm -rf /\u202e","n":1.50}`)
	if got, want := Arguments(s), `{"command":"a && b > \"c\"\nrm -rf /\u202e","n":1.50}`; got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
	if got, want := strings.Join(Lines(s), "\n"), `{
  "command": (2 lines)
    | a && b > "c"
    | rm -rf /\u202e
  "n": 1.50
}`; got != want {
		t.Errorf("lines %s, want %s", got, want)
	}
	if !Exact(s) || !exact {
		t.Error("the preview is the arguments")
	}
	for name, arguments := range map[string]string{
		"a secret": `{"password":"correct-horse-battery","n":1}`,
		"a length": `{"text":"` + strings.Repeat("x ", 8<<10) + `"}`,
	} {
		if s := spec(arguments); Exact(s) || exact || Arguments(s) == "" {
			t.Errorf("a preview without %s passes for the arguments", name)
		}
	}
	if none := (&v1alpha1.ApprovalSpec{}); Exact(none) || Arguments(none) != "" || Lines(none) != nil {
		t.Error("no preview")
	}
}

// TestNothingIsOutOfView: emptiness that would move what is dangerous out of view takes one line, which says how much it is.
func TestNothingIsOutOfView(t *testing.T) {
	raw, err := json.Marshal(map[string]any{
		"command": "ls\n" + strings.Repeat(" \n", 29) + "rm -rf ~\n\n| x", "line": "ls" + strings.Repeat(" ", 900) + "; rm -rf ~",
		"deep": []any{map[string]any{"a": "1\n2"}, []any{}, nil}, "none": map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(Lines(&v1alpha1.ApprovalSpec{TargetArgsPreview: &apiextensionsv1.JSON{Raw: raw}}), "\n")
	want := `{
  "command": (33 lines, 30 of them blank)
    | ls
    (29 blank lines)
    | rm -rf ~
    | 
    | | x
  "deep": [
    {
      "a": (2 lines)
        | 1
        | 2
    },
    [],
    null
  ],
  "line": "ls⟨900 spaces⟩; rm -rf ~",
  "none": {}
}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
