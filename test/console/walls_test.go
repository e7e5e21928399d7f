// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// script runs a script of walls/ that prints a line for each of its parts.
func script(t *testing.T, name string, parts int, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "walls/"+name)
	cmd.Env = append(os.Environ(), append(env, "HOME="+t.TempDir())...)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok: ") != parts {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// A hostile page of the same machine, in the browser of somebody who is signed in, cannot use the session.
func TestAttacks(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	s := start(t)
	base, secret := s.local("-n", "team")
	script(t, "attack.mjs", 6, "BASE="+s.RESTURL, "TOKEN="+s.token("eve", "platform-editor"), "LINK="+base+"/console/login#once="+secret)
}
