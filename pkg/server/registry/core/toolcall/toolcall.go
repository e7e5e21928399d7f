// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolcall serves toolcalls: a worker creates one before each call of a tool, and is answered with the verdict
// of the ValidatingAdmissionPolicies that match. The object is not stored. Of a worker's call, its arguments without
// secrets are kept with the task, and there is an event about a call that a policy objected to.
//
// The server completes a call before it is judged: the facts about the task and the tool come from the stored
// objects, and the arguments of built-in tools are typed, so a policy that misspells one does not compile. Whatever
// goes wrong while a policy is evaluated denies the call, whatever the binding's actions are. A finding requires approval if
// its policy has the label platform.ai/require-approval and its binding audits.
//
// Verdicts restrain agents, and are no security boundary: a worker that is taken over could make a call without asking.
//
// A policy's message may quote arguments, which may hold a secret of the run. Only the worker knows these, so it names those that
// occur in the arguments (spec.sensitive). Policies do not see them, and they are removed, in whole and in parts, from the
// verdict before it is answered or recorded.
package toolcall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	admissionregistrationv1 "k8s.io/client-go/listers/admissionregistration/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Tasks is what this package needs of tasks, in the namespace of the request. Errors are API errors.
type Tasks interface {
	// Get reads a task.
	Get(ctx context.Context, name string) (*v1alpha1.Task, error)
	// Verified reports whether the requester of a task is the one that this server recorded.
	Verified(t *v1alpha1.Task) bool
	// Uncovered returns why the transaction of a task does not cover a tool; empty if it does.
	Uncovered(ctx context.Context, t *v1alpha1.Task, tool string) string
	// Judged appends the event about a verdict to the task's stream.
	Judged(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error
	// KeepCall keeps a call of the task, once for each id.
	KeepCall(ctx context.Context, t *v1alpha1.Task, id string, c *v1alpha1.TaskCall) error
}

// Options are what toolcalls need. All fields are required.
type Options struct {
	Tasks Tasks
	Judge Judge
}

// Definition returns the resource toolcalls.
func Definition(o Options, guard resource.Guard[*v1alpha1.ToolCall]) resource.Resource {
	return &resource.Definition[*v1alpha1.ToolCall]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("toolcalls"),
		Kind:       "ToolCall",
		Singular:   "toolcall",
		Roles:      resource.Roles{Creators: resource.Users(resource.Worker)},
		Categories: []string{},
		Guard:      guard,
		Shape: resource.Action[*v1alpha1.ToolCall]{Admits: true, Create: func(ctx context.Context, c *v1alpha1.ToolCall) (*v1alpha1.ToolCall, error) {
			j, err := o.Judge.now()
			if err != nil {
				return nil, err
			}
			j.tasks = o.Tasks
			return j.create(ctx, c)
		}},
	}
}

// judge judges a call by what the server knows about admission now.
type judge struct {
	tasks     Tasks // of the calls of runs only
	tool      func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	scheme    *runtime.Scheme
	admission admission.Interface                                     // may be nil
	policies  admissionregistrationv1.ValidatingAdmissionPolicyLister // may be nil
}

// create answers a call with its verdict.
func (j *judge) create(ctx context.Context, c *v1alpha1.ToolCall) (*v1alpha1.ToolCall, error) {
	t, err := j.tasks.Get(ctx, c.Spec.TaskName)
	if err != nil {
		return nil, err
	}
	given, secrets, by := c.Spec.Sensitive, sensitive(&c.Spec), j
	if len(c.Spec.Policies) > 0 {
		if by, err = j.try(ctx, t.Namespace, c.Spec.Policies); err != nil {
			return nil, err
		}
	}
	if err := j.complete(ctx, j.taskOf(t), c); err != nil {
		return nil, err
	}
	findings, err := by.findings(ctx, t.Namespace, c)
	if err != nil {
		return nil, err
	}
	if t, ok := by.admission.(*trial); ok {
		t.named(findings)
	}
	if why := j.tasks.Uncovered(ctx, t, c.Spec.ToolName); why != "" {
		findings = slices.Concat([]v1alpha1.ToolCallFinding{{Action: v1alpha1.ToolCallDeny, Message: why}}, findings)
	}
	for i := range findings {
		findings[i].Message = cut(redact.Fragments(findings[i].Message, secrets))
	}
	c.Status = v1alpha1.ToolCallStatus{Verdict: verdictOf(findings), Findings: findings}
	// Only a run makes calls; what other callers ask has no effect.
	if caller, _ := request.UserFrom(ctx); guard.IsWorker(caller) && !resource.IsDryRun(ctx) {
		if err := j.record(ctx, t, c, given); err != nil {
			return nil, err
		}
	}
	c.Namespace = t.Namespace
	return c, nil
}

// maxSensitive bounds the number of secrets that a call names.
const maxSensitive = 64

// sensitive returns the secrets that messages about a call must not repeat: those that its arguments contain, so that a
// client cannot hide anything else.
func sensitive(s *v1alpha1.ToolCallSpec) []string {
	if s.Arguments == nil {
		return nil
	}
	var all []string
	for _, secret := range s.Sensitive[:min(len(s.Sensitive), maxSensitive)] {
		if redact.Occurs(secret, s.Arguments.Raw) {
			all = append(all, secret)
		}
	}
	return all
}

// digest is the same for a call that a worker asks about again because it did not get the answer.
func digest(s *v1alpha1.ToolCallSpec) string {
	sum := sha256.Sum256(slices.Concat([]byte(s.CallID), []byte{0}, s.Arguments.Raw))
	return s.ToolName + "/" + hex.EncodeToString(sum[:12])
}

// eventOf is the event about a call that policies objected to. It does not repeat the arguments.
func eventOf(t *v1alpha1.Task, c *v1alpha1.ToolCall) *v1alpha1.ExecutionEvent {
	severity := v1alpha1.SeverityInfo
	if first := c.Status.Findings[0].Action; first != v1alpha1.ToolCallAudit {
		severity = v1alpha1.SeverityWarning
	}
	e := event.New(v1alpha1.EventToolCallJudged, severity, fmt.Sprintf("toolcall/%s/%s", t.Status.JobUID, digest(&c.Spec)), summary(c), map[string]any{
		"verdict": c.Status.Verdict, "callID": c.Spec.CallID, "findings": c.Status.Findings,
	})
	e.Namespace, e.TaskName = t.Namespace, t.Name
	e.ToolName, e.ToolCallID, e.AgentName = c.Spec.ToolName, c.Spec.CallID, c.Spec.Task.AgentName
	return e
}

func summary(c *v1alpha1.ToolCall) string {
	first := c.Status.Findings[0]
	did := map[v1alpha1.ToolCallAction]string{
		v1alpha1.ToolCallDeny: "denied", v1alpha1.ToolCallRequireApproval: "held for approval",
		v1alpha1.ToolCallWarn: "allowed with a warning", v1alpha1.ToolCallAudit: "allowed and recorded",
	}[first.Action]
	by := ""
	if first.Policy != "" {
		by = " by policy " + first.Policy
	}
	return fmt.Sprintf("Call of %s %s%s: %s", c.Spec.ToolName, did, by, first.Message)
}
