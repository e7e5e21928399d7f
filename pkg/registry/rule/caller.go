// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TaskOf is what a caller's credential says of its task, by the keys of the
// user's extras; empty for a caller that is not a worker. What is not said
// exactly once is the empty text, which no task has.
func TaskOf(u user.Info) map[string]string {
	out := map[string]string{}
	for _, key := range []string{v1alpha1.ExtraTaskNamespace, v1alpha1.ExtraTaskName, v1alpha1.ExtraTaskUID} {
		if v, is := u.GetExtra()[key]; is {
			out[key] = ""
			if len(v) == 1 {
				out[key] = v[0]
			}
		}
	}
	return out
}
