// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// TestSandboxReady checks that the metric says what the host enforces.
func TestSandboxReady(t *testing.T) {
	for name, tc := range map[string]struct {
		kernel sandbox.Kernel
		off    bool
		want   string
	}{
		"complete":         {sandbox.Kernel{Landlock: 7, Seccomp: true, UserNamespaces: true}, false, `{landlock="7",off="false",processes="cgroup",seccomp="true",user_namespaces="true"} 1`},
		"without Landlock": {sandbox.Kernel{Seccomp: true}, false, `{landlock="0",off="false",processes="cgroup",seccomp="true",user_namespaces="false"} 0`},
		"without seccomp":  {sandbox.Kernel{Landlock: 3}, false, `{landlock="3",off="false",processes="cgroup",seccomp="false",user_namespaces="false"} 0`},
		"off":              {sandbox.Kernel{Landlock: 7, Seccomp: true}, true, `{landlock="7",off="true",processes="cgroup",seccomp="true",user_namespaces="false"} 0`},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			o := &Options{SandboxOff: tc.off}
			o.Metrics = registry
			for range 2 { // a server may start again in the same process
				if err := o.reportSandbox(tc.kernel, "cgroup"); err != nil {
					t.Fatal(err)
				}
			}
			want := "# HELP platform_sandbox_ready Whether programs of runs are confined to a sandbox.\n# TYPE platform_sandbox_ready gauge\nplatform_sandbox_ready" + tc.want + "\n"
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				t.Error(err)
			}
		})
	}
}
