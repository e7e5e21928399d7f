// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/platform-ai/platform/pkg/workspace/gitobject"
)

// Errors of a push.
var (
	// ErrRefused means that the server did not move the branch.
	ErrRefused = errors.New("the server refuses to move the branch")
	// ErrLost means that the server was asked to move the branch, and that its answer did not come or makes no sense. It may have moved.
	ErrLost = errors.New("the server was asked to move the branch, and its answer was lost")
)

// Pushing is a conversation with a server to which something may be pushed.
type Pushing struct {
	to   transport.ReceivePackSession
	refs *packp.AdvRefs
}

// OpenPush asks the server what the repository contains, in order to push to it.
func (r Remote) OpenPush(ctx context.Context) (*Pushing, error) {
	ep, auth, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	to, err := githttp.NewClient(&http.Client{Transport: here{r.Transport}}).NewReceivePackSession(ep, auth)
	if err != nil {
		return nil, fmt.Errorf("%w: its address: %w", ErrUnusable, err)
	}
	refs, err := to.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, classify(ctx, err)
	}
	if err := usable(refs); err != nil {
		return nil, err
	}
	return &Pushing{to: to, refs: refs}, nil
}

// Head returns the commit of a branch; empty if there is none.
func (p *Pushing) Head(branch string) string { return head(p.refs, branch) }

func head(refs *packp.AdvRefs, branch string) string {
	if id, ok := refs.References[refOf(branch)]; ok {
		return id.String()
	}
	return ""
}

func refOf(branch string) string { return "refs/heads/" + branch }

// Move asks the server to move a branch from exactly one commit, which is empty for a branch that does not exist, to another. The server
// compares and moves in one step, so a branch that somebody else moved meanwhile stays where it is. The pack has what the new commit
// needs and the repository lacks.
func (p *Pushing) Move(ctx context.Context, branch, from, to string, pack io.ReadCloser) error {
	if !p.refs.Capabilities.Supports(capability.ReportStatus) {
		return fmt.Errorf("%w: the server does not report what becomes of a push", ErrUnusable)
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(p.refs.Capabilities)
	if p.refs.Capabilities.Supports(capability.Atomic) {
		if err := req.Capabilities.Set(capability.Atomic); err != nil {
			return fmt.Errorf("push: %w", err)
		}
	}
	req.Commands = []*packp.Command{{Name: plumbing.ReferenceName(refOf(branch)), Old: plumbing.NewHash(from), New: plumbing.NewHash(to)}}
	req.Packfile = pack
	report, err := p.to.ReceivePack(ctx, req)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrLost, context.Cause(ctx))
	case report != nil && (report.UnpackStatus != "ok" || len(report.CommandStatuses) > 0) && err != nil:
		return ErrRefused // what the server says about it is not shown
	case report != nil && err == nil && len(report.CommandStatuses) == 1 && report.CommandStatuses[0].ReferenceName.String() == refOf(branch):
		return nil
	case err == nil:
		return fmt.Errorf("%w: its answer does not name the branch", ErrLost)
	}
	if err := classify(ctx, err); errors.Is(err, ErrCredential) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrRedirect) {
		return err
	}
	return ErrLost
}

// WritePack writes objects as a pack.
func WritePack(to io.Writer, objects []gitobject.Object) error {
	store := memory.NewStorage()
	names := make([]plumbing.Hash, 0, len(objects))
	for _, o := range objects {
		kind, err := plumbing.ParseObjectType(o.Kind)
		if err != nil {
			return err
		}
		e := store.NewEncodedObject()
		e.SetType(kind)
		w, err := e.Writer()
		if err != nil {
			return err
		}
		if _, err := w.Write(o.Data); err != nil {
			return err
		}
		name, err := store.SetEncodedObject(e)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	_, err := packfile.NewEncoder(to, store, false).Encode(names, 0)
	return err
}
