// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReconcile(t *testing.T) {
	boom := errors.New("boom")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	moved := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", boom)
	set := func(outcome error) func(context.Context, *corev1.Pod) error {
		return func(_ context.Context, p *corev1.Pod) error {
			p.Status.Message += "x"
			return outcome
		}
	}
	for _, tc := range []struct {
		name     string
		steps    []func(context.Context, *corev1.Pod) error
		patchErr error
		want     reconcile.Result
		wantErr  string
		status   string // Message and Reason
	}{
		{name: "all steps run, one patch", steps: fs(set(nil), set(nil)), status: "xx/"},
		{name: "nothing changed, no patch", steps: fs(func(context.Context, *corev1.Pod) error { return nil }), patchErr: boom, status: "/"},
		{name: "done ends the list", steps: fs(set(ErrDone), set(nil)), status: "x/"},
		{name: "wait ends the list", steps: fs(set(Wait{After: time.Minute}), set(nil)), want: reconcile.Result{RequeueAfter: time.Minute}, status: "x/"},
		{name: "wrapped wait", steps: fs(set(fmt.Errorf("y: %w", Wait{After: time.Minute}))), want: reconcile.Result{RequeueAfter: time.Minute}, status: "x/"},
		{name: "an error names its step and keeps the status", steps: fs(set(nil), set(boom)), wantErr: "s1: boom", status: "xx/"},
		{name: "patch error", steps: fs(set(nil)), patchErr: boom, wantErr: "status: boom", status: "/"},
		{name: "patch error after an error", steps: fs(set(boom)), patchErr: errors.New("bang"), wantErr: "s0: boom\nstatus: bang", status: "/"},
		{name: "conflict is looked at again", steps: fs(set(nil)), patchErr: moved, want: reconcile.Result{RequeueAfter: conflictDelay}, status: "/"},
		{name: "conflict of a step is looked at again", steps: fs(set(moved)), want: reconcile.Result{RequeueAfter: conflictDelay}, status: "x/"},
		{name: "deleted meanwhile", steps: fs(set(nil)), patchErr: gone, status: "/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patches := 0
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
			c := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(pod).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					patches++
					if tc.patchErr != nil {
						return tc.patchErr
					}
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			}).Build()
			r := &Reconciler[*corev1.Pod]{
				Client: c, New: func() *corev1.Pod { return &corev1.Pod{} },
			}
			for i, do := range tc.steps {
				r.Steps = append(r.Steps, Step[*corev1.Pod]{Name: fmt.Sprintf("s%d", i), Do: do})
			}
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
			if got != tc.want {
				t.Errorf("result = %+v, want %+v", got, tc.want)
			}
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.HasSuffix(err.Error(), tc.wantErr)) {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
			if patches > 1 {
				t.Errorf("%d patches", patches)
			}
			var now corev1.Pod
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), &now); err != nil {
				t.Fatal(err)
			}
			if s := now.Status.Message + "/" + now.Status.Reason; s != tc.status {
				t.Errorf("status = %q, want %q", s, tc.status)
			}
		})
	}
}

func fs(f ...func(context.Context, *corev1.Pod) error) []func(context.Context, *corev1.Pod) error {
	return f
}

func TestObjectIsGone(t *testing.T) {
	r := &Reconciler[*corev1.Pod]{
		Client: fake.NewClientBuilder().Build(), New: func() *corev1.Pod { return &corev1.Pod{} },
		Steps: []Step[*corev1.Pod]{{Name: "never", Do: func(context.Context, *corev1.Pod) error { t.Error("step ran"); return nil }}},
	}
	got, err := r.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || got != (reconcile.Result{}) {
		t.Errorf("got %+v %v", got, err)
	}
}

// While the cache shows a version that this process has replaced, no step runs; the next version is reconciled.
func TestPastVersions(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u"}}
	var stale *corev1.Pod
	c := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(pod).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if stale != nil {
				stale.DeepCopyInto(o.(*corev1.Pod))
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	runs := 0
	r := &Reconciler[*corev1.Pod]{
		Client: c, New: func() *corev1.Pod { return &corev1.Pod{} },
		Steps: []Step[*corev1.Pod]{{Name: "count", Do: func(_ context.Context, p *corev1.Pod) error {
			runs++
			p.Status.Message = "written once"
			return nil
		}}},
	}
	first := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), first); err != nil {
		t.Fatal(err)
	}
	reconcileTo := func(want int, when string) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil || runs != want {
			t.Errorf("%s: %d runs of the steps, want %d; %v", when, runs, want, err)
		}
	}
	reconcileTo(1, "new")
	stale = first
	reconcileTo(1, "the cache lags")
	stale = nil
	reconcileTo(2, "the cache has followed")
	reconcileTo(3, "nothing was written")
}
