// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"regexp"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
)

// maxName bounds the names of branches, in bytes.
const maxName = 1024

// repository matches OWNER/NAME. A name may begin with a dot, but is not made of dots.
var repository = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}/\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// Check returns an error for a pull request whose parts do not have the form that they must have. An address that a browser may not open
// is left out, and so is the name of a fork that cannot be one: its owner chose it, and it must not hide all others in a list.
func Check(p *codehost.PullRequest, kind string) error {
	if p.Number <= 0 || p.State != codehost.Open && p.State != codehost.Closed && p.State != codehost.Merged || !IsCommit(p.HeadSHA) || !isName(p.Base) || !isName(p.Head) {
		return Malformed(kind)
	}
	if p.State != codehost.Merged {
		p.MergeSHA, p.Merged = "", time.Time{} // GitHub names the commit of a trial
	}
	if p.State == codehost.Open {
		p.Closed = time.Time{}
	} else {
		p.Mergeable = ""
	}
	if !repository.MatchString(p.HeadRepository) {
		p.HeadRepository = ""
	}
	if p.MergeSHA != "" && !IsCommit(p.MergeSHA) {
		return Malformed(kind)
	}
	p.URL = URL(p.URL)
	texts(&p.Title, &p.Body, &p.Author)
	eachText(p.Labels)
	return nil
}

// Commit returns the name of a commit that a host gave, or an error.
func Commit(id, kind string) (string, error) {
	if !IsCommit(id) {
		return "", Malformed(kind)
	}
	return id, nil
}

// IsCommit reports whether a text has the form of a commit's name.
func IsCommit(id string) bool { return v1alpha1.IsLowerHex(id, 40) || v1alpha1.IsLowerHex(id, 64) }

func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}
