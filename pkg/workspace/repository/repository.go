// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repository reads a git repository of a server: it resolves what a task names to an exact commit, fetches that one commit,
// and lists its tree. It speaks git's smart protocol over HTTP by means of go-git, which is imported nowhere else.
//
// # Why not the git program
//
// Everything here is data to this package. Nothing that the repository or the server says starts a process, changes a
// configuration, follows a redirect or names another repository: hooks, filters, attributes, fsmonitor, submodules, alternates,
// includes and replacements are features of git's working copies, and there is none here. The git program has the same features
// switched on one by one by files and variables, needs a credential in its environment or in a helper, and is not part of an image
// without a shell. docs/decisions.md has the figures of both.
//
// # What is fetched
//
// One commit, without its history: its tree and the files in it. A server that does not give out a commit by its name is asked for
// the branches with their history instead. Objects get their names from their content as they are stored, so what Entries and Open show is the
// content of the commit whose name was recorded.
package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
)

// Errors of a repository. The text of an error never contains what a server sent.
var (
	// ErrNotFound means that the server has no such repository, or hides it from this credential.
	ErrNotFound = errors.New("the server has no such repository, or does not show it without another credential")
	// ErrCredential means that the server refused the credential, or wants one.
	ErrCredential = errors.New("the server refuses the credential, or wants one")
	// ErrNoRef means that the repository lacks the branch, ref or commit.
	ErrNoRef = errors.New("the repository has no such branch, tag or commit")
	// ErrEmpty means that the repository has no commit.
	ErrEmpty = errors.New("the repository is empty")
	// ErrRedirect means that the server names another address.
	ErrRedirect = errors.New("the server redirects to another address, which is not followed")
	// ErrUnavailable means that the server cannot be reached or does not answer properly. Another attempt may succeed.
	ErrUnavailable = errors.New("the server cannot be reached")
	// ErrUnusable means that the repository is of a kind that cannot be read here, or lacks a folder that was asked for.
	ErrUnusable = errors.New("the repository cannot be used")
	// ErrTooLarge means that what the server sends exceeds the limit.
	ErrTooLarge = errors.New("the repository is larger than the run may store")
)

// userName is the name that goes with a token. GitHub documents it, and other code hosts accept any.
const userName = "x-access-token"

// Remote is a repository on a server.
type Remote struct {
	// URL is its address, http or https, without credentials, query and fragment.
	URL string
	// Token is the credential; empty for none.
	Token string
	// Transport sends the requests. Where they may go is its decision.
	Transport http.RoundTripper
}

// Want is what a task names: a branch, or a ref, tag or commit, or neither for the default branch.
type Want struct {
	Branch, Ref string
}

// Source is an exact commit, and how it was named.
type Source struct {
	// Commit is the commit, 40 lower-case hexadecimal digits.
	Commit string
	// Ref is the full name of the ref that led to it, such as refs/heads/main; empty if a commit was named.
	Ref string
}

// Session is a conversation with the server of a repository, which has said what the repository contains.
type Session struct {
	up   transport.UploadPackSession
	refs *packp.AdvRefs
}

// Open asks the server what the repository contains.
func (r Remote) Open(ctx context.Context) (*Session, error) {
	ep, auth, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	client := githttp.NewClient(&http.Client{Transport: here{r.Transport}})
	up, err := client.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, fmt.Errorf("%w: its address: %w", ErrUnusable, err)
	}
	refs, err := up.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, classify(ctx, err)
	}
	if err := usable(refs); err != nil {
		return nil, err
	}
	return &Session{up: up, refs: refs}, nil
}

// auth returns the credential; nil for none.
func (r Remote) auth() transport.AuthMethod {
	if r.Token == "" {
		return nil
	}
	return &githttp.BasicAuth{Username: userName, Password: r.Token}
}

// Resolve returns the exact commit that is named now.
func (s *Session) Resolve(w Want) (Source, error) {
	switch {
	case w.Ref != "" && v1alpha1.IsLowerHex(w.Ref, 40):
		return Source{Commit: w.Ref}, nil
	case w.Ref != "":
		for _, name := range []string{w.Ref, "refs/" + w.Ref, "refs/tags/" + w.Ref, "refs/heads/" + w.Ref} {
			if src, ok := s.ref(name); ok {
				return src, nil
			}
		}
		return Source{}, fmt.Errorf("%w: %s", ErrNoRef, w.Ref)
	case w.Branch != "":
		if src, ok := s.ref("refs/heads/" + w.Branch); ok {
			return src, nil
		}
		return Source{}, fmt.Errorf("%w: branch %s", ErrNoRef, w.Branch)
	}
	for _, ref := range s.refs.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(ref, "HEAD:"); ok {
			if src, ok := s.ref(target); ok {
				return src, nil
			}
		}
	}
	if s.refs.Head == nil {
		return Source{}, ErrEmpty
	}
	return Source{Commit: s.refs.Head.String(), Ref: "HEAD"}, nil
}

