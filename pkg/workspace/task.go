// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// MaxEntries is how many files, folders and links a repository may have.
const MaxEntries = 1_000_000

// For returns what a task says about its repository, as an order without credential, folders and limit of bytes. An attempt that
// follows another one begins with the same commit. The task has a workspace.
func For(t *v1alpha1.Task) Order {
	ws := t.Spec.Workspace
	o := Order{URL: ws.GitRepo, Branch: ws.Branch, Ref: ws.Ref, SubPath: ws.SubPath, MaxEntries: MaxEntries}
	if d := t.Status.Delivery; d != nil {
		o.Commit = d.StartingSHA
	}
	return o
}

// Program returns the path of the program: the one that is named, or else one beside the running program; empty if there is none.
func Program(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), ProgramName)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", nil //nolint:nilerr // there is none
	}
	return path, nil
}
