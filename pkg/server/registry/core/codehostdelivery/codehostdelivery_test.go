// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehostdelivery

import (
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestShown: what a delivery caused, and what it is about.
func TestShown(t *testing.T) {
	d := &v1alpha1.CodeHostDelivery{}
	if got := caused(d); got != "" || ItemKey(d) != "" {
		t.Errorf("%q %q", got, ItemKey(d))
	}
	d.Spec = v1alpha1.CodeHostDeliverySpec{TargetKind: v1alpha1.MonitorIssue, Repository: "Ada/Shop", Number: 7}
	d.Status = v1alpha1.CodeHostDeliveryStatus{Tasks: []string{"a"}, MonitorRunsQueued: 2, Commands: []string{"n/b"}}
	if got := caused(d); got != "1 task, 2 runs, 1 command" || ItemKey(d) != "ada/shop#7" {
		t.Errorf("%q %q", got, ItemKey(d))
	}
}
