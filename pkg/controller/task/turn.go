// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// turn is the place of a task among all others: the order in which the server
// created them.
type turn struct {
	// revision is the store's revision at the creation; 0 if the server did not record it. Such a task comes first.
	revision int64
	// created has a resolution of one second. It and the fields after it order tasks that have no revision, or the
	// same one because they were created at the same moment.
	created time.Time
	key     types.NamespacedName
	uid     types.UID
}

func turnOf(t *v1alpha1.Task) turn {
	return turn{revision: t.Status.CreationRevision, created: t.CreationTimestamp.Time, key: client.ObjectKeyFromObject(t), uid: t.UID}
}

// compare returns a negative number if a comes before b.
func (a turn) compare(b turn) int {
	return cmp.Or(
		cmp.Compare(a.revision, b.revision), a.created.Compare(b.created),
		cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name), cmp.Compare(a.uid, b.uid),
	)
}
