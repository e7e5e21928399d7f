// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// MaxMadeAgents is how many agents of one task may exist at a time.
const MaxMadeAgents = 20

// MadeBy reports whether the run of a task created an agent. The server sets what is compared here when a worker creates
// an agent, and workers cannot change it.
func MadeBy(a *v1alpha1.Agent, t *v1alpha1.Task) bool {
	if a == nil || t == nil || a.Namespace != t.Namespace || a.Annotations[v1alpha1.AnnotationCreatedByUID] != string(t.UID) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(a)
	root, _ := Root(t)
	return owner != nil && owner.UID == root
}

// Root returns the UID and the name of the task at the top of a task's tree.
func Root(t *v1alpha1.Task) (types.UID, string) {
	if d := t.Status.Delegation; d != nil {
		return d.RootUID, d.Root
	}
	return t.UID, t.Name
}

// CheckMade returns why a task, whose agent is coordinator, may not create an agent: an agent that a task creates gets no
// provider, tool, Secret or permission that the task lacks. The coordinator is nil if the task has no agent.
func CheckMade(maker *v1alpha1.Task, coordinator, made *v1alpha1.Agent) *refusal.Error {
	forbid := func(field, format string, args ...any) *refusal.Error {
		return &refusal.Error{Reason: v1alpha1.ReasonRefused, Field: field, Message: fmt.Sprintf(format, args...)}
	}
	if !coordinates(maker, coordinator) {
		return refusal.New(v1alpha1.ReasonCoordinationDisabled, "only a task whose agent has spec.coordination.enabled may create agents")
	}
	s := &made.Spec
	m := s.Model
	if m == nil {
		m = &v1alpha1.AgentModel{}
	}
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"spec.skills", len(s.Skills) > 0},
		{"spec.resources", s.Resources != nil},
		{"spec.execution", s.Execution != nil},
		{"spec.secretRef", s.SecretRef != nil},
		{"spec.session", s.Session != nil},
		{"spec.memory", s.Memory != nil},
		{"spec.recording", s.Recording != nil},
		{"spec.rateLimit", s.RateLimit != nil},
		{"spec.runtime", s.Runtime != nil},
		{"spec.ttlAfterLastTask", s.TTLAfterLastTask != nil},
		{"spec.model.provider", m.Provider != ""},
		{"spec.model.fallbacks", len(m.Fallbacks) > 0},
		{"spec.systemPrompt.configMapRef", s.SystemPrompt != nil && s.SystemPrompt.ConfigMapRef != nil},
	} {
		if f.set {
			return forbid(f.field, "cannot be set on an agent that a task creates; providerRef, model, systemPrompt.inline, tools, sandbox and coordination can")
		}
	}
	if PublicNetwork(made) && !PublicNetwork(coordinator) {
		return forbid("spec.sandbox.network", "programs of the task itself have no network; it must be None, or left out")
	}
	uses := UsesOf(maker, coordinator)
	if r := checkProvider(uses, made, forbid); r != nil {
		return r
	}
	for i, t := range s.Tools {
		has := slices.ContainsFunc(uses.Tools, func(key types.NamespacedName) bool {
			return key.Name == t.Name && (key.Namespace == made.Namespace || builtin.Has(t.Name))
		})
		if !has {
			return forbid(fmt.Sprintf("spec.tools[%d].name", i), "the task itself does not have the tool %q", t.Name)
		}
	}
	return checkMadeCoordination(coordinator, made, forbid)
}

type forbidFunc = func(field, format string, args ...any) *refusal.Error

// checkProvider refuses a Provider that the maker does not use.
func checkProvider(uses *Uses, made *v1alpha1.Agent, forbid forbidFunc) *refusal.Error {
	var has []types.NamespacedName
	var names []string
	add := func(key types.NamespacedName) {
		has = append(has, key)
		names = append(names, key.String())
	}
	if p := uses.Provider; p != nil && p.Type == "" {
		add(p.Ref.NamespacedName)
	}
	for _, f := range uses.Fallbacks {
		if f.Provider != nil {
			add(f.Provider.NamespacedName)
		}
	}
	if made.Spec.ProviderRef == nil {
		return forbid("spec.providerRef", "is required")
	}
	if key := refer(made.Namespace, made.Spec.ProviderRef).NamespacedName; !slices.Contains(has, key) {
		return forbid("spec.providerRef", "the task itself does not name the Provider %q; it names: %s", key, strings.Join(names, ", "))
	}
	return nil
}

// checkMadeCoordination refuses coordination that goes beyond that of the maker's agent. Numbers are limited by
// CompleteMade instead.
func checkMadeCoordination(coordinator, made *v1alpha1.Agent, forbid forbidFunc) *refusal.Error {
	c := made.Spec.Coordination
	if c == nil {
		return nil
	}
	if c.Autonomous || c.MaxIterations != 0 || len(c.ApprovalRequiredTools) > 0 || c.ApprovalTimeout != nil {
		return forbid("spec.coordination", "only enabled, allowedAgents, maxConcurrentChildren, maxDepth and maxTasks can be set on an agent that a task creates")
	}
	list := allowedAgents(coordinator)
	for i, key := range allowedAgents(made) {
		if !list.admit(key) {
			return forbid(fmt.Sprintf("spec.coordination.allowedAgents[%d]", i), "the task itself may not delegate to agent %q", allowed{key})
		}
	}
	return nil
}

// CompleteMade gives an agent that CheckMade accepts what it inherits from the maker's agent: its rate limit, what it may
// recall, how it is recorded, the tools that need an approval, and the limits of its coordination. It also records who made it: only that task may delete
// the agent. Its owner is the task at the top of the tree, so both go together.
func CompleteMade(maker *v1alpha1.Task, coordinator, made *v1alpha1.Agent) {
	root, name := Root(maker)
	made.Labels = map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.LabelValue(maker.Name)}
	made.Annotations = map[string]string{v1alpha1.AnnotationCreatedByUID: string(maker.UID)}
	made.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Name: name, UID: root, Controller: new(true),
	}}
	made.Finalizers = nil
	from := coordinator.Spec.Coordination
	made.Spec.RateLimit, made.Spec.Memory = coordinator.Spec.RateLimit.DeepCopy(), coordinator.Spec.Memory.DeepCopy()
	made.Spec.Recording = coordinator.Spec.Recording.DeepCopy()
	c := made.Spec.Coordination
	if c == nil {
		c = &v1alpha1.AgentCoordination{}
		made.Spec.Coordination = c
	}
	c.ApprovalRequiredTools, c.ApprovalTimeout = slices.Clone(from.ApprovalRequiredTools), from.ApprovalTimeout
	c.MaxDepth, c.MaxConcurrentChildren = new(min(MaxDepth(made), MaxDepth(coordinator))), new(int32(min(MaxChildren(made), MaxChildren(coordinator))))
	c.MaxTasks = new(min(MaxTasks(made), MaxTasks(coordinator)))
	if len(c.AllowedAgents) == 0 {
		for _, key := range allowedAgents(coordinator) {
			c.AllowedAgents = append(c.AllowedAgents, v1alpha1.NamespacedReference{Namespace: key.Namespace, Name: key.Name})
		}
	}
}
