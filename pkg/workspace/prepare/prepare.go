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
	"syscall"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/checkout"
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
		answer.Failure = failure(err)
	}
	return json.NewEncoder(out).Encode(answer)
}

// Do carries out an order. After an error the folder may have files.
func Do(ctx context.Context, o workspace.Order) (*workspace.Report, error) {
	return do(ctx, o, stallTime)
}

func do(ctx context.Context, o workspace.Order, stall time.Duration) (*workspace.Report, error) {
	remote := repository.Remote{URL: o.URL, Token: o.Token, Transport: egress.Guard{Allow: o.Allow}.Transport()}
	if o.Token != "" {
		remote.Transport = o.Hosts.Transport(remote.Transport)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	remote.Transport = watched{next: remote.Transport, stall: stall, maxPack: o.MaxBytes, giveUp: giveUp}
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
	store, err := os.MkdirTemp(o.Temp, "fetched-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(store) }()
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

// failure says what an error means for the run.
func failure(err error) *workspace.FailedError {
	f := &workspace.FailedError{Reason: v1alpha1.ReasonInternalError, Message: err.Error()}
	switch {
	case errors.Is(err, egress.ErrRefused), errors.Is(err, repository.ErrNotFound), errors.Is(err, repository.ErrCredential), errors.Is(err, repository.ErrNoRef),
		errors.Is(err, repository.ErrEmpty), errors.Is(err, repository.ErrRedirect), errors.Is(err, repository.ErrUnusable):
		f.Reason = v1alpha1.ReasonRepositoryNotRead
	case errors.Is(err, checkout.ErrRefused), errors.Is(err, repository.ErrTooLarge), errors.Is(err, syscall.EFBIG):
		f.Reason = v1alpha1.ReasonWorkspaceRefused
	case errors.Is(err, repository.ErrUnavailable):
		f.Reason, f.Temporary = v1alpha1.ReasonRepositoryUnreachable, true
	}
	return f
}
