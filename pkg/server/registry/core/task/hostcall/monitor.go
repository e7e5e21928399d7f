// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/prmonitor"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/requester"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// fieldManager is the field manager of monitors that runs had made.
const fieldManager = "platform-pr-monitor"

// monitorMade is the result of create_pr_monitor.
type monitorMade struct {
	Name        string `json:"name"`
	MonitorName string `json:"monitor_name"`
	Namespace   string `json:"namespace"`
	Schedule    string `json:"schedule"`
	Message     string `json:"message"`
}

// monitor makes the task of a monitor for a run. The task outlives the run, so it is none of its children. But its agent must be one to
// which the run may delegate, its Secret and Provider ones that the run has itself or that are there for this, and calls that need an
// approval in the run need it in the monitor. A model may have been told by a stranger to make it.
func (s *Calls) monitor(ctx context.Context, p stored.Parent, c *v1alpha1.TaskCodeHostCall) (*apiextensionsv1.JSON, error) {
	own := p.Object
	raw, err := s.arguments(ctx, own, c)
	if err != nil {
		return nil, err
	}
	var a builtin.PRMonitorArguments // has all arguments that runs have
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, invalid(err)
	}
	t, err := s.monitorOf(ctx, own, &a)
	if said, ok := errors.AsType[*tool.Error](err); ok {
		return nil, failure(reasons[said.Type], "%s", said.Message)
	}
	if err != nil || p.DryRun {
		return nil, err
	}
	if t.Annotations[v1alpha1.AnnotationChatCall], err = s.key(own, c, raw); err != nil {
		return nil, err
	}
	made, err := s.create(ctx, t)
	if err != nil {
		return nil, err
	}
	result, err := json.Marshal(monitorMade{made.Name, a.Name, made.Namespace, a.Schedule, "the monitor was created; its runs are tasks of their own"})
	return &apiextensionsv1.JSON{Raw: result}, err
}

// reasons has the reason of a failure for each type of error that prmonitor has.
var reasons = map[tool.ErrorType]v1alpha1.TaskCodeHostFailureReason{
	tool.TypeInvalidArguments: v1alpha1.CodeHostInvalidArguments, tool.TypeNotFound: v1alpha1.CodeHostNotFound, tool.TypeUnavailable: v1alpha1.CodeHostUnavailable,
}

// monitorOf returns the task that a run asks for, if it may have it.
func (s *Calls) monitorOf(ctx context.Context, own *v1alpha1.Task, a *builtin.PRMonitorArguments) (*v1alpha1.Task, error) {
	switch {
	case a.Namespace != "" && a.Namespace != own.Namespace:
		return nil, failure(v1alpha1.CodeHostDenied, "namespace: only that of task %s is possible; leave it out", own.Name)
	case own.Spec.Transaction != nil:
		return nil, failure(v1alpha1.CodeHostDenied, "task %s is in a transaction, which a monitor would outlive", own.Name)
	}
	coordinator, err := s.o.Agents.Of(ctx, own)
	if err != nil {
		return nil, err
	}
	agent, err := s.o.Agents(ctx, a.AgentRef)
	if apierrors.IsNotFound(err) {
		return nil, failure(v1alpha1.CodeHostNotFound, "agent_ref: agent %.253q does not exist in namespace %s", a.AgentRef, own.Namespace)
	}
	if err != nil {
		return nil, err
	}
	uses := plan.UsesOf(own, coordinator)
	if why := reaches(own, uses, agent, a); why != "" {
		return nil, failure(v1alpha1.CodeHostDenied, "%s", why)
	}
	t, err := prmonitor.Task(ctx, own.Namespace, a, agent, s.o.Access.Find)
	if err != nil {
		return nil, err
	}
	if refused := plan.CheckDelegation(own, coordinator, t, agent, plan.Depth(own)+1); refused != nil {
		return nil, failure(v1alpha1.CodeHostDenied, "%s", refused.Message)
	}
	t.Name = a.Name
	t.Labels = map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.LabelValue(own.Name)}
	t.Annotations[v1alpha1.AnnotationParentTaskName] = own.Name
	for _, key := range requester.Keys() {
		if by, ok := own.Annotations[key]; ok {
			t.Annotations[key] = by
		}
	}
	if len(uses.Gated) > 0 {
		t.Annotations[v1alpha1.AnnotationForkGates] = strings.Join(uses.Gated, ",")
	}
	return t, nil
}

// reaches returns why a run may not give a monitor what it names; empty if it may.
func reaches(own *v1alpha1.Task, uses *plan.Uses, agent *v1alpha1.Agent, a *builtin.PRMonitorArguments) string {
	secrets := prmonitor.Secrets()
	if w := own.Spec.Workspace; w != nil {
		for _, ref := range []*v1alpha1.WorkspaceCredentialReference{w.ReadCredentialRef, w.ForgeCredentialRef} {
			if ref != nil {
				secrets = append(secrets, ref.Name)
			}
		}
	}
	if a.GitSecretRef != "" && !slices.Contains(secrets, a.GitSecretRef) {
		return "gitSecretRef: must be one of " + strings.Join(secrets, ", ") + "; or leave it out"
	}
	if a.ProviderRef == "" {
		return ""
	}
	for _, choice := range []*plan.ProviderChoice{uses.Provider, plan.UsesOf(own, agent).Provider} {
		if choice != nil && choice.Ref.Namespace == own.Namespace && choice.Ref.Name == a.ProviderRef {
			return ""
		}
	}
	return "provider_ref: must be the Provider that the task or the agent uses; or leave it out"
}

// create creates the task of a monitor as the server itself. If this same call has created it before, it is returned.
func (s *Calls) create(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	if s.o.Loopback == nil {
		return nil, apierrors.NewServiceUnavailable("the server has no client of itself")
	}
	client, err := versioned.NewForConfig(s.o.Loopback)
	if err != nil {
		return nil, err
	}
	tasks := client.CoreV1alpha1().Tasks(t.Namespace)
	made, err := tasks.Create(ctx, t, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = tasks.Get(ctx, t.Name, metav1.GetOptions{})
		if err == nil && made.Annotations[v1alpha1.AnnotationChatCall] != t.Annotations[v1alpha1.AnnotationChatCall] {
			return nil, failure(v1alpha1.CodeHostRefused, "name: there is another task %s; choose another name, or use what is there", t.Name)
		}
	}
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil, failure(v1alpha1.CodeHostInvalidArguments, "%v", err)
	case apierrors.IsForbidden(err): // a policy
		return nil, failure(v1alpha1.CodeHostDenied, "%v", err)
	}
	return made, err
}
