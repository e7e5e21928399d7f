// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// TestTokensOfARunningTask: kubectl get shows what a task has used so far, although its status is written at its end.
func TestTokensOfARunningTask(t *testing.T) {
	s := start(t)
	task := s.mustTask("a", `{type: ai, prompt: go, ai: {provider: openai, model: m}}`)
	s.worker(task) // it has a run now
	shown := func() any {
		t.Helper()
		table, err := s.Storage["tasks"].(rest.TableConvertor).ConvertToTable(s.User(), s.Task("a"), nil)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Tokens" })
		return table.Rows[0].Cells[at]
	}
	add := func(e v1alpha1.EventType, content map[string]any) {
		t.Helper()
		if _, err := s.CreateNamed(s.User(), "tasks/events", "a", event.New(e, v1alpha1.SeverityInfo, "", "", content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"10/5", "20/10"} {
		add(v1alpha1.EventModelRequestStarted, map[string]any{"provider": "p"})
		add(v1alpha1.EventModelRequestCompleted, map[string]any{"inputTokens": 10, "outputTokens": 5})
		for range 2 { // looking changes nothing
			if got := shown(); got != want {
				t.Errorf("tokens: %v, want %s", got, want)
			}
		}
	}
	add(v1alpha1.EventModelRequestStarted, map[string]any{"provider": "p"})
	if got := shown(); got != "20/10+" {
		t.Errorf("tokens during a request: %v", got)
	}
}
