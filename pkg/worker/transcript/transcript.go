// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcript reads what was said in the session of a run's task.
package transcript

import (
	"context"
	"fmt"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// maxPage is how many messages the server returns in one page.
const maxPage = 500

// Read returns the newest messages of a task's session, oldest first: as many as the task or its agent, which may be nil, says, and none after
// sessionRef.throughMessageId. There are none without a session. With sessionRef.promptIncluded the last one is the prompt.
func Read(ctx context.Context, api *client.API, t *v1alpha1.Task, agent *v1alpha1.Agent) ([]v1alpha1.SessionMessage, error) {
	ref := t.Spec.SessionRef
	if ref == nil {
		return nil, nil
	}
	all, err := read(ctx, api, t, plan.History(&t.Spec, agent))
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", ref.Name, err)
	}
	if plan.PromptInSession(&t.Spec) && (len(all) == 0 || all[len(all)-1].Role != v1alpha1.RoleUser) {
		return nil, runner.Fail(v1alpha1.ReasonReferenceInvalid, "session %s: sessionRef.promptIncluded is set, but its last message is not one of the user", ref.Name)
	}
	return all, nil
}

func read(ctx context.Context, api *client.API, t *v1alpha1.Task, want int) ([]v1alpha1.SessionMessage, error) {
	var all []v1alpha1.SessionMessage
	for through := t.Spec.SessionRef.ThroughMessageID; ; {
		// Each further page ends with the first message of the previous page.
		again := min(len(all), 1)
		page, err := newest(ctx, api, t, min(want-len(all)+again, maxPage), through)
		if err != nil {
			return nil, err
		}
		fresh := len(page) - again
		if fresh <= 0 {
			return all, nil
		}
		all = append(page[:fresh:fresh], all...)
		if len(all) >= want || all[0].Order == 1 {
			return all, nil
		}
		through = all[0].ID
	}
}

// newest reads the n newest messages up to the one that has the id through.
func newest(ctx context.Context, api *client.API, t *v1alpha1.Task, n int, through string) ([]v1alpha1.SessionMessage, error) {
	page := &v1alpha1.SessionTranscript{}
	req := api.CoreV1alpha1().RESTClient().Get().Namespace(t.Namespace).Resource("sessions").Name(t.Spec.SessionRef.Name).
		SubResource("transcript").Param("newest", strconv.Itoa(n))
	if through != "" {
		req = req.Param("through", through)
	}
	err := req.Do(ctx).Into(page)
	return page.Items, err
}
