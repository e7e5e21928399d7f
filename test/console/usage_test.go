// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/usage"
	"github.com/platform-ai/platform/test/kit"
)

// A period with more records than one report adds up is added up in parts.
func TestUsageOfMany(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	const each = usage.MaxRecords * 2 / 3
	for task, n := range map[string]int{"busy": each, "busier": each} {
		f.apart(task)
		for i := 0; i < n; i += 2000 {
			var events []v1alpha1.ExecutionEvent
			for k := i; k < min(i+2000, n); k++ {
				id := fmt.Sprint("request-", k)
				events = append(events, v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestCompleted, DedupKey: id, Model: "model-of-" + task, InputTokens: new(int64(10)), OutputTokens: new(int64(1))})
			}
			f.Post(task, events...)
		}
	}
	f.drive("usage.mjs", 3, "TOKEN="+f.token("ann", "platform-operator"), fmt.Sprint("REQUESTS=", 2*each))
}

// apart makes a task in another second than all before it, because a period ends with a second.
func (f *filled) apart(task string) {
	f.t.Helper()
	kit.Await(f.t, "the next second", func() bool {
		for _, t := range f.Tasks {
			if !time.Now().Truncate(time.Second).After(t.CreationTimestamp.Time) {
				return false
			}
		}
		return true
	})
	f.Task(task)
}
