// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Head returns the commit of a branch; empty if there is none.
func (s *Session) Head(branch string) string { return head(s.refs, branch) }

// Contains reports whether a commit is another one or has it before it, and returns the tree of that other one if the server gives it
// out. known are commits that the server has; what they contain is not fetched. What is fetched is stored in an empty folder. A server
// that does not give the commit out has no answer, which is no.
func (s *Session) Contains(ctx context.Context, commit, other string, known []string, dir string) (contains bool, tree string, err error) {
	if commit == other {
		if tree, err = s.treeOf(ctx, other, known, dir); err != nil {
			return false, "", err
		}
		return true, tree, nil
	}
	if !s.gives(plumbing.NewHash(commit)) {
		return false, "", nil
	}
	req := packp.NewUploadPackRequestFromCapabilities(s.refs.Capabilities)
	req.Wants = []plumbing.Hash{plumbing.NewHash(commit)}
	for _, id := range append([]string{other}, known...) {
		if id != commit {
			req.Haves = append(req.Haves, plumbing.NewHash(id))
		}
	}
	// Only commits are of interest. Servers that cannot leave out the rest send what is new since the commits that are known.
	if s.refs.Capabilities.Supports("filter") {
		req.Filter = packp.FilterTreeDepth(0)
		if err := req.Capabilities.Set("filter"); err != nil {
			return false, "", fmt.Errorf("fetch: %w", err)
		}
	}
	o, err := s.store(ctx, req, dir, true)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = o.Close() }()
	return o.reaches(ctx, plumbing.NewHash(commit), plumbing.NewHash(other)), "", nil
}

// treeOf returns the tree of a commit, which the server must give out.
func (s *Session) treeOf(ctx context.Context, commit string, known []string, dir string) (string, error) {
	req := packp.NewUploadPackRequestFromCapabilities(s.refs.Capabilities)
	req.Wants = []plumbing.Hash{plumbing.NewHash(commit)}
	for _, id := range known {
		if id == commit { // nothing would be sent
			return "", nil
		}
		req.Haves = append(req.Haves, plumbing.NewHash(id))
	}
	o, err := s.store(ctx, req, dir, true)
	if err != nil {
		return "", err
	}
	defer func() { _ = o.Close() }()
	found, err := object.GetCommit(o.store, plumbing.NewHash(commit))
	if err != nil {
		return "", fmt.Errorf("%w: it shows commit %s and does not give it out", ErrUnavailable, commit)
	}
	return found.TreeHash.String(), nil
}

// store fetches what is requested into a folder. If it may be nothing, that is no error.
func (s *Session) store(ctx context.Context, req *packp.UploadPackRequest, dir string, nothing bool) (*Objects, error) {
	answer, err := s.up.UploadPack(ctx, req)
	if err != nil {
		return nil, classify(ctx, err)
	}
	defer func() { _ = answer.Close() }()
	o := newObjects(dir)
	err = packfile.UpdateObjectStorage(o.store, unpacked(req, answer))
	if nothing && errors.Is(err, packfile.ErrEmptyPackfile) {
		return o, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("what the server sent cannot be stored: %w", classify(ctx, err)), o.Close())
	}
	return o, nil
}

// reaches reports whether one commit is found from another by parents, among the objects and at their edge.
func (o *Objects) reaches(ctx context.Context, from, to plumbing.Hash) bool {
	seen, next := map[plumbing.Hash]bool{from: true}, []plumbing.Hash{from}
	for len(next) > 0 && ctx.Err() == nil {
		id := next[len(next)-1]
		next = next[:len(next)-1]
		if id == to {
			return true
		}
		c, err := object.GetCommit(o.store, id)
		if err != nil {
			continue // the server has it, and it was not asked for
		}
		for _, p := range c.ParentHashes {
			if !seen[p] {
				seen[p] = true
				next = append(next, p)
			}
		}
	}
	return false
}

// endpoint returns the address of the repository and the credential, as go-git takes them.
func (r Remote) endpoint() (*transport.Endpoint, transport.AuthMethod, error) {
	ep, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: its address: %w", ErrUnusable, err)
	}
	if ep.Protocol != "http" && ep.Protocol != "https" {
		return nil, nil, fmt.Errorf("%w: scheme %q; http and https can be used", ErrUnusable, ep.Protocol)
	}
	return ep, r.auth(), nil
}

// usable returns an error for a repository whose objects have another format.
func usable(refs *packp.AdvRefs) error {
	if f := refs.Capabilities.Get("object-format"); len(f) > 0 && f[0] != "sha1" {
		return fmt.Errorf("%w: its objects have the format %s; sha1 can be used", ErrUnusable, f[0])
	}
	return nil
}
