// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// callsOfTask returns the calls that the events of a task show, in their order, with the arguments that were kept. The server
// keeps those of each call; of tasks that are older than this record, and of calls for which it had no room, approvals and
// transcripts have some.
func callsOfTask(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) ([]testedCall, error) {
	task, err := c.Tasks(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	calls, err := callsOfEvents(ctx, c, task)
	if err != nil || len(calls) == 0 {
		return calls, err
	}
	found := keptArguments{}
	for _, add := range []func(context.Context, typed.CoreV1alpha1Interface, *v1alpha1.Task) error{found.ofRecord, found.ofApprovals, found.ofTranscript} {
		if found.complete(calls) {
			break
		}
		if err := add(ctx, c, task); err != nil {
			return nil, err
		}
	}
	repeated := map[callKey]int{}
	for i := range calls {
		repeated[calls[i].key.ofAnyAttempt()]++
	}
	for i := range calls {
		k, ok := found[calls[i].key]
		if one := calls[i].key.ofAnyAttempt(); (!ok || k.partly != "") && repeated[one] == 1 && found[one].source != "" {
			k, ok = found[one], true
		}
		switch {
		case !ok:
			calls[i].NotJudged = "its arguments were not kept"
		case k.partly != "":
			calls[i].NotJudged = k.partly
		default:
			calls[i].Source, calls[i].arguments = k.source, k.arguments
			calls[i].Kind = cmp.Or(calls[i].Kind, k.kind)
		}
	}
	return calls, nil
}

// callKey names a call. Ids may repeat in another attempt.
type callKey struct {
	attempt  int32
	id, tool string
}

// ofAnyAttempt is the key where the attempt is not known.
func (k callKey) ofAnyAttempt() callKey { return callKey{0, k.id, k.tool} }

// callsOfEvents returns the calls that were made, denied or held for approval.
func callsOfEvents(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) ([]testedCall, error) {
	var calls []testedCall
	place := map[callKey]int{}
	var attempt int32
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
				attempt = contentOf(e).Attempt
				continue
			case v1alpha1.EventToolCallStarted:
				verdict = v1alpha1.ToolCallAllowed
			case v1alpha1.EventToolCallJudged:
				verdict = contentOf(e).Verdict
			default:
				continue
			}
			key := callKey{attempt, e.ToolCallID, e.ToolName}
			at, seen := place[key]
			if !seen {
				at = len(calls)
				place[key] = at
				calls = append(calls, testedCall{Task: task.Name, Tool: e.ToolName, Kind: contentOf(e).Kind, CallID: e.ToolCallID, key: key})
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

// eventContent is what events say about attempts, verdicts and tools.
type eventContent struct {
	Attempt int32                    `json:"attempt"`
	Verdict v1alpha1.ToolCallVerdict `json:"verdict"`
	// Kind is that of a coding agent's tool.
	Kind string `json:"kind"`
}

func contentOf(e *v1alpha1.ExecutionEvent) (content eventContent) {
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &content) != nil {
		return eventContent{}
	}
	return content
}

// keptArguments are the arguments of calls that something else than events keeps.
type keptArguments map[callKey]kept

type kept struct {
	source    string
	kind      string
	arguments json.RawMessage
	// partly is set if only a part of the arguments was kept.
	partly string
}

// add adds the arguments of a call, unless they are known as completely.
func (k keptArguments) add(key callKey, one kept) {
	if old, known := k[key]; !known || old.partly != "" && one.partly == "" {
		k[key] = one
	}
}

// complete reports whether the arguments of all calls are known.
func (k keptArguments) complete(calls []testedCall) bool {
	return !slices.ContainsFunc(calls, func(c testedCall) bool { return k[c.key].source == "" || k[c.key].partly != "" })
}

// ofRecord adds those that the server keeps of each call.
func (k keptArguments) ofRecord(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) error {
	list, err := c.Tasks(task.Namespace).GetCalls(ctx, task.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil // an older server, or a caller who may read less
	}
	if err != nil {
		return err
	}
	for _, call := range list.Calls {
		if call.Arguments == nil {
			continue
		}
		one := kept{source: "record", kind: call.Kind, arguments: call.Arguments.Raw}
		if call.Redacted {
			one.partly = "its arguments are kept without secrets"
		}
		k.add(callKey{call.Attempt, call.CallID, call.ToolName}, one)
	}
	return nil
}

// ofApprovals adds those that people were asked about.
func (k keptArguments) ofApprovals(ctx context.Context, c typed.CoreV1alpha1Interface, task *v1alpha1.Task) error {
	list, err := c.Approvals(task.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.taskUID=" + string(task.UID)})
	if err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i].Spec
		if s.TargetArgsPreview == nil {
			continue
		}
		one := kept{source: "approval", arguments: s.TargetArgsPreview.Raw}
		if !approval.Exact(s) {
			one.partly = "its approval keeps the arguments without secrets or cut"
		}
		key := callKey{0, s.ToolCallID, s.TargetTool}
		if s.Binding != nil {
			key.attempt = s.Binding.TaskAttempt
		}
		k.add(key, one)
	}
	return nil
}

// ofTranscript adds those of the calls that the session of the task has. It does not say in which attempt they were made.
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
				if json.Valid([]byte(call.Arguments)) {
					k.add(callKey{0, call.ID, call.Name}, kept{source: "transcript", arguments: json.RawMessage(call.Arguments)})
				}
			}
		}
		if len(page.Items) < 2 || page.Items[0].Order <= 1 || page.Items[0].ID == through {
			return nil
		}
		through = page.Items[0].ID
	}
}
