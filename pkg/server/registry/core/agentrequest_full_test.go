// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/usage"
)

// TestAgentRequestsOnAFullDisk: the disk fills up while a vendor has requests of a coding agent. With the room that is kept for the ends of
// tasks, the end of a request is stored at once. Without it, the end of the task waits for those of its requests, and comes after them.
func TestAgentRequestsOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk, measured, c := localtest.NewDisk(), clocktesting.NewFakeClock(time.Now()), clocktesting.NewFakeClock(time.Now())
	free := func(mib uint64) { // of a reserve of 128
		disk.SetSpace(1024<<20, mib<<20)
		measured.Step(3 * time.Second)
	}
	free(1000)
	// The clock of the server stands still, so that nothing is tried again by itself.
	s := &server{coretest.StartOn(t, local.Options{Dir: localtest.Dir, FS: disk.FS(), Clock: measured}, c), t}
	s.MustApply("providers", "apiVersion: core.platform.ai/v1alpha1\nkind: Provider\nmetadata: {name: p}\nspec: {type: openai, secretRef: {name: s}}\n")
	s.MustApply("agents", "apiVersion: core.platform.ai/v1alpha1\nkind: Agent\nmetadata: {name: coder}\nspec: {runtime: {type: codex}, model: {provider: openai}}\n")
	s.mustLimit("Budget", "all", "{limit: {tokens: 1000}, window: hour}")
	task := s.mustTask("one", "{type: agent, prompt: x, agentRef: {name: coder}}")
	me := s.worker(task)
	begin := func() models.Measurement {
		t.Helper()
		run, err := s.Stored.Asking(request.WithNamespace(me, "default"), "one")
		if err != nil {
			t.Fatal(err)
		}
		m, err := run.Meter().Start(me, models.Asked{Namespace: "default", Provider: "p", Model: "m", Candidate: 1, MaxTokens: 100, MaxInput: 50})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	used := models.Ended{Usage: llm.Usage{InputTokens: new(int64(40)), OutputTokens: new(int64(2))}, Status: usage.StatusCompleted}
	first, second := begin(), begin()
	s.checkBudget("begun", "all", 0, 300)
	free(100)
	if err := s.tell(me, "one", v1alpha1.EventModelMessage, "", nil); err == nil {
		t.Error("the worker could write on the full disk")
	}
	first.End(used)
	s.checkBudget("one has ended with little room", "all", 42, 150)
	free(30)
	second.End(used)
	s.checkBudget("one has ended without room", "all", 42, 150)
	end := func() error {
		return s.tell(s.As(controllers, nil), "one", v1alpha1.EventTaskSucceeded, "", nil)
	}
	if err := end(); err == nil || !strings.Contains(err.Error(), "disk of the server is full") {
		t.Errorf("the end of the task without room: %v", err)
	}
	free(1000)
	if err := end(); err != nil {
		t.Fatal(err)
	}
	s.checkBudget("the task has ended", "all", 84, 0)
	page, err := s.Log.TaskPage(t.Context(), eventlog.Stream{Namespace: task.Namespace, Task: task.Name, UID: task.UID}, 0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var types []v1alpha1.EventType
	for _, e := range page.Events[len(page.Events)-3:] {
		types = append(types, e.Type)
	}
	if got := fmt.Sprint(types); got != "[ModelRequestCompleted ModelRequestCompleted TaskSucceeded]" {
		t.Errorf("the stream ends with %s", got)
	}
}
