// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish carries out the orders of package workspace that follow a run: it freezes what changed, makes a commit of it, moves
// the branch, and looks where the branch is. Steps has these and the one that precedes a run.
//
// A branch is moved by compare-and-swap: the request names the exact commit that the branch must be at, or that it must not exist, and
// the server compares and moves in one step. There is no force and no lease from a remembered ref. What the server says about a push
// decides nothing: a read with another credential does.
package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/durable"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/changes"
	"github.com/platform-ai/platform/pkg/workspace/commit"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/fault"
	"github.com/platform-ai/platform/pkg/workspace/prepare"
	"github.com/platform-ai/platform/pkg/workspace/reach"
	"github.com/platform-ai/platform/pkg/workspace/repository"
	"github.com/platform-ai/platform/pkg/workspace/transfer"
)

const (
	// maxOrder bounds an order, in bytes.
	maxOrder = 1 << 20
	// maxLook bounds what a server sends for a look, in bytes.
	maxLook = 256 << 20
	// maxReport bounds what a server sends after a push, in bytes.
	maxReport = 1 << 20
)

// Steps are the steps of the program by their names.
func Steps() map[string]func(ctx context.Context, in io.Reader, out io.Writer) error {
	return map[string]func(ctx context.Context, in io.Reader, out io.Writer) error{
		workspace.Prepare: step(prepare.Do, fault.Of, func(a *workspace.Answer, r *workspace.Report) { a.Report = r }),
		workspace.Pack:    step(transfer.Pack, transferred, func(a *workspace.Answer, p *workspace.Packed) { a.Packed = p }),
		workspace.Apply:   step(transfer.Apply, transferred, func(a *workspace.Answer, p *workspace.Applied) { a.Applied = p }),
		workspace.Freeze:  step(Freeze, failure, func(a *workspace.Answer, f *workspace.Frozen) { a.Frozen = f }),
		workspace.Build:   step(Build, failure, func(a *workspace.Answer, b *workspace.Built) { a.Built = b }),
		workspace.Push:    step(Push, failure, func(a *workspace.Answer, p *workspace.Pushed) { a.Pushed = p }),
		workspace.Pull:    step(Pull, failure, func(a *workspace.Answer, p *workspace.Pulled) { a.Pulled = p }),
		workspace.Look:    step(Look, failure, func(a *workspace.Answer, s *workspace.Seen) { a.Seen = s }),
	}
}

// step reads an order, carries it out and writes the answer; failed says what an error of the order means. An error means that there was no order, or that nobody took the answer.
func step[O, R any](do func(context.Context, O) (*R, error), failed func(error) *workspace.FailedError, put func(*workspace.Answer, *R)) func(context.Context, io.Reader, io.Writer) error {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		raw, err := io.ReadAll(io.LimitReader(in, maxOrder))
		if err != nil {
			return fmt.Errorf("read the order: %w", err)
		}
		var order O
		if json.Unmarshal(raw, &order) != nil {
			return errors.New("standard input has no order: the program is started by workers and controllers")
		}
		var answer workspace.Answer
		if result, err := do(ctx, order); err != nil {
			answer.Failure = failed(err)
		} else {
			put(&answer, result)
		}
		return json.NewEncoder(out).Encode(answer)
	}
}

// failure says what an error means for the publication.
func failure(err error) *workspace.FailedError {
	if f, ok := errors.AsType[*workspace.FailedError](err); ok {
		return f
	}
	f := fault.Of(err)
	switch {
	case errors.Is(err, repository.ErrCredential), errors.Is(err, repository.ErrNotFound), errors.Is(err, egress.ErrRefused), errors.Is(err, repository.ErrRedirect):
		f.Reason = v1alpha1.ReasonCredentialBlocked
	case errors.Is(err, repository.ErrUnusable), errors.Is(err, repository.ErrEmpty), errors.Is(err, repository.ErrTooLarge):
		f.Reason = v1alpha1.ReasonDeliveryConflict
	case errors.Is(err, delta.ErrInvalid), errors.Is(err, delta.ErrTooLarge), errors.Is(err, commit.ErrUnfit), errors.Is(err, commit.ErrPolicy):
		f.Reason = v1alpha1.ReasonPublicationRefused
	}
	return f
}

