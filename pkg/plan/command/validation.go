// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// validateScript runs the lines that it is given one after the other in one shell, until one fails. What they print, also about errors,
// is the result. A line is evaluated by itself, because set -e alone goes on after a line such as "false && true".
const validateScript = `exec 2>&1
set -e
for line do
	printf '$ %s\n' "$line"
	eval "$line"
	code=$?
	[ "$code" -eq 0 ] || exit "$code"
done`

// Validation returns what the tool run_validation of a task runs as a task of its own: the commands of the task's monitor, in its image, on
// the commit that the task reviews, with no credential but that for reading. It is nil for a task that has no such tool. A task that was
// delegated has none, because whoever delegates writes the annotations of its children.
func Validation(t *v1alpha1.Task) *v1alpha1.TaskSpec {
	w, raw := t.Spec.Workspace, t.Annotations[v1alpha1.AnnotationMonitorValidation]
	if raw == "" || w == nil || w.GitRepo == "" || t.Status.Delegation != nil {
		return nil
	}
	var of struct {
		Image    string   `json:"image"`
		Commands []string `json:"commands"`
	}
	if err := json.Unmarshal([]byte(raw), &of); err != nil || of.Image == "" || len(of.Commands) == 0 {
		return nil
	}
	return &v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeContainer, Image: of.Image, Command: append([]string{"sh", "-c", validateScript, "run_validation"}, of.Commands...),
		Workspace: &v1alpha1.TaskWorkspace{
			Intent: v1alpha1.WorkspaceRead, GitRepo: w.GitRepo, Branch: w.Branch, Ref: w.Ref, SubPath: w.SubPath, ReadCredentialRef: w.ReadCredentialRef.DeepCopy(),
		},
	}
}

// Validates reports whether a child is the validation of its parent, which needs no agent that may delegate.
func Validates(parent, child *v1alpha1.Task) bool {
	want, s := Validation(parent), &child.Spec
	if want == nil {
		return false
	}
	is := &v1alpha1.TaskSpec{Type: s.Type, Image: s.Image, Command: s.Command, Args: s.Args, Workspace: s.Workspace, AgentRef: s.AgentRef, PriorTaskRef: s.PriorTaskRef, SecretRef: s.SecretRef, Env: s.Env}
	return equality.Semantic.DeepEqual(want, is)
}

// Exited is what is said of a command that ended with an exit code other than 0.
func Exited(code int) string { return fmt.Sprintf("the command ended with exit code %d", code) }

var exited = regexp.MustCompile(`^the command ended with exit code (\d{1,3})$`)

// ExitCode returns the exit code that Exited says; false if a message says none.
func ExitCode(message string) (int, bool) {
	found := exited.FindStringSubmatch(message)
	if found == nil {
		return 0, false
	}
	code, err := strconv.Atoi(found[1])
	return code, err == nil
}
