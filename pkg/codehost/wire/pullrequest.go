// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
)

const (
	// maxName bounds the names of branches, and maxURL addresses, in bytes.
	maxName, maxURL = 1024, 2048
	// MaxPages bounds how many pages of a list are read.
	MaxPages = 400
	// PageSize is how many pull requests a page has at most.
	PageSize = 50
)

// Check returns an error for a pull request whose parts do not have the form that they must have. An address that a browser may not open
// is left out.
func Check(p *codehost.PullRequest, kind string) error {
	if p.Number <= 0 || p.State != codehost.Open && p.State != codehost.Closed && p.State != codehost.Merged || !isCommit(p.HeadSHA) || !isName(p.Base) || !isName(p.Head) {
		return Malformed(kind)
	}
	if u, err := url.Parse(p.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(p.URL) > maxURL {
		p.URL = ""
	}
	return nil
}

// Commit returns the name of a commit that a host gave, or an error.
func Commit(id, kind string) (string, error) {
	if !isCommit(id) {
		return "", Malformed(kind)
	}
	return id, nil
}

func isCommit(id string) bool { return v1alpha1.IsLowerHex(id, 40) || v1alpha1.IsLowerHex(id, 64) }

func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// TooMany is the error for a list that has no end.
func TooMany() error {
	return fmt.Errorf("%w: it lists more than %d pages of pull requests", codehost.ErrUnavailable, MaxPages)
}

// Malformed is the error for an answer that lacks what a host of a kind has in it.
func Malformed(kind string) error {
	return fmt.Errorf("%w: it does not answer as %s does", codehost.ErrUnavailable, kind)
}
