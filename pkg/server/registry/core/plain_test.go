// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// hostile is what a model could put into its texts: a colour, a window's title, C1, DEL, and what a person does not see.
const hostile = "\x1b[31mred\x1b[0m \x1b]0;x\x07 \u009b2J \x7f \x00 a\tb\r\nc \u202e \u200b"

// Statuses and events hold no control characters, so that YAML can be made of them and terminals are not steered.
func TestStatusWithoutControlCharacters(t *testing.T) {
	s := coretest.Start(t)
	s.MustApply("tasks", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"a"},"spec":{"type":"ai","prompt":"x","ai":{"providerRef":{"name":"p"},"model":"m"}}}`)
	_, err := s.Update(s.User(), "tasks/status", "a", func(o runtime.Object) {
		st := &o.(*v1alpha1.Task).Status
		st.Message, st.Model = hostile, hostile
		st.Conditions = []metav1.Condition{{Type: "A", Status: "True", Reason: "B", Message: "ghp_\u009b" + strings.Repeat("aB3", 12), LastTransitionTime: metav1.Now()}}
	})
	if err != nil {
		t.Fatal(err)
	}
	task := s.Task("a")
	if want := "red ]0;x 2J   a\tb\nc \u202e \u200b"; task.Status.Message != want || task.Status.Model != want {
		t.Errorf("status: %q, want %q", task.Status.Message, want)
	}
	if c := task.Status.Conditions[0].Message; strings.Contains(c, "aB3aB3") {
		t.Errorf("a secret that a control character divided: %q", c)
	}
	inYAML(t, task)

	e := event.New(v1alpha1.EventToolCallCompleted, v1alpha1.SeverityInfo, "k", hostile, map[string]any{"result": hostile})
	e.ToolName, e.ContentText = hostile, hostile
	event.Sanitize(e)
	if want := "red ]0;x 2J   a b c \u202e \u200b"; e.Summary != want || e.ToolName != want {
		t.Errorf("event: %q %q, want %q", e.Summary, e.ToolName, want)
	}
	var content map[string]any
	if err := json.Unmarshal(e.Content.Raw, &content); err != nil || content["result"] != hostile {
		t.Errorf("content: %q (%v)", content["result"], err)
	}
	inYAML(t, e)
}

// inYAML makes YAML of an object as kubectl does.
func inYAML(t *testing.T, o any) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err == nil {
		_, err = yaml.JSONToYAML(raw)
	}
	if err != nil {
		t.Errorf("%v: %s", err, raw)
	}
}
