// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// On a disk that has room for deletes alone, an object is marked as deleted and loses its finalizers. Other updates are
// refused, also those of a deleted object, which could be repeated without end.
func TestDeparturesOnAFullDisk(t *testing.T) {
	const mib = 1 << 20
	disk, now := localtest.NewDisk(), clocktesting.NewFakePassiveClock(time.Now())
	disk.SetSpace(1024*mib, 1000*mib)
	h := open(t, on(disk, func(s *setup) { s.engine.Clock = now }))
	discard := func(m metav1.Object) { m.SetAnnotations(map[string]string{"discarded": "true"}) }
	p := pod("a")
	p.Finalizers = []string{"x/one", "x/two"}
	if err := h.Create(testContext(t), podKey("a"), p, nil, 0); err != nil {
		t.Fatal(err)
	}
	disk.SetSpace(1024*mib, 50*mib) // updates need 64 MiB
	now.SetTime(now.Now().Add(time.Second))
	for _, step := range []struct {
		name     string
		change   func(metav1.Object)
		accepted bool
	}{
		{"given up", discard, true},
		{"given up again", discard, true},
		{"no longer given up", func(m metav1.Object) { m.SetAnnotations(nil) }, false},
		{"a label", func(m metav1.Object) { m.SetLabels(map[string]string{"v": "1"}) }, false},
		{"one finalizer less", func(m metav1.Object) { m.SetFinalizers([]string{"x/two"}) }, false},
		{"deleted", func(m metav1.Object) { m.SetDeletionTimestamp(new(metav1.Now())) }, true},
		{"a label of a deleted object", func(m metav1.Object) { m.SetLabels(map[string]string{"v": "2"}) }, false},
		{"one finalizer less of a deleted object", func(m metav1.Object) { m.SetFinalizers([]string{"x/two"}) }, true},
		{"another finalizer", func(m metav1.Object) { m.SetFinalizers([]string{"x/three"}) }, false},
		{"no finalizer", func(m metav1.Object) { m.SetFinalizers(nil) }, true},
	} {
		ctx := testContext(t)
		if strings.HasPrefix(step.name, "given up") {
			ctx = Discarding(ctx)
		}
		err := h.GuaranteedUpdate(ctx, podKey("a"), pod(""), false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			m, ok := obj.(metav1.Object)
			if ok {
				step.change(m)
			}
			return obj, nil
		}), nil)
		if status, ok := err.(apierrors.APIStatus); step.accepted != (err == nil) || err != nil && (!ok || status.Status().Code != 507) {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}
