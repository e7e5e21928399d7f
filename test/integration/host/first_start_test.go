// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"regexp"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// errorLine matches an error in a log of klog.
var errorLine = regexp.MustCompile(`(?m)^[EF][0-9]{4} .*$`)

// TestFirstStartLogsNoError: a server that starts on an empty folder, and runs its first task, logs no error.
func TestFirstStartLogsNoError(t *testing.T) {
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands")
	s.MustShell(t, `kubectl create -f - <<'END'
{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"first"},"spec":{"type":"container","command":["true"]}}
END
kubectl wait task/first --for=condition=Complete --timeout=2m`)
	if found := errorLine.FindAllString(s.Output(), -1); len(found) > 0 {
		t.Errorf("errors in the log: %q", found)
	}
}
