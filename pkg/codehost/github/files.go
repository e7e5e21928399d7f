// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// errEnough ends a list before its end.
var errEnough = errors.New("enough was read")

// Files implements codehost.Reviews.
func (h *Host) Files(ctx context.Context, number int64) (files []codehost.File, more bool, err error) {
	patches := 0
	err = h.eachFile(ctx, number, func(f codehost.File, _ string) error {
		if len(files) == codehost.MaxFiles {
			more = true
			return errEnough
		}
		if patches += len(f.Patch); patches > codehost.MaxDiff {
			f.Patch = "" // GitHub leaves out much less, but another server may not
		}
		files = append(files, f)
		return nil
	})
	if err != nil && !more {
		return nil, false, err
	}
	if !more && len(files) == codehost.MaxFiles { // as many as GitHub lists
		p, _, err := h.client.PullRequests.Get(ctx, h.at.Owner, h.at.Name, int(number))
		if err != nil {
			return nil, false, wire.Error(ctx, err, kind)
		}
		more = p.GetChangedFiles() > codehost.MaxFiles
	}
	return files, more, nil
}

// eachFile calls do for the files that a pull request changes, with their names before the change.
func (h *Host) eachFile(ctx context.Context, number int64, do func(f codehost.File, previous string) error) error {
	return each(ctx, wire.LargePage, func(page sdk.ListOptions) ([]*sdk.CommitFile, *sdk.Response, error) {
		return h.client.PullRequests.ListFiles(ctx, h.at.Owner, h.at.Name, int(number), &page)
	}, func(f *sdk.CommitFile) error {
		found := codehost.File{
			Name: f.GetFilename(), Status: f.GetStatus(), Additions: f.GetAdditions(), Deletions: f.GetDeletions(), Patch: f.GetPatch(),
		}
		if err := wire.CheckFile(&found, kind); err != nil {
			return err
		}
		return do(found, wire.Text(f.GetPreviousFilename()))
	})
}

// Change implements codehost.Reviews. GitHub makes no diff of many files or lines (status 406), but lists the files with what they have of
// it.
func (h *Host) Change(ctx context.Context, number int64) (c codehost.Change, err error) {
	c.Diff, c.MoreDiff, err = h.diff(ctx, number)
	if wire.Status(err) == http.StatusNotAcceptable {
		c.Diff, c.MoreDiff, err = h.diffOfFiles(ctx, number)
	}
	if err != nil {
		return codehost.Change{}, err
	}
	c.Files, c.MoreFiles, err = h.Files(ctx, number)
	return c, err
}

func (h *Host) diff(ctx context.Context, number int64) (diff string, more bool, err error) {
	r, err := h.client.NewRequest(ctx, http.MethodGet, fmt.Sprintf("repos/%s/%s/pulls/%d", h.at.Owner, h.at.Name, number), nil)
	if err != nil {
		return "", false, wire.Error(ctx, err, kind)
	}
	r.Header.Set("Accept", "application/vnd.github.v3.diff")
	answer, err := h.client.BareDo(r)
	if err != nil {
		return "", false, wire.Error(ctx, err, kind)
	}
	defer func() { _ = answer.Body.Close() }()
	diff, more, err = wire.Diff(answer.Body)
	return diff, more, wire.Error(ctx, err, kind)
}

// diffOfFiles makes a diff of the list of files. Something is always missing in it.
func (h *Host) diffOfFiles(ctx context.Context, number int64) (diff string, more bool, err error) {
	var b strings.Builder
	err = h.eachFile(ctx, number, func(f codehost.File, previous string) error {
		if b.WriteString(wire.Part(f, previous)); b.Len() > codehost.MaxDiff {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", false, err
	}
	diff, _ = wire.Cut(b.String())
	return diff, true, nil
}
