// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/platform-ai/platform/pkg/codehost"

// CheckReview returns an error for a review whose parts do not have the form that they must have.
func CheckReview(r *codehost.Review, kind string) error {
	switch r.State {
	case codehost.Approved, codehost.ChangesRequested, codehost.Commented, codehost.Dismissed:
	default:
		return Malformed(kind)
	}
	if r.ID <= 0 || r.SHA != "" && !IsCommit(r.SHA) {
		return Malformed(kind)
	}
	r.URL = URL(r.URL)
	texts(&r.Author, &r.Body)
	return nil
}

// CheckFile returns an error for a file whose parts do not have the form that they must have. Words for the status that are not those of
// codehost are replaced.
func CheckFile(f *codehost.File, kind string) error {
	if f.Name == "" || f.Additions < 0 || f.Deletions < 0 {
		return Malformed(kind)
	}
	switch f.Status {
	case "added", "removed", "modified", "renamed":
	case "copied":
		f.Status = "added" // the original stays as it is
	default:
		f.Status = "changed"
	}
	texts(&f.Name, &f.Patch)
	return nil
}

// CheckRun returns an error for a check whose parts do not have the form that they must have.
func CheckRun(c *codehost.Check, kind string) error {
	if c.Name == "" {
		return Malformed(kind)
	}
	c.URL = URL(c.URL)
	texts(&c.Name, &c.Said)
	return nil
}
