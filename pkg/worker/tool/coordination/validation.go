// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/command"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

const (
	// defaultValidation is how long a validation may take if the call does not say it.
	defaultValidation = 30 * time.Minute
	// validationGrace is how long the end of a validation whose time is over is waited for.
	validationGrace = 2 * time.Minute
	// maxValidationOutput is how much of the end of what the commands printed the model reads, in bytes.
	maxValidationOutput = 16 << 10
)

// Outcomes of a validation.
const (
	validationPassed = "passed"
	validationFailed = "failed"
	// validationError is for commands that did not run to their end, which says nothing about the head.
	validationError = "error"
)

// validated is the result of run_validation.
type validated struct {
	Status string `json:"status"`
	// ExitCode is that of the first command that failed; nil if none ended by itself.
	ExitCode *int `json:"exit_code,omitempty"`
	// Output is the end of what the commands printed, which is data.
	Output          string `json:"output"`
	OutputTruncated bool   `json:"output_truncated,omitempty"`
	TaskName        string `json:"task_name,omitempty"`
	HeadSHA         string `json:"head_sha"`
	Message         string `json:"message"`
}

var _ tool.TaskMaker = validated{}

// Child returns the task that ran the commands.
func (v validated) Child() tool.ChildTask { return tool.ChildTask{Name: v.TaskName} }

type validateTool struct{ *family }

var _ tool.Tool = validateTool{}

// Definition describes the tool.
func (validateTool) Definition() tool.Definition { return builtin.RunValidation.Definition() }

// Call runs the commands of the monitor as a child, and waits for it. What is run is in the annotations of the run's task; the server
// permits nothing else to a reviewer.
func (t validateTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[struct {
		Timeout string `json:"timeout"`
	}](raw)
	if err != nil {
		return nil, err
	}
	limit := defaultValidation
	if a.Timeout != "" {
		if limit, err = timeoutOf("timeout", a.Timeout); err != nil {
			return nil, err
		}
	}
	spec := command.Validation(t.task)
	if spec == nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "the monitor of this task has no validation (spec.validation)")
	}
	out := validated{Status: validationError, HeadSHA: spec.Workspace.Ref}
	child := &v1alpha1.Task{Spec: *spec}
	if err := t.complete(child, nil, a.Timeout); err != nil {
		return nil, err
	}
	made, err := t.create(ctx, child)
	if refused, ok := refusedChild(err); ok {
		out.Message = "the validation was not run: " + refused
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.TaskName = made.Name
	done, err := t.end(ctx, made.Name, limit)
	if err != nil {
		return nil, err
	}
	return out, t.read(ctx, done, &out)
}

// refusedChild returns why the server refuses the child, which a repeated call does not change.
func refusedChild(err error) (string, bool) {
	refused, ok := errors.AsType[*tool.Error](err)
	if !ok || refused.Type != tool.TypePermissionDenied && refused.Type != tool.TypeInvalidArguments {
		return "", false
	}
	return refused.Message, true
}

// end returns the child when it has ended. One that takes longer than the limit is cancelled.
func (t validateTool) end(ctx context.Context, name string, limit time.Duration) (*v1alpha1.Task, error) {
	wait := waitTool(t)
	done, err := wait.within(ctx, []string{name}, limit+validationGrace)
	if err != nil {
		return nil, err
	}
	if c := done.children[0]; c.Status.Phase.Terminal() {
		return c, nil
	}
	err = t.persist(ctx, func() error {
		_, err := t.api.CoreV1alpha1().Tasks(t.task.Namespace).Cancel(ctx, name, &v1alpha1.TaskCancellation{Reason: "the validation took too long"}, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsConflict(err) {
		return nil, toolkit.Explain(ctx, err)
	}
	if done, err = wait.within(ctx, []string{name}, validationGrace); err != nil {
		return nil, err
	}
	return done.children[0], nil
}

// read fills in how the child ended.
func (t validateTool) read(ctx context.Context, child *v1alpha1.Task, out *validated) error {
	text, _, err := t.result(ctx, child)
	if err != nil {
		return toolkit.Explain(ctx, err)
	}
	if cut := len(text) - maxValidationOutput; cut > 0 {
		text, out.OutputTruncated = strings.ToValidUTF8(text[cut:], ""), true
	}
	out.Output = text
	reason := ""
	if failed := meta.FindStatusCondition(child.Status.Conditions, v1alpha1.ConditionFailed); failed != nil {
		reason = failed.Reason
	}
	said := cmp.Or(child.Status.Message, string(child.Status.Phase))
	code, exited := command.ExitCode(said)
	switch {
	case child.Status.Phase == v1alpha1.TaskSucceeded:
		out.Status, out.ExitCode, out.Message = validationPassed, new(0), "all commands have succeeded"
	case reason == v1alpha1.ReasonCommandFailed && exited:
		out.Status, out.ExitCode, out.Message = validationFailed, &code, fmt.Sprintf("a command has failed: %s", said)
	case reason == v1alpha1.ReasonCommandFailed:
		out.Status, out.Message = validationFailed, said
	case !child.Status.Phase.Terminal():
		out.Message = fmt.Sprintf("the validation has not ended: its task is %s", said)
	default:
		out.Message = fmt.Sprintf("the validation did not run to its end: its task is %s: %s", child.Status.Phase, said)
	}
	return nil
}
