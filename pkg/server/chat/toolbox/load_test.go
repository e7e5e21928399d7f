// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// TestLoadTools: a model gets the tools that the user's words do not show to the server if it repeats what a user of the conversation
// has said, and no others. A turn that goes on has what it had loaded.
func TestLoadTools(t *testing.T) {
	t.Parallel()
	const asked = "Bitte lösche das Werkzeug\nLookup."
	history := []v1alpha1.SessionMessage{{Role: v1alpha1.RoleUser, Content: asked}, {Role: v1alpha1.RoleAssistant, Content: "Wirklich alles?"}}
	const deletes = "delete_agent delete_tool delete_session"
	for name, tc := range map[string]struct {
		message, arguments string
		want               string // what is offered then, of the tools that manage objects
		failed             string
	}{
		"in another language":     {asked, `{"for":"delete","words":"lösche das Werkzeug lookup"}`, "load_tools " + deletes, ""},
		"said before":             {"ja", `{"for":"delete","words":"lösche das Werkzeug"}`, "load_tools " + deletes, ""},
		"one of two":              {"erstelle einen Agenten", `{"for":"create","words":"erstelle"}`, "load_tools create_agent create_tool", ""},
		"besides what was shown":  {"create an agent und lösche alle Werkzeuge", `{"for":"delete","words":"lösche alle"}`, "load_tools create_agent " + strings.Replace(deletes, "delete_tool", "create_tool delete_tool", 1), ""},
		"loaded already":          {"delete it", `{"for":"delete","words":"delete"}`, "load_tools " + deletes, ""},
		"the model's own words":   {"ja", `{"for":"delete","words":"Wirklich alles"}`, "load_tools", "no message of the user has these words"},
		"no words":                {"ja", `{"for":"delete","words":" \n"}`, "load_tools", "no message of the user has these words"},
		"an intent that is none":  {"ja", `{"for":"files","words":"ja"}`, "load_tools", "for"},
		"nothing is left to load": {"create, change, delete, monitor", `{"for":"delete","words":"delete"}`, "create_agent update_agent delete_agent create_tool delete_tool delete_session create_pr_monitor create_pull_request check_pull_request_ci", "there is no tool"},
	} {
		made := func() *Box {
			b := &Box{
				Scope: Scope{In: builtin.Chats, Words: Words(tc.message, history), Said: Said(tc.message, history)},
				o:     &Options{CallTimeout: 1 << 40, Clock: clock.RealClock{}},
			}
			var err error
			if b.catalogue, err = b.offered(t.Context()); err != nil {
				t.Fatal(err)
			}
			return b
		}
		offered := func(b *Box) string {
			var names []string
			for _, of := range builtin.In(builtin.Chats) {
				if _, has := b.catalogue.Definition(of.Name); has && (of == builtin.ChatLoadTools || of.Asked != builtin.Anything) {
					names = append(names, of.Name)
				}
			}
			return strings.Join(names, " ")
		}
		b := made()
		r := b.catalogue.Call(t.Context(), builtin.ChatLoadTools.Name, tc.arguments)
		if got := offered(b); got != tc.want || r.Failed() != (tc.failed != "") || !strings.Contains(r.Text, tc.failed) {
			t.Errorf("%s: %s offered, want %s: %s", name, got, tc.want, r.Text)
		}
		next := made()
		next.LoadAgain(t.Context(), []llm.Message{{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: builtin.ChatLoadTools.Name, Arguments: tc.arguments}}}})
		if offered(next) != tc.want {
			t.Errorf("%s: after an interruption %s is offered, want %s", name, offered(next), tc.want)
		}
	}
}
