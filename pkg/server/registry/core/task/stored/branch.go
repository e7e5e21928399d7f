// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// OwnBranch returns the generated name of a task's publication branch. No other task has the same.
func OwnBranch(t *v1alpha1.Task) string {
	return "platform/" + v1alpha1.ShortName(t.Name, "-"+string(t.UID[:min(8, len(t.UID))]), maxOwnBranch)
}

// maxOwnBranch leaves room for the prefix in the 255 bytes of spec.workspace.pushBranch.
const maxOwnBranch = 240
