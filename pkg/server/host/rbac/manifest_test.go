// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

var rewrite = flag.Bool("rewrite", false, "write the manifest of the platform's roles anew")

// served returns the resources of the group as a server has them, but without their dependencies.
func served() []resource.Resource {
	return core.Definitions()
}

// Every subresource must say which roles may use it.
func TestEachSubresourceIsGranted(t *testing.T) {
	granted := map[string]bool{}
	for _, g := range grantsOf(served()).subresources {
		granted[g.Resource] = true
	}
	for _, path := range []string{
		"tasks/events", "tasks/stream", "tasks/trace", "tasks/calls", "tasks/recording", "tasks/log", "tasks/result", "tasks/delta", "tasks/proxy", "tasks/artifacts", "tasks/cancel", "tasks/detach", "tasks/fork", "tasks/plan", "tasks/messages", "tasks/inbox", "tasks/reply", "tasks/codehost", "tasks/connectortool", "tasks/transactiontoken",
		"sessions/events", "sessions/stream", "sessions/transcript", "sessions/turn", "sessions/cancel", "skills/content", "approvals/decision", "chats/config", "usagemeasurements/recording",
		"memories/disable", "memories/enable", "memories/discard", "memories/restore", "memoryproposals/review", "memoryproposals/apply", "memoryproposals/archive",
		"repositorymonitors/runs", "repositorymonitors/commands", "codehostdeliveries/replay", "gatewayevents/replay", "gatewaydeliveries/retry", "gatewaydeliveries/abandon", "connections/authorize", "connections/complete",
	} {
		if !granted[path] {
			t.Errorf("no role may use %s", path)
		}
		delete(granted, path)
	}
	if len(granted) > 0 {
		t.Errorf("unknown subresources: %v", granted)
	}
}

// TestManifest checks that manifests/base/clusterroles.yaml has the same roles as this host, so
// that a cluster has them too.
func TestManifest(t *testing.T) {
	path := filepath.FromSlash("../../../../manifests/base/clusterroles.yaml")
	var out strings.Builder
	out.WriteString("# The platform's roles, as the standalone host makes them by itself.\n")
	n := 0
	for _, r := range defaultClusterRoles(served()) {
		if !strings.HasPrefix(r.Name, "platform-") {
			continue
		}
		n++
		role := rbacv1.ClusterRole{TypeMeta: r.TypeMeta, Rules: r.Rules, AggregationRule: r.AggregationRule}
		role.APIVersion, role.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRole"
		role.Name, role.Labels = r.Name, maps.Clone(r.Labels)
		delete(role.Labels, "kubernetes.io/bootstrapping") // marks what the host itself makes
		data, err := yaml.Marshal(role)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	if n != 8 {
		t.Errorf("%d roles of the platform, want 8", n)
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s is not current; go test ./pkg/server/host/rbac -run Manifest -rewrite (-have +want):\n%s", path, diff)
	}
}
