// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prepare carries out the orders of package workspace that precede a run: it writes the files of a commit into its folder.
package prepare

import (
	"context"
	"os"
	"time"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/checkout"
	"github.com/platform-ai/platform/pkg/workspace/reach"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

// Do carries out an order. After an error the folder may have files.
func Do(ctx context.Context, o workspace.Order) (*workspace.Report, error) {
	return do(ctx, o, reach.StallTime)
}

func do(ctx context.Context, o workspace.Order, stall time.Duration) (*workspace.Report, error) {
	remote, ctx, giveUp := reach.Remote(ctx, o.Access(), o.MaxBytes, stall)
	defer giveUp()
	session, err := remote.Open(ctx)
	if err != nil {
		return nil, err
	}
	source := repository.Source{Commit: o.Commit}
	if o.Commit == "" {
		if source, err = session.Resolve(repository.Want{Branch: o.Branch, Ref: o.Ref}); err != nil {
			return nil, err
		}
	}
	store := o.Keep
	if store == "" {
		if store, err = os.MkdirTemp(o.Temp, "fetched-"); err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(store) }()
	}
	objects, err := session.Fetch(ctx, source, store)
	if err != nil {
		return nil, err
	}
	defer func() { _ = objects.Close() }()
	top, err := objects.Root(o.SubPath)
	if err != nil {
		return nil, err
	}
	into, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = into.Close() }()
	written, err := checkout.Write(ctx, top, into, checkout.Limits{Entries: o.MaxEntries, Bytes: o.MaxBytes})
	if err != nil {
		return nil, err
	}
	return &workspace.Report{
		Commit: source.Commit, Ref: source.Ref, Tree: objects.Tree(),
		Files: written.Files, Bytes: written.Bytes, PlainLinks: written.Plain, Submodules: written.Submodules,
	}, nil
}
