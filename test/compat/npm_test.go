// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The vendors' clients for JavaScript, and the AI SDK with both adapters, work unmodified. They are installed by
// make test, if npm is there; without them, the test is skipped, except where CI is set.
func TestNPMClients(t *testing.T) {
	if _, err := os.Stat("npm/node_modules"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the clients are not installed: make test installs them with npm")
		}
		t.Skip("the clients are not installed: make test installs them with npm")
	}
	s, token := onScript(t)
	cmd := exec.CommandContext(t.Context(), "node", "npm/clients.mjs")
	cmd.Env = append(os.Environ(), "BASE="+s.RESTURL, "TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok: ") != 6 {
		t.Errorf("%v\n%s", err, out)
	}
}
