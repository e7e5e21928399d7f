// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/command"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// Limits of coordination where the Agent sets none.
const (
	// DefaultMaxDepth is how deep delegation may nest.
	DefaultMaxDepth = 3
	// DefaultMaxChildren is how many children of one task may run at once.
	DefaultMaxChildren = 5
	// DefaultMaxTasks is how many tasks may be delegated in one tree.
	DefaultMaxTasks = 200
)

// MaxChildren returns how many children of one task of the agent may run at once.
func MaxChildren(a *v1alpha1.Agent) int {
	if a == nil || a.Spec.Coordination == nil || a.Spec.Coordination.MaxConcurrentChildren == nil {
		return DefaultMaxChildren
	}
	return int(*a.Spec.Coordination.MaxConcurrentChildren)
}

// MaxDepth returns how many tasks may be above a task that the agent delegates.
func MaxDepth(a *v1alpha1.Agent) int32 {
	if a == nil || a.Spec.Coordination == nil || a.Spec.Coordination.MaxDepth == nil {
		return DefaultMaxDepth
	}
	return *a.Spec.Coordination.MaxDepth
}

// MaxTasks returns how many tasks may be delegated in a tree in which the agent delegates.
func MaxTasks(a *v1alpha1.Agent) int32 {
	if a == nil || a.Spec.Coordination == nil || a.Spec.Coordination.MaxTasks == nil {
		return DefaultMaxTasks
	}
	return *a.Spec.Coordination.MaxTasks
}

// TreeLimit is how many tasks may be delegated in a tree, and which setting says so.
type TreeLimit struct {
	Tasks int32
	By    string
}

// LimitOfTree returns the limit that applies if a parent, whose agent is coordinator, delegates: the lowest that the agents
// of the path from the root allow, and the server. The server's is 0 if it has none.
func LimitOfTree(parent *v1alpha1.Task, coordinator *v1alpha1.Agent, server int32) TreeLimit {
	limit := TreeLimit{MaxTasks(coordinator), fmt.Sprintf("agent %q allows %d (spec.coordination.maxTasks)", coordinator.Name, MaxTasks(coordinator))}
	if d := parent.Status.Delegation; d != nil && d.MaxTasks > 0 && d.MaxTasks < limit.Tasks {
		limit = TreeLimit{d.MaxTasks, fmt.Sprintf("the agent of a task above allows %d (spec.coordination.maxTasks)", d.MaxTasks)}
	}
	if server > 0 && server < limit.Tasks {
		limit = TreeLimit{server, fmt.Sprintf("the server allows %d (--tree-tasks)", server)}
	}
	return limit
}

// CoordinationEnv returns the environment variables that describe what a coordinator may delegate.
func (p *Plan) CoordinationEnv(t *v1alpha1.Task) []string {
	if !coordinates(t, p.Agent) || coordinationDisabled(t) {
		return nil
	}
	var names []string
	for _, a := range p.Agent.Spec.Coordination.AllowedAgents {
		name := a.Name
		if a.Namespace != "" {
			name = a.Namespace + "/" + name
		}
		names = append(names, name)
	}
	return []string{
		"PLATFORM_COORDINATION_ENABLED=true",
		fmt.Sprintf("PLATFORM_COORDINATION_MAX_DEPTH=%d", MaxDepth(p.Agent)),
		fmt.Sprintf("PLATFORM_COORDINATION_MAX_CHILDREN=%d", MaxChildren(p.Agent)),
		"PLATFORM_COORDINATION_ALLOWED_AGENTS=" + strings.Join(names, ","),
		fmt.Sprintf("PLATFORM_COORDINATION_DEPTH=%d", Depth(t)),
	}
}

// Depth returns how many tasks are above a task; 0 for one that was not delegated.
func Depth(t *v1alpha1.Task) int32 {
	if d := t.Status.Delegation; d != nil {
		return d.Depth
	}
	return 0
}

