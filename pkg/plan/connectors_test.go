// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
)

// A task gets the tools of providers that it names, bound to the account of who asked for it.
func TestToolsOfConnectors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// what there is besides the usual objects
		providers   []*v1alpha1.ConnectorProvider
		connections []*v1alpha1.Connection
		requester   *v1alpha1.TaskRequester
		tools       []string
		// got are the tools, bound the names of the connections of the bindings, gated the tools that need an approval
		got, bound, gated []string
		note, refused     string
	}{
		{
			name: "connected", providers: []*v1alpha1.ConnectorProvider{connectorProvider("drive", "list_files", "write_file")}, requester: ann,
			connections: []*v1alpha1.Connection{connectionOf(ann, "drive", v1alpha1.ConnectionReadWrite)}, tools: []string{"list_files", "write_file"},
			got: []string{"list_files", "write_file"}, bound: []string{"drive-007a3cb07b75", "drive-007a3cb07b75"}, gated: []string{"write_file"},
		},
		{
			name: "for reading", providers: []*v1alpha1.ConnectorProvider{connectorProvider("drive", "list_files", "write_file")}, requester: ann,
			connections: []*v1alpha1.Connection{connectionOf(ann, "drive", v1alpha1.ConnectionReadOnly)}, tools: []string{"list_files", "write_file"},
			got: []string{"list_files"}, bound: []string{"drive-007a3cb07b75"}, note: "reading only",
		},
		{
			name: "not connected", providers: []*v1alpha1.ConnectorProvider{connectorProvider("drive", "list_files", "write_file")}, requester: ann,
			tools: []string{"list_files", "write_file"}, got: []string{"list_files", "write_file"}, bound: []string{"", ""}, gated: []string{"write_file"},
		},
		{
			name: "nobody asked", providers: []*v1alpha1.ConnectorProvider{connectorProvider("drive", "list_files")}, tools: []string{"list_files"}, note: "nobody is known",
		},
		{
			name: "two providers", providers: []*v1alpha1.ConnectorProvider{connectorProvider("drive", "list_files"), connectorProvider("box", "list_files")}, requester: ann,
			tools: []string{"list_files"}, refused: "several ConnectorProviders declare it, and it is not clear whose account is meant: box, drive",
		},
		{
			name: "another person's", providers: []*v1alpha1.ConnectorProvider{connectorProvider("drive", "list_files")}, requester: ann, tools: []string{"list_files"},
			connections: []*v1alpha1.Connection{func() *v1alpha1.Connection {
				c := connectionOf(ann, "drive", v1alpha1.ConnectionReadOnly)
				c.Spec.Subject.Subject = "ben"
				return c
			}()}, note: "another person's",
		},
		{
			name: "not accepted", providers: []*v1alpha1.ConnectorProvider{func() *v1alpha1.ConnectorProvider {
				p := connectorProvider("drive", "list_files")
				p.Status.Conditions[0].Status = metav1.ConditionFalse
				return p
			}()}, requester: ann, tools: []string{"list_files"}, note: `no tool "list_files"`,
		},
		{
			name: "a Tool has the name", providers: []*v1alpha1.ConnectorProvider{connectorProvider("drive", "open")}, requester: ann, tools: []string{"open"}, got: []string{"open"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newShelf()
			for _, p := range tc.providers {
				s["connectorprovider "+p.Namespace+"/"+p.Name] = p
			}
			for _, c := range tc.connections {
				s["connection "+c.Namespace+"/"+c.Name] = c
			}
			task := plantest.AI(plantest.With(func(*v1alpha1.TaskAI) {}))
			task.Spec.RequestedBy, task.Spec.AI.Tools = tc.requester, tc.tools
			p, err := plan.Make(t.Context(), s, plan.Place{}, task)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("%v, want %s", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, bound := named(p, tc.tools), []string(nil)
			for _, b := range p.Bindings {
				bound = append(bound, b.Connection)
			}
			if d := cmp.Diff([][]string{tc.got, tc.bound, tc.gated}, [][]string{got, bound, p.Gated}); d != "" {
				t.Errorf("tools, connections, gated (-want +got):\n%s", d)
			}
			if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, tc.note) {
				t.Errorf("notes %q, want %q", notes, tc.note)
			}
			follows(t, s, task, p, tc.tools)
		})
	}
}

// named returns the tools of a plan that are among those.
func named(p *plan.Plan, names []string) (got []string) {
	for _, tool := range p.Tools {
		if slices.Contains(names, tool.Name) {
			got = append(got, tool.Name)
		}
	}
	return got
}

// follows checks that a run gets what the controller has bound, and is refused when that was changed.
func follows(t *testing.T, s shelf, task *v1alpha1.Task, p *plan.Plan, names []string) {
	t.Helper()
	started := task.DeepCopy()
	started.Status.ConnectionBindings = p.Bindings
	own, err := plan.Make(t.Context(), s, plan.Place{Started: true}, started)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]string{named(p, names), p.Gated}, [][]string{named(own, names), own.Gated}); d != "" || own.Bindings != nil {
		t.Errorf("the run (-controller +run):\n%s", d)
	}
	if len(p.Bindings) == 0 {
		return
	}
	started.Status.ConnectionBindings = slices.Clone(p.Bindings)
	started.Status.ConnectionBindings[0].ToolDigest = "0"
	if _, err := plan.Make(t.Context(), s, plan.Place{Started: true}, started); err == nil || !strings.Contains(err.Error(), "has changed since the run was started") {
		t.Errorf("a changed tool: %v", err)
	}
}
