// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Definitions returns every resource of the group, in the order of All, to be read and not to be served.
func Definitions() []resource.Resource {
	return All(Options{Options: task.Options{Clock: clock.RealClock{}}})
}

// Scopes returns the scopes of all kinds whose Definitions have some.
func Scopes() external.Kinds {
	kinds := external.Kinds{}
	for _, r := range Definitions() {
		if s := r.TokenScopes(); s != nil {
			kinds[r.GroupVersionResource().Resource] = *s
		}
	}
	return kinds
}
