// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Row returns an event as pages, streams and traces show it: without apiVersion, kind, metadata and
// dedupKey, which only the Kubernetes API and the producer need. The values that the row points to are
// shared with e.
func Row(e *v1alpha1.ExecutionEvent) v1alpha1.ExecutionEvent {
	row := *e
	row.TypeMeta, row.ObjectMeta, row.DedupKey = metav1.TypeMeta{}, metav1.ObjectMeta{}, ""
	return row
}