// CheckDelegation decides whether a task whose agent is coordinator may have a child at a depth. The coordinator is nil
// if the parent has no agent, or its agent is gone. Admission decides when the child is created, and the controller
// again before it starts.
//
// The child's agent is nil if it has none or it does not exist. An agent that the parent itself created may always be
// delegated to, because it has nothing that the parent lacks. Any other has its own Provider, tools and Secrets, so allowedAgents
// grants these to whoever may delegate to it, and an empty list grants none. The validation of a reviewer's head is always permitted, because
// its monitor says what runs.
func CheckDelegation(parent *v1alpha1.Task, coordinator *v1alpha1.Agent, child *v1alpha1.Task, agent *v1alpha1.Agent, depth int32) *refusal.Error {
	if coordinator == nil {
		return refusal.New(v1alpha1.ReasonCoordinationDisabled, "the parent has no agent that may delegate")
	}
	if command.Validates(parent, child) {
		return nil
	}
	c := coordinator.Spec.Coordination
	if c == nil || !c.Enabled {
		return refusal.New(v1alpha1.ReasonCoordinationDisabled, "agent %q may not delegate: its spec.coordination.enabled is not set", coordinator.Name)
	}
	if limit := MaxDepth(coordinator); depth > limit {
		return refusal.New(v1alpha1.ReasonDepthExceeded, "the task would be %d levels below the root, and agent %q allows %d (spec.coordination.maxDepth)", depth, coordinator.Name, limit)
	}
	ref := child.Spec.AgentRef
	if ref == nil {
		if child.Spec.Type == v1alpha1.TaskTypeContainer {
			return nil
		}
		return refusal.New(v1alpha1.ReasonAgentNotAllowed, "a delegated task of type %s needs spec.agentRef", child.Spec.Type)
	}
	key, list := refer(child.Namespace, ref).NamespacedName, allowedAgents(coordinator)
	switch {
	case MadeBy(agent, parent) || list.admit(key):
		return incompatible(child, agent)
	case len(list) == 0:
		return refusal.New(v1alpha1.ReasonAgentNotAllowed, "agent %q may not be delegated to: spec.coordination.allowedAgents of agent %q is empty, which admits none; it has to name the agent, or %q for all", key, coordinator.Name, v1alpha1.AnyAgent)
	}
	return refusal.New(v1alpha1.ReasonAgentNotAllowed, "agent %q is not among those that agent %q may delegate to (spec.coordination.allowedAgents): %s", key, coordinator.Name, list)
}

// ChildNetwork returns what the command of a container task may connect to that a task delegates: what programs of the
// delegating agent may. A command that was delegated itself passes on what it has.
func ChildNetwork(parent *v1alpha1.Task, coordinator *v1alpha1.Agent) v1alpha1.SandboxNetwork {
	public := PublicNetwork(coordinator)
	if parent.Spec.Type == v1alpha1.TaskTypeContainer {
		public = command.Public(parent)
	}
	if public {
		return v1alpha1.SandboxNetworkPublic
	}
	return v1alpha1.SandboxNetworkNone
}

// CheckChild returns why a task may not be a child of the parent: a child gets no more than its agent and its parent
// have. The child's agent is nil if it has none or it does not exist yet.
func CheckChild(parent *v1alpha1.Task, coordinator *v1alpha1.Agent, child *v1alpha1.Task, agent *v1alpha1.Agent) []*refusal.Error {
	var list []*refusal.Error
	forbid := func(field, format string, args ...any) {
		list = append(list, &refusal.Error{Reason: v1alpha1.ReasonRefused, Field: field, Message: fmt.Sprintf(format, args...)})
	}
	s := &child.Spec
	for _, f := range []struct {
		set         bool
		field, text string
	}{
		{s.SessionRef != nil, "spec.sessionRef", "a delegated task cannot join a session; put what it has to know into its prompt"},
		{s.Schedule != "", "spec.schedule", "a schedule outlives the task that makes it; a person or a client with the right to create tasks can create it"},
		{s.WebhookURL != "", "spec.webhookURL", "a delegated task reports to its parent"},
		{s.SecretRef != nil && !equality.Semantic.DeepEqual(s.SecretRef, parent.Spec.SecretRef), "spec.secretRef", "a delegated task may mount only the Secret of its parent"},
		{s.Resources != nil && !equality.Semantic.DeepEqual(s.Resources, parent.Spec.Resources), "spec.resources", "a delegated task may only have the resources of its parent or its agent"},
		{s.Execution != nil && !equality.Semantic.DeepEqual(s.Execution, parent.Spec.Execution), "spec.execution", "a delegated task may only be placed like its parent or as its agent says"},
	} {
		if f.set {
			forbid(f.field, "%s", f.text)
		}
	}
	for i, e := range s.Env {
		same := func(p corev1.EnvVar) bool { return equality.Semantic.DeepEqual(p, e) }
		if e.ValueFrom != nil && !slices.ContainsFunc(parent.Spec.Env, same) {
			forbid(fmt.Sprintf("spec.env[%d].valueFrom", i), "a delegated task may only have the references of its parent's spec.env")
		}
	}
	checkWorkspace(parent, coordinator, child, forbid)
	if s.AgentRuntime != nil && agent != nil && agent.Spec.Runtime != nil {
		checkRuntime(s.AgentRuntime, agent.Spec.Runtime, forbid)
	}
	if s.AI != nil {
		rest := s.AI.DeepCopy()
		rest.Tools, rest.Prompt = nil, ""
		if !equality.Semantic.DeepEqual(*rest, v1alpha1.TaskAI{}) {
			forbid("spec.ai", "a delegated task takes its provider, model, skills and system prompt from its agent; only tools and prompt can be set")
		}
		list = append(list, checkTools(parent, coordinator, child, agent)...)
	}
	return list
}

