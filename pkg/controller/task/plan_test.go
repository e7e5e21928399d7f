// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/plantest"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// TestCasesOfPlans: the controller decides as the plan does, before anything is started.
func TestCasesOfPlans(t *testing.T) {
	var objects []client.Object
	for _, o := range plantest.Objects() {
		objects = append(objects, o.(client.Object)) //nolint:forcetypeassert // all are
	}
	for _, o := range plantest.Secrets() {
		objects = append(objects, o)
	}
	for _, o := range plantest.ConfigMaps() {
		objects = append(objects, o)
	}
	c := testClient(t, objects...)
	r := newResolver(Options{Executor: &runs{}, LocalRuns: true}, c, c)
	for _, tc := range plantest.Cases() {
		res, err := r.resolve(t.Context(), tc.Task)
		refused, ok := errors.AsType[*refusal.Error](err)
		if tc.Reason == "" && err != nil || tc.Reason != "" && (!ok || refused.Reason != tc.Reason || refused.Missing != tc.Missing) {
			t.Errorf("%s: %+v, want %q: %v", tc.Name, refused, tc.Reason, err)
		}
		if err == nil && res.mayPark != (tc.Task.Spec.Type == v1alpha1.TaskTypeAI) { // every ai task has tools
			t.Errorf("%s: may park: %v", tc.Name, res.mayPark)
		}
	}
}
