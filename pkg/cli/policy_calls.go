// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// callsOfTask returns the calls that the events of a task show, in their order, with the arguments that were kept. The server
// keeps those of each call; approvals and transcripts have those of some calls of tasks that are older than this record.
func callsOfTask(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) ([]testedCall, error) {
	task, err := c.Tasks(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	calls, err := recordedCalls(ctx, c, task)
	if err != nil || len(calls) == 0 {
		return calls, err
	}
	kept := keptArguments{}
	if err := kept.ofApprovals(ctx, c, task); err != nil {
		return nil, err
	}
	if err := kept.ofTranscript(ctx, c, task); err != nil {
		return nil, err
	}
	if err := kept.ofRecord(ctx, c, task); err != nil {
		return nil, err
	}
	for i := range calls {
		k, ok := kept[[2]string{calls[i].CallID, calls[i].Tool}]
		switch {
		case !ok:
			calls[i].NotJudged = "its arguments were not kept"
		case k.partly != "":
			calls[i].NotJudged = k.partly
		default:
			calls[i].Source, calls[i].arguments = k.source, k.arguments
		}
	}
	return calls, nil
}

// recordedCalls returns the calls that were made, denied or held for approval. The ids of calls may repeat in another
// attempt.
func recordedCalls(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) ([]testedCall, error) {
	var calls []testedCall
	place := map[string]int{}
	attempt := 0
	options := metav1.ListOptions{FieldSelector: "taskName=" + task.Name, Limit: 500}
	for {
		page, err := c.ExecutionEvents(task.Namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			e := &page.Items[i]
			var verdict v1alpha1.ToolCallVerdict
			switch e.Type {
			case v1alpha1.EventWorkerStarted:
				attempt++
				continue
			case v1alpha1.EventToolCallStarted:
				verdict = v1alpha1.ToolCallAllowed
			case v1alpha1.EventToolCallJudged:
				verdict = recordedVerdict(e)
			default:
				continue
			}
			key := strconv.Itoa(attempt) + "/" + e.ToolCallID + "/" + e.ToolName
			at, seen := place[key]
			if !seen {
				at = len(calls)
				place[key] = at
				calls = append(calls, testedCall{Task: task.Name, Tool: e.ToolName, CallID: e.ToolCallID})
			}
			if !seen || e.Type == v1alpha1.EventToolCallJudged {
				calls[at].Recorded = verdict
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return calls, nil
		}
	}
}

func recordedVerdict(e *v1alpha1.ExecutionEvent) v1alpha1.ToolCallVerdict {
	var content struct {
		Verdict v1alpha1.ToolCallVerdict `json:"verdict"`
	}
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &content) != nil {
		return ""
	}
	return content.Verdict
}

// keptArguments are the arguments of calls that something else than events keeps, by the id and the tool of the call.
type keptArguments map[[2]string]kept

type kept struct {
	source    string
	arguments json.RawMessage
	// partly is set if only a part of the arguments was kept.
	partly string
}

// ofApprovals adds those that people were asked about.
func (k keptArguments) ofApprovals(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) error {
	list, err := c.Approvals(task.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.taskUID=" + string(task.UID)})
	if err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i].Spec
		one := kept{source: "approval"}
		switch {
		case s.TargetArgsPreview == nil:
			continue
		case approval.Exact(s):
			one.arguments = s.TargetArgsPreview.Raw
		default:
			one.partly = "its approval keeps the arguments without secrets or cut"
		}
		k[[2]string{s.ToolCallID, s.TargetTool}] = one
	}
	return nil
}

// ofRecord adds those that the server keeps of each call, unless others are complete and these are not.
func (k keptArguments) ofRecord(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) error {
	list, err := c.Tasks(task.Namespace).GetCalls(ctx, task.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil // an older server, or a caller who may read less
	}
	if err != nil {
		return err
	}
	for _, call := range list.Calls {
		key := [2]string{call.CallID, call.ToolName}
		if old, known := k[key]; known && old.partly == "" && call.Redacted || call.Arguments == nil {
			continue
		}
		one := kept{source: "record", arguments: call.Arguments.Raw}
		if call.Redacted {
			one.partly = "its arguments are kept without secrets"
		}
		k[key] = one
	}
	return nil
}

// ofTranscript adds those of the calls that the session of the task has.
func (k keptArguments) ofTranscript(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) error {
	if task.Spec.SessionRef == nil {
		return nil
	}
	for through := ""; ; {
		page := &v1alpha1.SessionTranscript{}
		r := c.RESTClient().Get().Namespace(task.Namespace).Resource("sessions").Name(task.Spec.SessionRef.Name).SubResource("transcript").Param("newest", "500")
		if through != "" {
			r = r.Param("through", through)
		}
		if err := r.Do(ctx).Into(page); err != nil {
			return fmt.Errorf("session %s: %w", task.Spec.SessionRef.Name, err)
		}
		for _, m := range page.Items {
			for _, call := range m.ToolCalls {
				key := [2]string{call.ID, call.Name}
				if old, known := k[key]; (!known || old.partly != "") && json.Valid([]byte(call.Arguments)) {
					k[key] = kept{source: "transcript", arguments: json.RawMessage(call.Arguments)}
				}
			}
		}
		if len(page.Items) < 2 || page.Items[0].Order <= 1 || page.Items[0].ID == through {
			return nil
		}
		through = page.Items[0].ID
	}
}
