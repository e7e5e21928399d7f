// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/fork"
)

// TestSummarySaysWhatATaskIsAbout: the first line of what it was asked for, however its prompt is given, or its command, and no more
// than a row has room for.
func TestSummarySaysWhatATaskIsAbout(t *testing.T) {
	forked := fork.Prompt(fork.Context("ns", "t", 0, nil, false), "once more")
	for want, spec := range map[string]v1alpha1.TaskSpec{
		"go":                                {Prompt: " \n\r\n  go \r\n \n"},
		"go …":                              {Prompt: "go\nand come back"},
		"sum":                               {AI: &v1alpha1.TaskAI{Prompt: "sum"}},
		"once more":                         {Prompt: forked},
		"make -k test":                      {Type: v1alpha1.TaskTypeContainer, Command: []string{"make"}, Args: []string{"-k", "test"}},
		strings.Repeat("ä", 78) + "…":       {Prompt: strings.Repeat("ä", 300)},
		strings.Repeat("long ", 31) + "lo…": {Prompt: strings.Repeat("long ", 100_000) + "\nend"},
		"":                                  {Prompt: " ", Command: []string{"not read by a model"}},
	} {
		if got := Summary(&v1alpha1.Task{Spec: spec}).Prompt; got != want || len(got) > maxAbout {
			t.Errorf("%.40q: %q (%d bytes), want %q", spec.Prompt, got, len(got), want)
		}
	}
}

// TestSummarySaysWhy: a task that failed says why, and one that succeeded needs no explanation. Whether a task is suspended is said
// where that means something.
func TestSummarySaysWhy(t *testing.T) {
	task := &v1alpha1.Task{Status: v1alpha1.TaskStatus{
		Phase: v1alpha1.TaskFailed, Message: strings.Repeat("x", 300),
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTimedOut}},
	}}
	if s := Summary(task); s.Reason != v1alpha1.ReasonTimedOut || len(s.Message) != maxMessage || !strings.HasSuffix(s.Message, "x…") || s.Suspend != nil {
		t.Errorf("failed: %+v", s)
	}
	task.Status = v1alpha1.TaskStatus{Phase: v1alpha1.TaskSucceeded, Message: "the task is complete"}
	if s := Summary(task); s.Reason != "" || s.Message != "" {
		t.Errorf("succeeded: %+v", s)
	}
	for want, task := range map[bool]*v1alpha1.Task{
		true:  {Spec: v1alpha1.TaskSpec{Schedule: "@daily", Suspend: true}},
		false: {Status: v1alpha1.TaskStatus{Phase: v1alpha1.TaskRunning, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionIterating}}}},
	} {
		if s := Summary(task).Suspend; s == nil || *s != want {
			t.Errorf("suspended: %v, want %v", s, want)
		}
	}
}