// checkRuntime refuses what a coding agent may not do unless it is told otherwise: a delegated task may only tell it to do less.
func checkRuntime(own *v1alpha1.TaskAgentRuntime, agent *v1alpha1.AgentCodingRuntime, forbid func(field, format string, args ...any)) {
	if ptr.Deref(own.AllowBash, false) && !ptr.Deref(agent.DefaultAllowBash, true) {
		forbid("spec.agentRuntime.allowBash", "the agent of the delegated task does not allow commands (spec.runtime.defaultAllowBash)")
	}
	if agent.DefaultAllowedTools == nil {
		return
	}
	for i, name := range own.AllowedTools {
		if !slices.ContainsFunc(agent.DefaultAllowedTools, func(has string) bool { return strings.EqualFold(has, name) }) {
			forbid(fmt.Sprintf("spec.agentRuntime.allowedTools[%d]", i), "the agent of the delegated task does not allow %q (spec.runtime.defaultAllowedTools)", name)
		}
	}
}

// checkTools refuses tools that neither the child's agent nor its parent has.
func checkTools(parent *v1alpha1.Task, coordinator *v1alpha1.Agent, child *v1alpha1.Task, agent *v1alpha1.Agent) []*refusal.Error {
	var has []string
	bare := child.DeepCopy()
	bare.Spec.AI.Tools = nil
	for _, uses := range []*Uses{UsesOf(parent, coordinator), UsesOf(bare, agent)} {
		for _, key := range uses.Tools {
			has = append(has, key.Name)
		}
	}
	var list []*refusal.Error
	for i, name := range child.Spec.AI.Tools {
		if !slices.Contains(has, name) {
			list = append(list, &refusal.Error{
				Reason: v1alpha1.ReasonRefused, Field: fmt.Sprintf("spec.ai.tools[%d]", i),
				Message: fmt.Sprintf("neither the agent of the delegated task nor its parent has the tool %q", name),
			})
		}
	}
	return list
}

// RequestDigest is a digest of what a task is asked, regardless of white space: of its agent with the prompt, or of its
// image and command. Two tasks of one path with the same digest would delegate to each other without end.
func RequestDigest(t *v1alpha1.Task) string {
	agent := ""
	if ref := t.Spec.AgentRef; ref != nil {
		agent = refer(t.Namespace, ref).String()
	}
	prompt := strings.Join(strings.Fields(Prompt(&t.Spec)), " ")
	raw, err := json.Marshal([]any{t.Spec.Type, agent, prompt, t.Spec.Image, t.Spec.Command, t.Spec.Args})
	if err != nil { // strings always marshal
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Deadline returns when a task has to end, as far as that is known: its attempt's start and its timeout, or the deadline
// of its parent if that is earlier. It is nil if there is no limit.
func Deadline(t *v1alpha1.Task) *metav1.Time {
	var end *metav1.Time
	if d := t.Status.Delegation; d != nil && d.Deadline != nil {
		end = d.Deadline
	}
	if t.Spec.Timeout == nil {
		return end
	}
	var start time.Time
	switch c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionJobCreated); {
	case c != nil:
		start = c.LastTransitionTime.Time
	case t.Status.StartTime != nil:
		start = t.Status.StartTime.Time
	default:
		return end
	}
	own := metav1.NewTime(start.Add(t.Spec.Timeout.Value()))
	if end == nil || own.Before(end) {
		end = &own
	}
	return end
}
