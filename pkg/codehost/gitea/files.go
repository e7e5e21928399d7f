// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"errors"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// errEnough ends a list before its end.
var errEnough = errors.New("enough was read")

// fileStates are Gitea's words for what happened to a file, where they differ. It calls a file unchanged of which no line changed, for
// example one that is not text.
var fileStates = map[string]string{"deleted": "removed", "changed": "modified", "unchanged": "changed"}

// Files implements codehost.Reviews.
func (h *Host) Files(ctx context.Context, number int64) (files []codehost.File, more bool, err error) {
	c, err := h.Change(ctx, number)
	return c.Files, c.MoreFiles, err
}

// Change implements codehost.Reviews. Gitea lists the files without their patches, which are taken from the diff.
func (h *Host) Change(ctx context.Context, number int64) (c codehost.Change, err error) {
	read := pages(ctx, h, func(c *sdk.Client, page sdk.ListOptions) ([]*sdk.ChangedFile, *sdk.Response, error) {
		return c.ListPullRequestFiles(h.at.Owner, h.at.Name, number, sdk.ListPullRequestFilesOptions{ListOptions: page})
	})
	err = each(read, func(f *sdk.ChangedFile) string { return f.Filename }, func(f *sdk.ChangedFile) error {
		if len(c.Files) == codehost.MaxFiles {
			c.MoreFiles = true
			return errEnough
		}
		found := codehost.File{Name: f.Filename, Status: f.Status, Additions: f.Additions, Deletions: f.Deletions}
		if status, ok := fileStates[f.Status]; ok {
			found.Status = status
		}
		c.Files = append(c.Files, found)
		return wire.CheckFile(&c.Files[len(c.Files)-1], kind)
	})
	if err != nil && !c.MoreFiles {
		return codehost.Change{}, err
	}
	if c.Diff, c.MoreDiff, err = h.diff(ctx, number); err != nil {
		return codehost.Change{}, err
	}
	patches := wire.Patches(c.Diff, c.MoreDiff)
	for i := range c.Files {
		c.Files[i].Patch = patches[c.Files[i].Name]
	}
	return c, nil
}

func (h *Host) diff(ctx context.Context, number int64) (diff string, more bool, err error) {
	answer, err := h.get(ctx, nil, "pulls", strconv.FormatInt(number, 10)+".diff")
	if err != nil {
		return "", false, err
	}
	defer func() { _ = answer.Body.Close() }()
	diff, more, err = wire.Diff(answer.Body)
	return diff, more, wire.Error(ctx, err, kind)
}
