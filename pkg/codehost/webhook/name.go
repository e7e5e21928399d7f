// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// rule is what a name must be, as errors say it.
type rule struct {
	text string
	ok   func(string) bool
}

// Rules of names.
var (
	labelRule  = rule{fmt.Sprintf("must be 1 to %d bytes without control characters", MaxLabel), func(s string) bool { return isName(s, MaxLabel) }}
	loginRule  = rule{"must be the name of a user: 1 to 128 letters, digits, '.', '_' and '-', with or without [bot] at the end", wire.IsLogin}
	typeRule   = rule{fmt.Sprintf("must be 1 to %d bytes without spaces and control characters", MaxType), isWord}
	refRule    = rule{fmt.Sprintf("must be 1 to %d bytes and a name that git allows a branch, and must not begin with '-'", MaxRef), isRef}
	actionRule = rule{fmt.Sprintf("must be 1 to %d lower-case letters and '_'", MaxAction), isAction}
	commitRule = rule{"must be 40 or 64 lower-case hexadecimal digits", wire.IsCommit}

	repositoryRule = rule{"must be OWNER/NAME, each of 1 to 128 letters, digits, '.', '_' and '-', without '..' and not beginning with '-'", isRepository}
)

// check returns an error for a member that breaks the rule.
func (r rule) check(member, value string) error {
	if !r.ok(value) {
		return malformed(member, r.text)
	}
	return nil
}

// optional is check for a member that may be empty.
func (r rule) optional(member, value string) error {
	if value == "" {
		return nil
	}
	return r.check(member, value)
}

func isName(s string, most int) bool {
	return s != "" && len(s) <= most && !strings.ContainsFunc(s, unicode.IsControl)
}

func isWord(s string) bool { return isName(s, MaxType) && !strings.ContainsFunc(s, unicode.IsSpace) }

func isAction(s string) bool {
	return s != "" && len(s) <= MaxAction && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// repositories matches OWNER/NAME. Unlike codehost.ParseAddress it takes names that begin with '.', because many organisations have a
// repository .github: a webhook for all repositories of one must not fail there.
var repositories = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}/[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}$`)

func isRepository(s string) bool {
	return repositories.MatchString(s) && !strings.Contains(s, "..") && !strings.HasPrefix(s, "./") && !strings.HasSuffix(s, "/.")
}

func isRef(s string) bool { return len(s) <= MaxRef && codehost.IsRef(s) }
