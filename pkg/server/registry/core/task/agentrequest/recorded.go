// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentrequest

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// What is said is numbered as agentloop.Recording does it, by this server instead of the worker, for all attempts of a task: what was
// said before is not stored again. A server that starts in the middle of a task reads which parts are stored. What does not fit, such
// as a part of more than 1 MiB, is shown as missing.

// maxKept is how many stored parts are known after a restart.
const maxKept = 1 << 16

// mode returns how much is recorded of a request.
func (r *Requests) mode(ctx context.Context, t *v1alpha1.Task) (v1alpha1.RecordingMode, error) {
	ref := t.Spec.AgentRef.In(t.Namespace)
	agent, err := r.o.Agent(request.WithNamespace(ctx, ref.Namespace), ref.Name)
	switch {
	case apierrors.IsNotFound(err): // nobody says that it may be recorded
		return v1alpha1.RecordingOff, nil
	case err != nil:
		return "", err
	case agent.Spec.Recording != nil:
		return cmp.Or(agent.Spec.Recording.Mode, r.o.Recording), nil
	}
	return r.o.Recording, nil
}

// records reports whether what the request says is recorded.
func (c call) records() bool { return c.asked.Said != nil && c.mode != v1alpha1.RecordingOff }

// start stores the event with which the request begins.
func (c call) start(ctx context.Context, e *v1alpha1.ExecutionEvent) error {
	of, p := c.run.of, c.progress
	if !c.records() {
		return of.o.Events.Add(ctx, c.run.Task, e)
	}
	c.asked.Said.Wanted = true
	said := c.asked.Said.Request()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said == nil {
		next, kept, err := of.o.Recordings.Known(ctx, c.run.UID, e.Attempt, maxKept)
		if err != nil {
			return err
		}
		p.said = agentloop.ResumeRecording(next, kept)
	}
	e.Recording = p.said.Asked(c.mode, said.Conversation, said.Tools, said.Parameters)
	err := of.o.Events.Add(ctx, c.run.Task, e)
	if err != nil {
		p.said.Undo()
	}
	return err
}

// end stores the event with which it ends.
func (c call) end(e *v1alpha1.ExecutionEvent, lost func(error)) {
	if !c.records() {
		c.run.of.o.Events.AddEnd(c.ctx, c.run.Task, e, lost)
		return
	}
	m := c.asked.Said.Answer()
	c.progress.mu.Lock()
	defer c.progress.mu.Unlock()
	e.Recording = c.progress.said.Answered(c.mode, m)
	c.run.of.o.Events.AddEnd(c.ctx, c.run.Task, e, lost)
}
