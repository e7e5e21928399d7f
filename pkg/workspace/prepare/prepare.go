// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prepare carries out the orders of package workspace.
package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/checkout"
	"github.com/platform-ai/platform/pkg/workspace/fault"
	"github.com/platform-ai/platform/pkg/workspace/reach"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

// maxOrder bounds an order, in bytes.
const maxOrder = 1 << 20

// Main reads an order, carries it out and writes the answer. An error means that there was no order, or that nobody took the answer.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	var o workspace.Order
	raw, err := io.ReadAll(io.LimitReader(in, maxOrder))
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if json.Unmarshal(raw, &o) != nil {
		return errors.New("standard input has no order: the program is started by workers")
	}
	var answer workspace.Answer
	if answer.Report, err = Do(ctx, o); err != nil {
		answer.Failure = fault.Of(err)
	}
	return json.NewEncoder(out).Encode(answer)
}

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
