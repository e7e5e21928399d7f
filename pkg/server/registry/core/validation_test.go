// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestImmutableFields(t *testing.T) {
	s := start(t)
	s.MustApply("tasks", "apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata: {name: a}\nspec: {type: container}\n")
	s.MustApply("sessions", "apiVersion: core.platform.ai/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {}\n")
	s.MustApply("agents", "apiVersion: core.platform.ai/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {runtime: {type: codex, contractVersion: platform.harness.v1}}\n")
	for _, tc := range []struct {
		resource string
		change   func(runtime.Object)
		want     string
	}{
		{"tasks", func(o runtime.Object) { s := &o.(*v1alpha1.Task).Spec; s.Type, s.Prompt = v1alpha1.TaskTypeAI, "p" }, "spec.type: immutable"},
		{"sessions", func(o runtime.Object) { o.(*v1alpha1.Session).Spec.SessionType = v1alpha1.SessionTypeChat }, "spec.sessionType: immutable"},
		{"agents", func(o runtime.Object) { o.(*v1alpha1.Agent).Spec.Runtime.ContractVersion = v1alpha1.HarnessV2 }, "spec.runtime.contractVersion: immutable"},
	} {
		_, err := s.Update(s.User(), tc.resource, "a", tc.change)
		coretest.CheckCause(t, err, tc.want)
	}
}

func TestIdentityMarksAreTheServersOwn(t *testing.T) {
	s := start(t)
	_, err := s.Apply("tasks", "apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata: {name: a, labels: {platform.ai/transaction-id: x}}\nspec: {type: container}\n")
	coretest.CheckCause(t, err, "metadata.labels[platform.ai/transaction-id]: set by the server")
}
