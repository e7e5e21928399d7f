// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// idle is a setting that has no effect because of the others of its object.
type idle struct {
	set        bool
	path, text string
}

func warnings(list []idle) []string {
	var found []string
	for _, i := range list {
		if i.set {
			found = append(found, i.path+": has no effect "+i.text)
		}
	}
	return found
}

// IdleOfTask returns warnings about settings of a task that have no effect because of its others. A value that is the
// default says nothing, because it may not have been asked for.
func IdleOfTask(s *v1alpha1.TaskSpec) []string {
	ref := ptr.Deref(s.SessionRef, v1alpha1.TaskSessionReference{Append: new(false)})
	command, once := s.Type == v1alpha1.TaskTypeContainer, s.Schedule == ""
	const scheduled = "without spec.schedule"
	def := taskDefaults
	return warnings([]idle{
		{command && s.AgentRef != nil, "spec.agentRef", "on a task of type container: its command gets no resources, placement or Secret of the agent"},
		{command && s.Prompt != "" && !ptr.Deref(ref.Append, true), "spec.prompt", "on a task of type container: no model reads it"},
		{command && ref.ThroughMessageID != "", "spec.sessionRef.throughMessageId", "on a task of type container: it reads no messages"},
		{s.Prompt != "" && s.AI != nil && s.AI.Prompt != "", "spec.ai.prompt", "beside spec.prompt"},
		{once && s.TimeZone != "" && s.TimeZone != def.TimeZone, "spec.timeZone", scheduled},
		{once && s.ConcurrencyPolicy == v1alpha1.ConcurrencyAllow, "spec.concurrencyPolicy", scheduled},
		{once && differs(s.StartingDeadlineSeconds, def.StartingDeadlineSeconds), "spec.startingDeadlineSeconds", scheduled},
		{once && differs(s.SuccessfulRunsHistoryLimit, def.SuccessfulRunsHistoryLimit), "spec.successfulRunsHistoryLimit", scheduled},
		{once && differs(s.FailedRunsHistoryLimit, def.FailedRunsHistoryLimit), "spec.failedRunsHistoryLimit", scheduled},
	})
}

// IdleOfAgent returns warnings about settings of an agent that have no effect because of its others.
func IdleOfAgent(s *v1alpha1.AgentSpec) []string {
	c, m := ptr.Deref(s.Coordination, v1alpha1.AgentCoordination{}), ptr.Deref(s.Model, v1alpha1.AgentModel{})
	persistence := ptr.Deref(s.Session, v1alpha1.AgentSession{}).Persistence
	const enabled = "without spec.coordination.enabled"
	return warnings([]idle{
		{s.ProviderRef != nil && m.Provider != "", "spec.model.provider", "beside spec.providerRef"},
		{persistence != "" && persistence != v1alpha1.PersistenceConfigMap, "spec.session.persistence", "here: the server keeps sessions until they are deleted"},
		{c.Autonomous && !c.Enabled, "spec.coordination.autonomous", enabled},
		{len(c.AllowedAgents) > 0 && !c.Enabled, "spec.coordination.allowedAgents", enabled},
		{c.MaxIterations > 0 && (!c.Enabled || !c.Autonomous), "spec.coordination.maxIterations", "without spec.coordination.enabled and spec.coordination.autonomous"},
	})
}

// NoDelegates returns the warning for a coordinator that may delegate to no agent; empty if there is none.
func NoDelegates(s *v1alpha1.AgentSpec) string {
	if c := s.Coordination; c == nil || !c.Enabled || len(c.AllowedAgents) > 0 {
		return ""
	}
	return "spec.coordination.allowedAgents: is empty, so tasks of this agent may delegate to no agents but those that they create; name the agents, or \"" + v1alpha1.AnyAgent + "\" for all"
}

// IdleOfTool returns warnings about settings of a tool that have no effect because of its others.
func IdleOfTool(s *v1alpha1.ToolSpec) []string {
	h, m := ptr.Deref(s.HTTP, v1alpha1.ToolHTTP{}), ptr.Deref(s.MCP, v1alpha1.ToolMCP{})
	return warnings([]idle{
		{h.AuthBodyKey != "" && h.AuthSecretRef == nil, "spec.http.authBodyKey", "without spec.http.authSecretRef"},
		{m.Remote != nil && m.Path != "" && m.Path != mcpDefaults.Path, "spec.mcp.path", "on a remote server: spec.mcp.remote.url includes the path"},
	})
}

// Defaults of the API: what the server writes where an object says nothing.
var (
	taskDefaults = func() *v1alpha1.TaskSpec {
		t := &v1alpha1.Task{}
		v1alpha1.SetObjectDefaults_Task(t)
		return &t.Spec
	}()
	mcpDefaults = func() *v1alpha1.ToolMCP {
		t := &v1alpha1.Tool{Spec: v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{}}}
		v1alpha1.SetObjectDefaults_Tool(t)
		return t.Spec.MCP
	}()
)

// differs reports whether a setting is there and is not the default.
func differs[T comparable](have, def *T) bool { return have != nil && *have != *def }

// UnknownGate returns the warning for a name in approvalRequiredTools that is neither that of a built-in tool nor that of a
// Tool: a mistake in it leaves calls without approval.
func UnknownGate(path, name string) string {
	return path + ": no tool \"" + name + "\" is built in, exists as a Tool or is declared by a ConnectorProvider of this namespace, so no call needs this approval"
}
