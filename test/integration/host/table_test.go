// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// TestTables checks the columns of every kind, as kubectl get and kubectl get -o wide (marked *) show them.
func TestTables(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	if _, err := s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.In(t, standalone.Agents).Create(t.Context(), agent("a", "x"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	paths := []string{"apis/core.platform.ai/v1alpha1/namespaces/default/tasks/a"}
	served, err := s.Kubernetes(t).Discovery().ServerResourcesForGroupVersion("core.platform.ai/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range served.APIResources {
		switch {
		case !slices.Contains(r.Verbs, "list"):
		case r.Namespaced:
			paths = append(paths, "apis/core.platform.ai/v1alpha1/namespaces/default/"+r.Name)
		default:
			paths = append(paths, "apis/core.platform.ai/v1alpha1/"+r.Name)
		}
	}
	paths = append(paths,
		"api/v1/namespaces/default", "api/v1/secrets", "api/v1/configmaps", "api/v1/serviceaccounts", "apis/coordination.k8s.io/v1/leases",
		"apis/rbac.authorization.k8s.io/v1/clusterroles/platform-worker",
		"apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
		"apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
	)
	var b strings.Builder
	for _, path := range paths {
		code, body := host.Get(t, s.Config(), "/"+path, "application/json;as=Table;v=v1;g=meta.k8s.io")
		var table metav1.Table
		if err := json.Unmarshal([]byte(body), &table); err != nil || code != 200 {
			t.Fatalf("%s: %d %v", path, code, err)
		}
		fmt.Fprintln(&b, path)
		for i, c := range table.ColumnDefinitions {
			if c.Description == "" {
				t.Errorf("%s: column %s has no description", path, c.Name)
			}
			wide := map[bool]string{true: "*"}[c.Priority > 0]
			fmt.Fprintf(&b, "  %s%s %s", c.Name, wide, c.Type)
			for _, r := range table.Rows {
				if timed := strings.HasSuffix(c.Name, "Age") || strings.HasPrefix(c.Name, "Created"); !timed {
					fmt.Fprintf(&b, " | %v", r.Cells[i])
				}
			}
			fmt.Fprintln(&b)
		}
	}
	golden := filepath.Join("testdata", "tables.txt")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("tables (-want +got), -rewrite accepts:\n%s", d)
	}
}
