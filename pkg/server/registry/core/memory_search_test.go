// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func putMemory(s *coretest.Server, name, spec string) {
	s.MustApply("memories", fmt.Sprintf("apiVersion: core.platform.ai/v1alpha1\nkind: Memory\nmetadata: {name: %s}\nspec: %s", name, spec))
}

func findMemories(t *testing.T, s *coretest.Server, spec v1alpha1.MemorySearchSpec) string {
	t.Helper()
	out, err := s.Create(s.User(), "memorysearches", &v1alpha1.MemorySearch{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range out.(*v1alpha1.MemorySearch).Status.Items {
		names = append(names, m.Memory.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// A search finds what matches all its fields, and follows every change of a memory, also after a restart.
func TestMemorySearch(t *testing.T) {
	dir := t.TempDir()
	s := coretest.StartIn(t, dir)
	putMemory(s, "a", `{content: deploy on Tuesdays, tags: [ops, prod], source: handbook, agentName: ann, taskName: t1, parentTask: p1}`)
	putMemory(s, "b", `{content: deploy with care, tags: [ops], sessionName: s1}`)
	putMemory(s, "c", `{content: the database is rebuilt nightly, source: handbook}`)
	check := func(spec v1alpha1.MemorySearchSpec, want string) {
		t.Helper()
		if got := findMemories(t, s, spec); got != want {
			t.Errorf("%+v: %q, want %q", spec, got, want)
		}
	}
	change := func(sub, name string) {
		t.Helper()
		if _, err := s.CreateNamed(s.User(), "memories/"+sub, name, &v1alpha1.MemoryChange{}); err != nil {
			t.Fatal(err)
		}
	}
	check(v1alpha1.MemorySearchSpec{}, "a b c")
	check(v1alpha1.MemorySearchSpec{Query: "Deploying? deploy!"}, "a b")
	check(v1alpha1.MemorySearchSpec{Query: "prod"}, "a")
	check(v1alpha1.MemorySearchSpec{Tags: []string{"ops"}}, "a b")
	check(v1alpha1.MemorySearchSpec{Tags: []string{"ops", "prod"}}, "a")
	check(v1alpha1.MemorySearchSpec{Source: "handbook", Query: "nightly"}, "c")
	check(v1alpha1.MemorySearchSpec{AgentName: "ann"}, "a")
	check(v1alpha1.MemorySearchSpec{SessionName: "s1"}, "b")
	check(v1alpha1.MemorySearchSpec{TaskName: "t1", ParentTask: "p1"}, "a")
	check(v1alpha1.MemorySearchSpec{IDs: []string{"a", "c", "none"}}, "a c")
	check(v1alpha1.MemorySearchSpec{IDs: []string{"a", "c"}, Query: "database"}, "c")
	check(v1alpha1.MemorySearchSpec{Query: "deploy", MaxCharacters: 20}, "b")
	change("disable", "a")
	change("discard", "b")
	check(v1alpha1.MemorySearchSpec{Query: "deploy"}, "")
	check(v1alpha1.MemorySearchSpec{Query: "deploy", IncludeDisabled: true}, "a")
	check(v1alpha1.MemorySearchSpec{Query: "deploy", IncludeDisabled: true, IncludeDeleted: true}, "a b")
	s.Close()
	s = coretest.StartIn(t, dir)
	change("enable", "a")
	change("restore", "b")
	check(v1alpha1.MemorySearchSpec{Query: "deploy"}, "a b")
	_, err := s.Update(s.User(), "memories", "a", func(o runtime.Object) {
		spec := &o.(*v1alpha1.Memory).Spec
		spec.Content, spec.AgentName = "roll out on Mondays", "bob"
	})
	if err != nil {
		t.Fatal(err)
	}
	check(v1alpha1.MemorySearchSpec{Query: "deploy"}, "b")
	check(v1alpha1.MemorySearchSpec{Query: "mondays", AgentName: "bob"}, "a")
	s.Remove("memories", "a")
	check(v1alpha1.MemorySearchSpec{Query: "mondays"}, "")
	if _, err := s.Create(s.User(), "memorysearches", &v1alpha1.MemorySearch{Spec: v1alpha1.MemorySearchSpec{Scope: "Agent"}}); !apierrors.IsBadRequest(err) {
		t.Errorf("a scope of a person: %v", err)
	}
	if _, err := s.Create(s.User(), "memorysearches", &v1alpha1.MemorySearch{Spec: v1alpha1.MemorySearchSpec{Limit: -1}}); !apierrors.IsBadRequest(err) {
		t.Errorf("limit -1: %v", err)
	}
}
