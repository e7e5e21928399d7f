// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// maxEntries is how many files, folders and links a repository may have.
const maxEntries = 1_000_000

// For returns what a task says about its repository, as an order without credential, folders and limit of bytes. An attempt that
// follows another one begins with the same commit. The task has a workspace.
func For(t *v1alpha1.Task) Order {
	ws := t.Spec.Workspace
	o := Order{URL: ws.GitRepo, Branch: ws.Branch, Ref: ws.Ref, SubPath: ws.SubPath, MaxEntries: maxEntries}
	if d := t.Status.Delivery; d != nil {
		o.Commit = d.StartingSHA
	}
	return o
}