// ref returns the commit of a ref that the server has shown. A tag that is an object of its own is followed.
func (s *Session) ref(name string) (Source, bool) {
	id, ok := s.refs.Peeled[name]
	if !ok {
		id, ok = s.refs.References[name]
	}
	return Source{Commit: id.String(), Ref: name}, ok
}

// Fetch stores a commit and its tree, without its history, in a folder, which must be empty.
func (s *Session) Fetch(ctx context.Context, src Source, dir string) (*Objects, error) {
	req := packp.NewUploadPackRequestFromCapabilities(s.refs.Capabilities)
	if s.refs.Capabilities.Supports(capability.Shallow) {
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		req.Depth = packp.DepthCommits(1)
	}
	commit := plumbing.NewHash(src.Commit)
	req.Wants = []plumbing.Hash{commit}
	if !s.gives(commit) {
		req.Depth = packp.DepthCommits(0)
		req.Wants = s.branches()
	}
	if len(req.Wants) == 0 {
		return nil, ErrEmpty
	}
	o, err := s.store(ctx, req, dir, false)
	if err != nil {
		return nil, err
	}
	return o.at(src.Commit)
}

// Open opens the objects that Fetch has stored in a folder.
func Open(dir, commit string) (*Objects, error) { return newObjects(dir).at(commit) }

// gives reports whether the server gives out a commit by its name.
func (s *Session) gives(commit plumbing.Hash) bool {
	c := s.refs.Capabilities
	if c.Supports(capability.AllowReachableSHA1InWant) || c.Supports("allow-any-sha1-in-want") {
		return true
	}
	for _, ids := range []map[string]plumbing.Hash{s.refs.References, s.refs.Peeled} {
		for _, id := range ids {
			if id == commit {
				return true
			}
		}
	}
	return s.refs.Head != nil && *s.refs.Head == commit
}

// branches returns the commits of all branches and tags.
func (s *Session) branches() []plumbing.Hash {
	var ids []plumbing.Hash
	for name, id := range s.refs.References {
		if (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// unpacked returns the pack in an answer, which may share its stream with messages for people.
func unpacked(req *packp.UploadPackRequest, answer io.Reader) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, answer)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, answer)
	default:
		return answer
	}
}

// here is a transport that refuses redirects. go-git would follow the first one.
type here struct{ next http.RoundTripper }

func (t here) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err == nil && answer.StatusCode/100 == 3 {
		_ = answer.Body.Close()
		return nil, ErrRedirect
	}
	return answer, err
}

// classify returns an error of this package for one of go-git, without what the server said.
func classify(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, local := errors.AsType[*fs.PathError](err)
	switch {
	case local, errors.Is(err, egress.ErrRefused):
		return err
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return ErrCredential
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return ErrNotFound
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return ErrEmpty
	case errors.Is(err, ErrRedirect):
		return ErrRedirect
	}
	if e, ok := errors.AsType[*githttp.Err](err); ok {
		return fmt.Errorf("%w: it answers with status %d", ErrUnavailable, e.StatusCode())
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%w: %w", ErrUnavailable, e)
	}
	return fmt.Errorf("%w: it does not answer as a git server does", ErrUnavailable) // the error may have its words
}

// Objects are the objects of one fetched commit.
type Objects struct {
	store *filesystem.Storage
	tree  plumbing.Hash
}

const (
	// streamBytes is the size from which content is streamed and not kept in memory.
	streamBytes = 1 << 20
	// cacheBytes is what the cache of trees and of the bases of deltas may take.
	cacheBytes = 32 << 20
)

func newObjects(dir string) *Objects {
	return &Objects{store: filesystem.NewStorageWithOptions(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(cacheBytes),
		filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: streamBytes})}
}

// at finds the tree of the commit. After an error the store is closed.
func (o *Objects) at(commit string) (*Objects, error) {
	found, err := object.GetCommit(o.store, plumbing.NewHash(commit))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s is not the name of a commit", ErrNoRef, commit), o.Close())
	}
	o.tree = found.TreeHash
	return o, nil
}

// Close closes the files of the store.
func (o *Objects) Close() error { return o.store.Close() }
