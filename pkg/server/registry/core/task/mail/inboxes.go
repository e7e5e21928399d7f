// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mail

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// inboxes orders the changes of each inbox, so that its messages are numbered without gaps. Several tasks may share a
// lock. The server writes one process, so a lock in memory suffices.
type inboxes [64]sync.Mutex

var seed = maphash.MakeSeed()

// lock locks the inboxes of tasks until the func that it returns is called.
func (b *inboxes) lock(tasks []*v1alpha1.Task) func() {
	var at []int
	for _, t := range tasks {
		at = append(at, int(maphash.String(seed, string(t.UID))%uint64(len(b))))
	}
	slices.Sort(at) // one order for all, so that nobody waits in a circle
	at = slices.Compact(at)
	for _, i := range at {
		b[i].Lock()
	}
	return func() {
		for _, i := range at {
			b[i].Unlock()
		}
	}
}
