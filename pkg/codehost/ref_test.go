// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"os/exec"
	"testing"
)

// TestIsRef compares the rule with git's own.
func TestIsRef(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"main", "platform/issue-7", "a/b/c", "v1.2", "@a", "a@", "ä", "HEAD", "a-", "x.locks", "a.lock.b",
		"@", "a..b", "a.", ".a", "a/.b", "a//b", "/a", "a/", "a.lock", "a.lock/b", "a@{b", "a b", "a~", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "a\tb", "a\x7fb", "",
	} {
		git := exec.CommandContext(t.Context(), "git", "check-ref-format", "--allow-onelevel", name).Run() == nil
		if got := IsRef(name); got != git {
			t.Errorf("%q: %t, and git says %t", name, got, git)
		}
	}
	for _, name := range []string{"-a", "--upload-pack=x", "a\xff"} {
		if IsRef(name) {
			t.Errorf("%q is taken", name)
		}
	}
}
