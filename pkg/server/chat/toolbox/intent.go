// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"regexp"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// What the user says when they want something to be created, changed or deleted, or something that this version lacks.
var (
	wantsCreate = regexp.MustCompile(`(?i)\b(creat|add|mak(e|ing)\b|new\b|set\s?up|defin|build|regist|generat)`)
	wantsUpdate = regexp.MustCompile(`(?i)\b(updat|chang|edit|modif|adjust|alter|replac|renam|set\b|switch|improv|fix|rewrit|extend|give\b)`)
	wantsDelete = regexp.MustCompile(`(?i)\b(delet|remov|drop|destroy|eras|discard|clean|clear|forget|get rid|purg)`)

	wantsPullRequests = regexp.MustCompile(`(?i)\b(pull.?requests?|merge.?requests?|PRs?|monitor)\b`)
	// Tools for files are asked for by their names alone, because most who speak of files do not want this server's.
	wantsFiles = regexp.MustCompile(`\bfile_(read|write)\b`)
)

// wanted reports whether a user speaks of what a tool is for.
func wanted(of builtin.Intent, words string) bool {
	wants := map[builtin.Intent]*regexp.Regexp{
		builtin.Create: wantsCreate, builtin.Change: wantsUpdate, builtin.Delete: wantsDelete, builtin.PullRequests: wantsPullRequests, builtin.Files: wantsFiles,
	}[of]
	return of == builtin.Anything || wants != nil && wants.MatchString(words)
}

// agrees is a message with which a user only confirms what they asked for before.
var agrees = regexp.MustCompile(`(?i)^\W*(yes|yep|yeah|ok(ay)?|sure|please|do (it|so|that)|go (on|ahead)|confirm(ed)?|correct|right|continue|proceed)\b.{0,40}$`)

// maxIntent is how much of a message decides which tools are offered, in bytes. Messages may be as long as requests.
const maxIntent = 64 << 10

// Words returns the words that decide which tools are offered: the user's message, and the one before it if the message
// only confirms that.
func Words(message string, history []v1alpha1.SessionMessage) string {
	message = message[:min(len(message), maxIntent)]
	if !agrees.MatchString(message) {
		return message
	}
	for _, m := range slices.Backward(history) {
		if m.Role == v1alpha1.RoleUser {
			return message + "\n" + m.Content[:min(len(m.Content), maxIntent)]
		}
	}
	return message
}
