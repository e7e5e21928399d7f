// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func named(t *testing.T, name string, warnings []string, want string) {
	t.Helper()
	for i, w := range warnings {
		path, text, _ := strings.Cut(w, ": ")
		if !strings.HasPrefix(text, "has no effect ") {
			t.Errorf("%s: %s", name, w)
		}
		warnings[i] = path
	}
	if !slices.Equal(warnings, strings.Fields(want)) {
		t.Errorf("%s: %v, want %s", name, warnings, want)
	}
}

func TestIdleOfTasks(t *testing.T) {
	const command, ai = v1alpha1.TaskTypeContainer, v1alpha1.TaskTypeAI
	odd := func(schedule string) v1alpha1.TaskSpec {
		return v1alpha1.TaskSpec{
			Type: ai, Schedule: schedule, TimeZone: "Asia/Tokyo", ConcurrencyPolicy: v1alpha1.ConcurrencyAllow,
			StartingDeadlineSeconds: new(int64(5)), SuccessfulRunsHistoryLimit: new(int32(0)), FailedRunsHistoryLimit: new(int32(9)),
		}
	}
	for name, tc := range map[string]struct {
		spec v1alpha1.TaskSpec
		want string
	}{
		"a command": {v1alpha1.TaskSpec{Type: command, Command: []string{"true"}}, ""},
		"the defaults": {v1alpha1.TaskSpec{
			Type: ai, Prompt: "p", TimeZone: "UTC", ConcurrencyPolicy: v1alpha1.ConcurrencyForbid, AI: &v1alpha1.TaskAI{},
			StartingDeadlineSeconds: new(int64(100)), SuccessfulRunsHistoryLimit: new(int32(3)), FailedRunsHistoryLimit: new(int32(1)),
		}, ""},
		"an agent and a prompt for a command":   {v1alpha1.TaskSpec{Type: command, AgentRef: &v1alpha1.NamespacedReference{Name: "a"}, Prompt: "p"}, "spec.agentRef spec.prompt"},
		"a prompt for the session of a command": {v1alpha1.TaskSpec{Type: command, Prompt: "p", SessionRef: &v1alpha1.TaskSessionReference{Name: "s"}}, ""},
		"a history for a command": {v1alpha1.TaskSpec{
			Type: command, Prompt: "p", SessionRef: &v1alpha1.TaskSessionReference{Name: "s", Append: new(false), ThroughMessageID: "m"},
		}, "spec.prompt spec.sessionRef.throughMessageId"},
		"two prompts":       {v1alpha1.TaskSpec{Type: ai, Prompt: "p", AI: &v1alpha1.TaskAI{Prompt: "q"}}, "spec.ai.prompt"},
		"no schedule":       {odd(""), "spec.timeZone spec.concurrencyPolicy spec.startingDeadlineSeconds spec.successfulRunsHistoryLimit spec.failedRunsHistoryLimit"},
		"with its schedule": {odd("@hourly"), ""},
	} {
		named(t, name, IdleOfTask(&tc.spec), tc.want)
	}
}

func TestIdleOfAgentsAndTools(t *testing.T) {
	ref := &v1alpha1.NamespacedReference{Name: "a"}
	for name, tc := range map[string]struct {
		spec v1alpha1.AgentSpec
		want string
	}{
		"plain":         {v1alpha1.AgentSpec{ProviderRef: ref, Session: &v1alpha1.AgentSession{Persistence: v1alpha1.PersistenceConfigMap}, Coordination: &v1alpha1.AgentCoordination{}}, ""},
		"by protocol":   {v1alpha1.AgentSpec{Model: &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI}}, ""},
		"two vendors":   {v1alpha1.AgentSpec{ProviderRef: ref, Model: &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI}}, "spec.model.provider"},
		"persistence":   {v1alpha1.AgentSpec{Session: &v1alpha1.AgentSession{Persistence: v1alpha1.PersistenceNone}}, "spec.session.persistence"},
		"not enabled":   {v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Autonomous: true, AllowedAgents: []v1alpha1.NamespacedReference{*ref}, MaxIterations: 2}}, "spec.coordination.autonomous spec.coordination.allowedAgents spec.coordination.maxIterations"},
		"enabled":       {v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{*ref}, MaxIterations: 2}}, "spec.coordination.maxIterations"},
		"in iterations": {v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true, MaxIterations: 2}}, ""},
	} {
		named(t, name, IdleOfAgent(&tc.spec), tc.want)
	}
	for name, tc := range map[string]struct {
		spec v1alpha1.ToolSpec
		want string
	}{
		"body":              {v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{AuthInject: v1alpha1.AuthInjectBody, AuthBodyKey: "k", AuthSecretRef: &v1alpha1.KeyReference{}}}, ""},
		"body, and no key":  {v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{AuthInject: v1alpha1.AuthInjectBody, AuthBodyKey: "k"}}, "spec.http.authBodyKey"},
		"remote":            {v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{Path: "/mcp", Remote: &v1alpha1.ToolMCPRemote{}}}, ""},
		"remote, by a path": {v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{Path: "/other", Remote: &v1alpha1.ToolMCPRemote{}}}, "spec.mcp.path"},
		"path of an actor":  {v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{Path: "/other", SubstrateActor: &v1alpha1.ToolSubstrateActor{}}}, ""},
	} {
		named(t, name, IdleOfTool(&tc.spec), tc.want)
	}
}
