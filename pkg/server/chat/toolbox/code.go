// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/tool/exec"
)

const (
	// maxCodeOutput is how much of what a program wrote the model reads, in bytes.
	maxCodeOutput = 16 << 10
	// maxCodeLog is how much of the log of a program that failed is shown, in lines.
	maxCodeLog = 50
)

// codeTool runs programs as tasks of the caller: the server itself runs none, so the sandbox, the limits and the policies of
// tasks hold for them.
type codeTool struct{ *Box }

// Definition is that of the catalogue.
func (codeTool) Definition() tool.Definition { return builtin.ChatCodeExec.Definition() }

// codeResult is the result of a program that ran.
type codeResult struct {
	Task            string `json:"task"`
	Output          string `json:"output"`
	Error           string `json:"error,omitempty"`
	TimedOut        bool   `json:"timed_out"`
	OutputTruncated bool   `json:"output_truncated"`
}

// Failed says how the program failed.
func (r *codeResult) Failed() string { return r.Error }

// Call creates the task, waits for it, and reads what it printed.
func (c codeTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	var a builtin.CodeArguments
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, tool.InvalidArguments("%v", err)
	}
	command, err := exec.CommandLine(a)
	if err != nil {
		return nil, err
	}
	made, err := c.newTask(ctx, fmt.Sprintf("code-%d", c.created+1), "", (time.Duration(exec.Seconds(a)) * time.Second).String(),
		v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: command})
	if err != nil {
		return nil, err
	}
	if _, err := c.waitForTask(ctx, builtin.WaitArguments{Name: made.Name, Timeout: ptr.To(int64(maxWait / time.Second))}); err != nil {
		return nil, err
	}
	t, err := c.task(ctx, builtin.TaskArguments{Name: made.Name})
	if err != nil {
		return nil, err
	}
	return c.outcome(ctx, t)
}

// outcome returns what the program of a task printed, or why it did not run.
func (c codeTool) outcome(ctx context.Context, t *v1alpha1.Task) (any, error) {
	reason := ""
	if failed := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionFailed); failed != nil {
		reason = failed.Reason
	}
	out := &codeResult{Task: t.Name}
	switch {
	case !t.Status.Phase.Terminal():
		return nil, tool.Errorf(tool.TypeTimeout, "the program has not ended yet: its task %s is %s", t.Name, phaseOf(t)).
			Suggest("wait for it with wait_for_task, then read what it printed with fetch_task_output")
	case t.Status.Phase == v1alpha1.TaskSucceeded:
	case reason == v1alpha1.ReasonCommandFailed, reason == v1alpha1.ReasonTimedOut:
		out.TimedOut = reason == v1alpha1.ReasonTimedOut
		out.Error = t.Status.Message
		if log := c.log(ctx, t.Name); log != "" {
			out.Error += "\n" + log
		}
	default:
		return nil, tool.Errorf(tool.TypeUnavailable, "the program was not run: task %s is %s: %s", t.Name, t.Status.Phase, t.Status.Message)
	}
	result, err := c.output(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	out.Output = clip.Marked(result, maxCodeOutput)
	out.OutputTruncated = out.Output != result
	return out, nil
}

// log returns the end of a task's log, in which a program's errors are; "" if the caller may not read it.
func (c codeTool) log(ctx context.Context, name string) string {
	raw, err := c.caller.CoreV1alpha1().RESTClient().Get().Namespace(c.Namespace).Resource("tasks").Name(name).SubResource("log").
		Param("tailLines", strconv.Itoa(maxCodeLog)).DoRaw(ctx)
	if err != nil {
		return ""
	}
	return clip.Marked(string(raw), maxCodeOutput)
}
