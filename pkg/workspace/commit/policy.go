// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
)

// ErrPolicy is in the chain of the error for changes that the task does not allow.
var ErrPolicy = errors.New("the changes are not what the task allows")

// maxNamed is how many paths an error names.
const maxNamed = 5

// check returns an error for changes that a task does not allow.
func check(p workspace.Policy, d *delta.Delta) error {
	if n := len(d.Changes); p.MaxChangedFiles > 0 && n > p.MaxChangedFiles {
		return fmt.Errorf("%w: %d files changed, and spec.workspace.maxChangedFiles is %d", ErrPolicy, n, p.MaxChangedFiles)
	}
	for _, rule := range []struct {
		on     bool
		breaks func(delta.Change) bool
		says   string
	}{
		{len(p.AllowedPaths) > 0, func(c delta.Change) bool { return !below(c.Path, p.AllowedPaths) }, "outside of spec.workspace.allowedPaths"},
		{p.DenyControlPaths, func(c delta.Change) bool { return controls(c.Path) }, "control the repository or its automation, which spec.workspace.denyRepositoryControlPaths refuses"},
		{p.RejectBinary, func(c delta.Change) bool { return delta.IsBinary(d.Objects[c.Is.ID].Data) }, "binary, which spec.workspace.rejectBinaryFiles refuses"},
		{p.RejectSecrets, func(c delta.Change) bool { return bringsSecret(d, c) }, "look like they contain a secret, which spec.workspace.rejectSecretLikeContent refuses"},
	} {
		if !rule.on {
			continue
		}
		var names []string
		for _, c := range d.Changes {
			if rule.breaks(c) {
				names = append(names, fmt.Sprintf("%q", c.Path))
			}
		}
		if n := len(names); n > maxNamed {
			names = append(names[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
		}
		if len(names) > 0 {
			return fmt.Errorf("%w: %s: %s", ErrPolicy, rule.says, strings.Join(names, ", "))
		}
	}
	return nil
}

// below reports whether a path is one of the paths or lies below one.
func below(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		p = path.Clean(p)
		return p == "." || name == p || strings.HasPrefix(name, p+"/")
	})
}

// controls reports whether a file controls the repository, what code hosts and their runners do with it, or what an agent does that
// works on it. Case does not count, because on some systems it does not distinguish files.
func controls(name string) bool {
	name = strings.ToLower(name)
	if below(name, []string{
		".github", ".gitlab", ".gitea", ".forgejo", ".circleci", ".buildkite", ".woodpecker", ".tekton", ".githooks", ".husky", ".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml",
		".drone.yml", ".woodpecker.yml", "cloudbuild.yaml", "codeowners", "docs/codeowners", ".pre-commit-config.yaml", "lefthook.yml", "renovate.json", "renovate.json5", ".renovaterc", "dependabot.yml",
	}) {
		return true
	}
	for part := range strings.SplitSeq(name, "/") { // these act in any folder
		switch part {
		case ".gitattributes", ".gitmodules", ".gitconfig", ".lfsconfig", ".mailmap", ".mcp.json", ".claude", ".codex", ".cursor", ".opencode", "opencode.json", "opencode.jsonc", ".envrc":
			return true
		}
	}
	return false
}

// bringsSecret reports whether the lines of a file that were not in it before look like they contain a secret.
func bringsSecret(d *delta.Delta, c delta.Change) bool {
	if c.Is == (delta.Side{}) || c.Is.ID == c.Was.ID {
		return false
	}
	had := map[string]bool{}
	if o := d.Objects[c.Was.ID]; o.Kind == gitobject.Blob {
		for line := range strings.Lines(string(o.Data)) {
			had[line] = true
		}
	}
	var added strings.Builder
	for line := range strings.Lines(string(d.Objects[c.Is.ID].Data)) {
		if !had[line] {
			added.WriteString(line)
		}
	}
	_, found := redact.Output(added.String())
	return found
}