// transferred says what an error means for a run elsewhere.
func transferred(err error) *workspace.FailedError {
	f := fault.Of(err)
	switch {
	case errors.Is(err, transfer.ErrTooLarge):
		f.Reason = v1alpha1.ReasonWorkspaceRefused
	case errors.Is(err, transfer.ErrUnfit):
		f.Reason = v1alpha1.ReasonProtocolViolated
	}
	return f
}

// Freeze writes the files of a delta and of its diff.
func Freeze(ctx context.Context, o workspace.FreezeOrder) (*workspace.Frozen, error) {
	from, err := repository.Open(o.Baseline, o.Commit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	dir, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	d, err := changes.Freeze(ctx, from, o.Commit, o.SubPath, dir, o.MaxEntries)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := d.Write(&file); err != nil {
		return nil, err
	}
	if int64(file.Len()) > o.MaxBytes {
		return nil, fmt.Errorf("%w: they take %d bytes compressed; the limit is %d", delta.ErrTooLarge, file.Len(), o.MaxBytes)
	}
	f := &workspace.Frozen{Files: len(d.Changes), Bytes: int64(file.Len()), Digest: workspace.Digest(file.Bytes())}
	var diff bytes.Buffer
	if f.NotShown, err = changes.Diff(d, from, &diff, o.MaxBytes); err != nil {
		return nil, err
	}
	return f, errors.Join(durable.WriteFile(o.Diff, diff.Bytes()), durable.WriteFile(o.Delta, file.Bytes()))
}

// Build writes the pack with the commit of a delta.
func Build(_ context.Context, o workspace.BuildOrder) (*workspace.Built, error) {
	file, err := os.Open(o.Delta)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	d, err := delta.Read(file)
	if err != nil {
		return nil, err
	}
	if len(d.Changes) == 0 {
		return &workspace.Built{}, nil
	}
	built, err := commit.Build(d, o.Parent, o.Policy, o.Message, o.Time)
	if err != nil {
		return nil, err
	}
	var pack bytes.Buffer
	if err := repository.WritePack(&pack, built.Objects); err != nil {
		return nil, err
	}
	return &workspace.Built{Commit: built.Commit, Tree: built.Tree, Files: len(d.Changes)}, os.WriteFile(o.Pack, pack.Bytes(), 0o600)
}

// Push asks the server to move a branch, unless it is where it should be already.
func Push(ctx context.Context, o workspace.PushOrder) (*workspace.Pushed, error) {
	remote, ctx, giveUp := reach.Remote(ctx, o.Access, maxReport, reach.StallTime)
	defer giveUp()
	to, err := remote.OpenPush(ctx)
	if err != nil {
		return nil, err
	}
	p := &workspace.Pushed{Head: to.Head(o.Branch)}
	switch p.Head {
	case o.New:
		p.Outcome = workspace.PushNotNeeded
		return p, nil
	case o.Old:
	default:
		p.Outcome = workspace.PushMoved
		return p, nil
	}
	pack, err := os.Open(o.Pack)
	if err != nil {
		return nil, err
	}
	err = to.Move(ctx, o.Branch, o.Old, o.New, pack)
	switch {
	case err == nil:
		p.Outcome = workspace.PushAccepted
	case errors.Is(err, repository.ErrRefused):
		p.Outcome = workspace.PushRefused
	case errors.Is(err, repository.ErrLost):
		p.Outcome = workspace.PushLost
	default:
		return nil, err
	}
	return p, nil
}

// Look reads where a branch is.
func Look(ctx context.Context, o workspace.LookOrder) (*workspace.Seen, error) {
	remote, ctx, giveUp := reach.Remote(ctx, o.Access, maxLook, reach.StallTime)
	defer giveUp()
	session, err := remote.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &workspace.Seen{Head: session.Head(o.Branch)}
	if s.Head == "" {
		return s, nil
	}
	dir, err := os.MkdirTemp(o.Temp, "seen-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.Published != "" {
		s.Contains, s.Tree, err = session.Contains(ctx, s.Head, o.Published, []string{o.Known}, dir)
		return s, err
	}
	if s.Forward = s.Head == o.Known; !s.Forward {
		s.Forward, _, err = session.Contains(ctx, o.Known, s.Head, nil, dir)
	}
	return s, err
}
