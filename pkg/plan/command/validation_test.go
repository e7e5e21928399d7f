// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os/exec"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func reviewing(image string, commands string) *v1alpha1.Task {
	t := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Workspace: &v1alpha1.TaskWorkspace{
		GitRepo: "https://github.com/o/r", Ref: "abc", ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"}, ForgeCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "writer"},
	}}}
	t.Annotations = map[string]string{v1alpha1.AnnotationMonitorValidation: `{"image":"` + image + `","commands":` + commands + `}`}
	return t
}

// TestValidation: a reviewer validates what its monitor says, on its own commit and without a credential that writes, and nothing else.
func TestValidation(t *testing.T) {
	t.Parallel()
	parent := reviewing("a@sha256:0", `["make"]`)
	spec := Validation(parent)
	if spec == nil || spec.Workspace.Ref != "abc" || spec.Workspace.ReadCredentialRef.Name != "reader" || spec.Workspace.ForgeCredentialRef != nil || spec.Workspace.Intent != v1alpha1.WorkspaceRead {
		t.Fatalf("%+v", spec)
	}
	for name, change := range map[string]func(parent, child *v1alpha1.Task){
		"":                     func(_, _ *v1alpha1.Task) {},
		"another image":        func(_, c *v1alpha1.Task) { c.Spec.Image = "b" },
		"another command":      func(_, c *v1alpha1.Task) { c.Spec.Command[4] = "make deploy" },
		"more arguments":       func(_, c *v1alpha1.Task) { c.Spec.Args = []string{"id"} },
		"another commit":       func(_, c *v1alpha1.Task) { c.Spec.Workspace.Ref = "def" },
		"no repository":        func(_, c *v1alpha1.Task) { c.Spec.Workspace = nil },
		"that writes":          func(_, c *v1alpha1.Task) { c.Spec.Workspace.Intent = v1alpha1.WorkspaceWrite },
		"an agent":             func(_, c *v1alpha1.Task) { c.Spec.AgentRef = &v1alpha1.NamespacedReference{Name: "x"} },
		"a Secret":             func(_, c *v1alpha1.Task) { c.Spec.SecretRef = &v1alpha1.NamespacedReference{Name: "x"} },
		"of a delegated task":  func(p, _ *v1alpha1.Task) { p.Status.Delegation = &v1alpha1.TaskDelegation{} },
		"without the monitor":  func(p, _ *v1alpha1.Task) { p.Annotations = nil },
		"of what is no object": func(p, _ *v1alpha1.Task) { p.Annotations[v1alpha1.AnnotationMonitorValidation] = "[" },
	} {
		p, c := parent.DeepCopy(), &v1alpha1.Task{Spec: *spec.DeepCopy()}
		change(p, c)
		if Validates(p, c) != (name == "") {
			t.Errorf("%q: %v", name, name != "")
		}
	}
}

// TestScript: the lines run in one shell until one fails, and what they print about errors is in the output.
func TestScript(t *testing.T) {
	t.Parallel()
	for commands, want := range map[string]string{
		`["cd /","pwd"]`:                         "$ cd /\n$ pwd\n/\n 0",
		`["false && true","echo no"]`:            "$ false && true\n 1",
		`["false; true","echo no"]`:              "$ false; true\n 1",
		`["(exit 7)","echo no"]`:                 "$ (exit 7)\n 7",
		`["echo oops >&2","true || false"]`:      "$ echo oops >&2\noops\n$ true || false\n 0",
		`["if false; then echo a; fi","exit 3"]`: "$ if false; then echo a; fi\n$ exit 3\n 3",
	} {
		c := Validation(reviewing("a", commands)).Command
		run := exec.CommandContext(t.Context(), c[0], c[1:]...)
		out, _ := run.Output()
		code := run.ProcessState.ExitCode()
		if got := string(out) + " " + string(rune('0'+code)); got != want {
			t.Errorf("%s: %q, want %q", commands, got, want)
		}
	}
}

// TestExitCode: the exit code of a command is in what is said of it, and in nothing else.
func TestExitCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{Exited(3): 3, Exited(255): 255, "the command was ended by killed": -1, Exited(3) + " x": -1} {
		if code, ok := ExitCode(text); ok != (want >= 0) || ok && code != want {
			t.Errorf("%s: %d %v", text, code, ok)
		}
	}
}
