// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
)

// CheckIssue returns an error for an issue whose parts do not have the form that they must have.
func CheckIssue(i *codehost.Issue, kind string) error {
	if i.Number <= 0 || i.State != codehost.Open && i.State != codehost.Closed || i.CommentCount < 0 {
		return Malformed(kind)
	}
	i.URL = URL(i.URL)
	texts(&i.Title, &i.Body, &i.Author)
	eachText(i.Labels)
	eachText(i.Assignees)
	return nil
}

// CheckComment returns an error for a comment whose parts do not have the form that they must have.
func CheckComment(c *codehost.IssueComment, kind string) error {
	if c.ID <= 0 {
		return Malformed(kind)
	}
	c.URL = URL(c.URL)
	texts(&c.Author, &c.Body)
	return nil
}

// Labeling returns how a label was set, or an error: ErrNotFound if by is no user, because it was deleted.
func Labeling(by string, at time.Time, kind string) (codehost.Labeling, error) {
	switch {
	case at.IsZero():
		return codehost.Labeling{}, Malformed(kind)
	case !IsLogin(by):
		return codehost.Labeling{}, codehost.ErrNotFound
	}
	return codehost.Labeling{Login: by, At: at}, nil
}
