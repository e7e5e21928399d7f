// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// TestList: each tool that the catalogue has in runs is bound to its code, once, and nothing else is. The code makes the tool that the
// catalogue describes.
func TestList(t *testing.T) {
	var bound []*builtin.Tool
	for _, b := range list {
		if !slices.Contains(builtin.In(builtin.Runs), b.Of) {
			t.Errorf("%s: the catalogue does not have it in runs", b.Of.Name)
		}
		if slices.Contains(bound, b.Of) {
			t.Errorf("%s: bound twice", b.Of.Name)
		}
		bound = append(bound, b.Of)
		made, err := b.New(toolkit.Given{
			WorkDir: t.TempDir(), TempDir: t.TempDir(), Policy: sandbox.Policy{Read: sandbox.System()}, API: &client.API{}, Task: &v1alpha1.Task{},
			UpdatePlan: func(context.Context, *v1alpha1.TaskPlan) error { return nil },
		})
		if err != nil {
			t.Errorf("%s: %v", b.Of.Name, err)
			continue
		}
		got, want := made.Definition(), b.Of.Definition()
		if b.Of == builtin.CodeExec { // which languages a run has depends on where it is
			want = builtin.ForLanguages(builtin.Languages())
			got.Description, got.Parameters = want.Description, want.Parameters
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-catalogue +code):\n%s", b.Of.Name, d)
		}
	}
	for _, of := range builtin.In(builtin.Runs) {
		if !slices.Contains(bound, of) {
			t.Errorf("%s: the catalogue has it in runs, and no code is bound to it", of.Name)
		}
	}
}
