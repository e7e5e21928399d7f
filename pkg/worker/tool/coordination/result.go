// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"cmp"
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/taskresult"
	"github.com/platform-ai/platform/pkg/tool"
)

// Limits of a row, in bytes.
const (
	maxResult  = 50_000
	maxSummary = 4096
	maxData    = 32 << 10
)

// row is what a coordinator reads about a child.
type row struct {
	Task  string             `json:"task"`
	Agent string             `json:"agent,omitempty"`
	Phase v1alpha1.TaskPhase `json:"phase"`
	// Result is the child's result, without a diff.
	Result string `json:"result,omitempty"`
	// ResultTruncated is set if the end of a long result is missing.
	ResultTruncated bool `json:"resultTruncated,omitempty"`
	structured
	// WorkspaceRef and WorkspaceBranch are those of the child's spec.workspace, WorkspaceStatus is the state of its delivery, and PullRequest the
	// address of its pull request.
	WorkspaceRef    string                     `json:"workspaceRef,omitempty"`
	WorkspaceBranch string                     `json:"workspaceBranch,omitempty"`
	WorkspaceStatus v1alpha1.TaskDeliveryState `json:"workspaceStatus,omitempty"`
	PullRequest     string                     `json:"pullRequest,omitempty"`
	Iteration       string                     `json:"iteration,omitempty"`
	FailureDetails  *failureDetails            `json:"failureDetails,omitempty"`
	// Retried is set if the child failed and was delegated again, as RetryTaskName.
	Retried       bool   `json:"retried,omitempty"`
	RetryTaskName string `json:"retryTaskName,omitempty"`
	// ExecutionOutcome is how the work ended, if that was recorded before the task ended.
	ExecutionOutcome *v1alpha1.TaskExecutionOutcome `json:"executionOutcome,omitempty"`
	// Error says, with its type and with advice as of a failed call, why there is nothing to read about this name.
	Error      string         `json:"error,omitempty"`
	ErrorType  tool.ErrorType `json:"errorType,omitempty"`
	Suggestion string         `json:"suggestion,omitempty"`
}

// structured are the parts of a structured result that a coordinator reads by themselves.
type structured struct {
	Summary    string                        `json:"summary,omitempty"`
	Verdict    v1alpha1.TaskVerdict          `json:"verdict,omitempty"`
	Feedback   string                        `json:"feedback,omitempty"`
	Files      []string                      `json:"files,omitempty"`
	Data       *apiextensionsv1.JSON         `json:"data,omitempty"`
	Artifacts  []v1alpha1.TaskResultArtifact `json:"artifacts,omitempty"`
	BaseSHA    string                        `json:"baseSHA,omitempty"`
	HeadSHA    string                        `json:"headSHA,omitempty"`
	PushBranch string                        `json:"pushBranch,omitempty"`
}

// failureDetails are in the row of a failed child that was delegated with auto_retry. Nothing is repeated by itself.
type failureDetails struct {
	Message    string `json:"message"`
	RetryCount int    `json:"retryCount"`
	MaxRetries int    `json:"maxRetries"`
}

// row returns what there is to read about a child.
func (f *family) row(ctx context.Context, t *v1alpha1.Task) (row, error) {
	r := row{
		Task: t.Name, Agent: agentOf(t), Phase: cmp.Or(t.Status.Phase, v1alpha1.TaskPending), Iteration: t.Labels[v1alpha1.LabelIteration],
		ExecutionOutcome: t.Status.ExecutionOutcome,
	}
	if !t.Status.Phase.Terminal() {
		return r, nil
	}
	text, stored, err := f.result(ctx, t)
	if err != nil {
		return r, err
	}
	if stored {
		r.read(text)
	}
	r.deliver(t)
	if t.Status.Phase == v1alpha1.TaskFailed {
		r.fail(t)
	}
	return r, nil
}

// result returns the result of a child that has ended; false if it has none.
func (f *family) result(ctx context.Context, t *v1alpha1.Task) (string, bool, error) {
	if ref := t.Status.ResultRef; ref == nil || !ref.Available {
		return "", false, nil
	}
	var stored v1alpha1.TaskResult
	err := f.api.CoreV1alpha1().RESTClient().Get().Namespace(t.Namespace).Resource("tasks").Name(t.Name).SubResource("result").Do(ctx).Into(&stored)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, err
	}
	return stored.Result, true, nil
}

// fail adds why the child failed.
func (r *row) fail(t *v1alpha1.Task) {
	if t.Annotations[v1alpha1.AnnotationAutoRetry] != "true" {
		r.Result = cmp.Or(r.Result, t.Status.Message)
		return
	}
	r.FailureDetails = &failureDetails{
		Message: t.Status.Message, RetryCount: retries(t, v1alpha1.AnnotationRetryCount), MaxRetries: retries(t, v1alpha1.AnnotationMaxRetries),
	}
}

// read takes a result, which is plain text or has parts.
func (r *row) read(text string) {
	if parts := taskresult.Parse(text); parts != nil {
		r.structured = structured{
			Verdict: parts.Verdict, Feedback: parts.Feedback, Files: parts.Files, Data: parts.Data, Artifacts: parts.Artifacts,
			BaseSHA: parts.BaseSHA, HeadSHA: parts.HeadSHA, PushBranch: parts.PushBranch,
		}
		r.Summary, _ = cut(parts.Summary, maxSummary)
		if parts.Data != nil && len(parts.Data.Raw) > maxData {
			r.Data = nil
		}
	}
	r.Result, r.ResultTruncated = cut(taskresult.WithoutDiff(text), maxResult)
}

// deliver adds what is known of the child's repository, which replaces what the child says about it.
func (r *row) deliver(t *v1alpha1.Task) {
	w, d := t.Spec.Workspace, t.Status.Delivery
	if w == nil {
		return
	}
	r.WorkspaceRef, r.WorkspaceBranch = w.Ref, w.Branch
	r.BaseSHA, r.HeadSHA, r.PushBranch = "", "", ""
	if d == nil {
		return
	}
	r.WorkspaceStatus, r.BaseSHA = d.State, d.StartingSHA
	if d.VerifiedRemoteSHA != "" {
		r.HeadSHA, r.PushBranch = d.VerifiedRemoteSHA, d.Branch
	}
	if pr := d.PRReceipt; pr != nil {
		r.PullRequest = pr.URL
	}
}

// cut returns at most limit bytes of a text, and whether something is missing.
func cut(s string, limit int) (string, bool) {
	return clip.Text(s, limit), len(s) > limit
}
