// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
)

// ErrOrder means that an order may not be carried out. Nothing was sent.
var ErrOrder = errors.New("the pull request cannot be asked for")

// Limits of the texts, in characters. They are those of spec.workspace of a task.
const (
	MaxTitle = 256
	MaxBody  = 32768
)

// Order asks for the pull request of a publication.
type Order struct {
	// Key names the intent. All orders with one key get one pull request. It consists of letters, digits and . _ : / -, and must not
	// contain "--".
	Key string `json:"key"`
	// Generation is written into the body beside the key, for people who look for the run.
	Generation int64 `json:"generation,omitempty"`
	// Repository is what the repository must be, so that one of the same name that took its place is not mistaken for it; zero if that
	// does not matter.
	Repository v1alpha1.RepositoryIdentity `json:"repository,omitzero"`
	// Head is the branch with the changes, and HeadSHA the commit it must be at.
	Head    string `json:"head"`
	HeadSHA string `json:"headSHA"`
	// Base is the branch to merge into; empty for the repository's default branch.
	Base  string `json:"base,omitempty"`
	Title string `json:"title"`
	Body  string `json:"body,omitempty"`
	// Since is when the intent was recorded, which is before any pull request with its key was made; zero if that is not known. Some
	// hosts list all pull requests that were closed since then.
	Since time.Time `json:"since,omitzero"`
	// Number is the number of the pull request that an earlier order with this key got; 0 before. It is looked at, and no other is made
	// or searched for.
	Number int64 `json:"number,omitempty"`
}

var key = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$`)

// Validate returns what is wrong with the order. It says nothing of what a text contains.
func (o Order) Validate() error {
	switch {
	case !key.MatchString(o.Key) || strings.Contains(o.Key, "--") || strings.HasSuffix(o.Key, "-"):
		return fmt.Errorf("%w: key: must be 1–200 letters, digits and . _ : / -, begin with a letter or digit, and have no \"--\" and no \"-\" at its end", ErrOrder)
	case !isBranch(o.Head):
		return fmt.Errorf("%w: head: must be the name of a branch", ErrOrder)
	case o.Base != "" && !isBranch(o.Base):
		return fmt.Errorf("%w: base: must be the name of a branch, or empty", ErrOrder)
	case !v1alpha1.IsLowerHex(o.HeadSHA, 40) && !v1alpha1.IsLowerHex(o.HeadSHA, 64):
		return fmt.Errorf("%w: headSHA: must be the full name of a commit", ErrOrder)
	case o.Number < 0:
		return fmt.Errorf("%w: number: must not be negative", ErrOrder)
	case strings.TrimSpace(o.Title) == "":
		return fmt.Errorf("%w: title: must not be empty", ErrOrder)
	case strings.ContainsFunc(o.Title, unicode.IsControl):
		return fmt.Errorf("%w: title: must be one line without control characters", ErrOrder)
	}
	for _, text := range []struct {
		field, text string
		most        int
	}{{"title", o.Title, MaxTitle}, {"body", o.Body, MaxBody}} {
		if !utf8.ValidString(text.text) || utf8.RuneCountInString(text.text) > text.most {
			return fmt.Errorf("%w: %s: must be text of at most %d characters", ErrOrder, text.field, text.most)
		}
		if err := codehost.CheckText(text.text); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrOrder, text.field, err)
		}
	}
	return nil
}

// isBranch reports whether a name may be sent as a branch's. Whether there is such a branch is for the host to say.
func isBranch(name string) bool { return len(name) <= 255 && codehost.IsRef(name) }

// marker is the comment by which the pull requests of a key are recognised.
func (o Order) marker() string { return "<!-- platform: pull-request " + o.Key + " -->" }

// body is the text with the comments behind it. They are not visible on the page of the pull request.
func (o Order) body() string {
	return fmt.Sprintf("%s\n\n<!-- platform: generation %d -->\n%s\n", strings.TrimRight(o.Body, " \t\r\n"), o.Generation, o.marker())
}

// has reports whether a pull request was made for the order's key.
func (o Order) has(p codehost.PullRequest) bool { return strings.Contains(p.Body, o.marker()) }
