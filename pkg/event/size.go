// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// Size is the length of an event's payload, in bytes. The request that carried it was at least as long.
func Size(e *v1alpha1.ExecutionEvent) int {
	n := len(e.Summary) + len(e.ContentText)
	if e.Content != nil {
		n += len(e.Content.Raw)
	}
	return n
}
