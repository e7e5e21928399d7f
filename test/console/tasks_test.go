// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// What happens now is shown of all tasks, however many there are.
func TestManyTasks(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	for i := range 600 {
		f.Task(fmt.Sprintf("many-%03d", i))
	}
	f.Task("zz-failed")
	failed := f.Tasks["zz-failed"].DeepCopy()
	failed.Status.Phase = v1alpha1.TaskFailed
	failed.Status.CompletionTime = new(metav1.Now())
	if _, err := f.API.CoreV1alpha1().Tasks("team").UpdateStatus(t.Context(), failed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.drive("tasks.mjs", 1, "TOKEN="+f.token("ann", "platform-viewer"), fmt.Sprintf("ACTIVE=%d", len(f.Tasks)-1))
}

// Views that are not fed by the stream of events follow a run all the same.
func TestFollowing(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.drive("follow.mjs", 2, "TOKEN="+f.token("ann", "platform-viewer"))
}
