// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"cmp"
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
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
	Iteration      string          `json:"iteration,omitempty"`
	FailureDetails *failureDetails `json:"failureDetails,omitempty"`
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
	Summary    string          `json:"summary,omitempty"`
	Verdict    string          `json:"verdict,omitempty"`
	Feedback   string          `json:"feedback,omitempty"`
	Files      []string        `json:"files,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Artifacts  json.RawMessage `json:"artifacts,omitempty"`
	BaseSHA    string          `json:"baseSHA,omitempty"`
	HeadSHA    string          `json:"headSHA,omitempty"`
	PushBranch string          `json:"pushBranch,omitempty"`
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
	if ref := t.Status.ResultRef; ref != nil && ref.Available {
		var stored v1alpha1.TaskResult
		err := f.api.CoreV1alpha1().RESTClient().Get().Namespace(t.Namespace).Resource("tasks").Name(t.Name).SubResource("result").Do(ctx).Into(&stored)
		if err != nil && !apierrors.IsNotFound(err) {
			return r, err
		}
		r.read(stored.Result)
	}
	if t.Status.Phase == v1alpha1.TaskFailed {
		r.fail(t)
	}
	return r, nil
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

// read takes a result, which is plain text or a structured result: an object with a version.
func (r *row) read(text string) {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && string(object["version"]) == "1" {
		if json.Unmarshal([]byte(text), &r.structured) != nil {
			r.structured = structured{} // some field has another type, so it is read as a text
		}
		delete(object, "diff")
		if shorter, err := json.Marshal(object); err == nil {
			text = string(shorter)
		}
		r.Summary, _ = cut(r.Summary, maxSummary)
		if len(r.Data) > maxData {
			r.Data = nil
		}
	}
	r.Result, r.ResultTruncated = cut(text, maxResult)
}

// cut returns at most limit bytes of a text, and whether something is missing.
func cut(s string, limit int) (string, bool) {
	return clip.Text(s, limit), len(s) > limit
}
