// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// TestCodingAgentSession: a coding agent is told what was said in the session of its task, and what it answers is said there. A cancelled
// task is no failure of the agent, and the session goes on.
func TestCodingAgentSession(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	p := newCoding(t)
	ask := func(name, prompt string, ref v1alpha1.TaskSessionReference) {
		ref.Name = "talk"
		p.Run(name, func(s *v1alpha1.TaskSpec) {
			s.Type, s.Command, s.Prompt, s.AgentRef, s.SessionRef = v1alpha1.TaskTypeAgent, nil, prompt, &v1alpha1.NamespacedReference{Name: "coder"}, &ref
		})
	}
	ask("first", "do: say The word is\ndo: say  heliotrope.", v1alpha1.TaskSessionReference{Create: true})
	p.AwaitPhase("first", v1alpha1.TaskSucceeded)

	ask("stopped", "do: say half an\ndo: await-cancel answer", v1alpha1.TaskSessionReference{})
	ask("next", "do: echo", v1alpha1.TaskSessionReference{})
	kit.Await(t, "the agent is at work", func() bool {
		return len(p.EventsOf("stopped", v1alpha1.EventAgentRuntimeCommandStarted)) > 0
	})
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "stopped", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
	p.AwaitPhase("stopped", v1alpha1.TaskCancelled)
	p.AwaitPhase("next", v1alpha1.TaskSucceeded)
	if failed := p.EventsOf("stopped", v1alpha1.EventAgentRuntimeFailed); len(failed) > 0 {
		t.Errorf("the agent is said to have failed: %+v", failed)
	}
	const before = `{"role":"user","content":"do: say The word is\ndo: say  heliotrope."}` + "\n" + `{"role":"assistant","content":"The word is heliotrope."}`
	parts := strings.Split(p.ResultOf("next"), "|")
	if len(parts) != 3 || parts[0] != "Be brief." || !strings.HasSuffix(parts[1], "\n"+before) || parts[2] != "do: echo" {
		t.Errorf("it was asked %q", parts)
	}
	said := p.Transcript("talk", 100)
	if last := said[len(said)-1]; last.Role != v1alpha1.RoleAssistant || last.SourceRef != "next" || said[1].Content != "The word is heliotrope." {
		t.Errorf("in the session: %+v", said)
	}

	// The prompt may be there already.
	kit.Must[*v1alpha1.SessionTranscript](t)(p.Sessions().AppendMessages(t.Context(), "talk", &v1alpha1.SessionTranscript{Items: []v1alpha1.SessionMessage{
		{ID: "asked", Role: v1alpha1.RoleUser, Content: "do: say from the session"},
	}}, metav1.CreateOptions{}))
	ask("included", "", v1alpha1.TaskSessionReference{PromptIncluded: true})
	p.AwaitPhase("included", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("included"); got != "from the session" {
		t.Errorf("it answered %q", got)
	}
}
