// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"cmp"
	"context"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/tool/codehost"
)

// pullRequest has the arguments of create_pull_request.
type pullRequest struct {
	TaskName   string `json:"task_name"`
	HeadBranch string `json:"head_branch"`
	BaseBranch string `json:"base_branch"`
	Title      string `json:"title"`
	Body       string `json:"body,omitempty"`
}

// createPullRequest opens the pull request of a task that has published its changes.
func (b *Box) createPullRequest(ctx context.Context, a pullRequest) (any, error) {
	return b.codeHost(ctx, builtin.ChatCreatePullRequest, a.TaskName, a)
}

// checkPullRequestCI looks once at the checks of a pull request.
func (b *Box) checkPullRequestCI(ctx context.Context, a builtin.CheckCIArguments) (any, error) {
	raw, err := b.codeHost(ctx, builtin.ChatCheckPullRequestCI, a.TaskName, a)
	if err != nil {
		return nil, err
	}
	result := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "the server has answered with a result that is no object")
	}
	result["attempts"], result["wait_timed_out"] = json.RawMessage("1"), json.RawMessage("false")
	return result, nil
}

// codeHost makes a call on the code host of a task, as the caller: tasks/codehost of the task decides whether the caller may, and with
// which credential of the task the call is made.
func (b *Box) codeHost(ctx context.Context, of *builtin.Tool, task string, arguments any) (json.RawMessage, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil, tool.InvalidArguments("%v", err)
	}
	call := &v1alpha1.TaskCodeHostCall{ToolName: of.Name, CallID: cmp.Or(b.call, string(uuid.NewUUID())), Arguments: apiextensionsv1.JSON{Raw: raw}}
	answer, err := b.caller.CoreV1alpha1().Tasks(b.Namespace).CallCodeHost(ctx, task, call, metav1.CreateOptions{})
	switch {
	case err != nil:
		return nil, Explain(err)
	case answer.Failure != nil:
		return nil, codehost.Explain(answer.Failure)
	case answer.Result == nil:
		return nil, tool.Errorf(tool.TypeUnavailable, "the server has answered without a result")
	}
	return answer.Result.Raw, nil
}
