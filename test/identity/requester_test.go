// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
)

const container = `{"name":"NAME","type":"container","command":["true"]}`

// create makes a task through REST and returns it as it is stored.
func (s *server) create(name string, header ...string) *v1alpha1.Task {
	s.t.Helper()
	code, body := s.send(http.MethodPost, "/api/v1/tasks", strings.Replace(container, "NAME", name, 1), header...)
	if code != http.StatusCreated {
		s.t.Fatalf("create %s: %d %s", name, code, body)
	}
	t := &v1alpha1.Task{}
	if err := json.Unmarshal([]byte(body), t); err != nil {
		s.t.Fatal(err)
	}
	return t
}

// Who asked for a task is recorded and sealed with the creation, and cannot be sent, changed or moved to another task.
func TestRequester(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := start(t, i.options(external.ModeOff))
	s.Namespaces(t, "team")
	for _, role := range []string{"platform-viewer", "platform-editor"} {
		s.bind("team", role, external.GroupContextToken)
		s.bind("team", role, external.GroupOIDC)
	}
	person := []string{"Authorization", "Bearer " + i.token("user-1", object{"preferred_username": "ann", "groups": "dev"})}
	txn := []string{"Txn-Token", i.transaction("user-2", object{"tctx": object{"repo": "r", "x": 1}})}
	s.await(func() bool {
		a, _ := s.send(http.MethodGet, "/api/v1/tasks", "", person...)
		b, _ := s.send(http.MethodGet, "/api/v1/tasks", "", txn...)
		return a == http.StatusOK && b == http.StatusOK
	})

	a := s.create("a", person...)
	if d := cmp.Diff(&v1alpha1.TaskRequester{Subject: "user-1", Issuer: i.URL, Username: "ann", Groups: []string{"dev"}}, a.Spec.RequestedBy); d != "" || a.Spec.Transaction != nil {
		t.Errorf("requester (-want +got):\n%s%+v", d, a.Spec.Transaction)
	}
	b := s.create("b", txn...)
	x := b.Spec.Transaction
	if x == nil || x.ID != "txn-1" || x.Subject != "user-2" || x.RequestingWorkload != "gateway" || x.ContextDigest == "" || string(x.Context.Raw) != `{"repo":"r","x":1}` ||
		b.Labels[v1alpha1.LabelTransactionID] != "txn-1" || b.Labels[v1alpha1.LabelAuthProfile] != "transaction-token" || b.Annotations[v1alpha1.AnnotationTransactionWorkload] != "gateway" {
		t.Errorf("transaction: %+v %v %v", x, b.Labels, b.Annotations)
	}
	seal, err := external.OpenSeal(filepath.Join(s.DataDir, "pki", "requester.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []*v1alpha1.Task{a, b} {
		if !seal.Verified(task) || task.Annotations[v1alpha1.AnnotationRequestedBySource] != "api" {
			t.Errorf("%s is not sealed: %v", task.Name, task.Annotations)
		}
	}
	moved := b.DeepCopy()
	moved.Spec.RequestedBy, moved.Annotations = a.Spec.RequestedBy, a.Annotations
	if seal.Verified(moved) {
		t.Error("a seal holds on another task")
	}

	for _, body := range []string{
		`{"name":"c","type":"container","command":["true"],"requestedBy":{"subject":"x"}}`,
		`{"metadata":{"name":"c"},"spec":{"type":"container","command":["true"],"requestedBy":{"subject":"x"}}}`,
		`{"metadata":{"name":"c"},"spec":{"type":"container","command":["true"],"Transaction":{"id":"x"}}}`,
		`{"metadata":{"name":"c","annotations":{"platform.ai/requested-by-stamp":"x"}},"spec":{"type":"container","command":["true"]}}`,
	} {
		if code, answer := s.send(http.MethodPost, "/api/v1/tasks", body, person...); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	tasks, ctx := s.Core(t).Tasks("team"), context.Background()
	own := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	own.Spec.RequestedBy = a.Spec.RequestedBy
	if _, err := tasks.Create(ctx, own, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a requester from an administrator: %v", err)
	}
	// An owner reference gives no authority, and neither do the labels of a scheduled run.
	own.Spec.RequestedBy = nil
	own.Labels = map[string]string{v1alpha1.LabelScheduledRun: "true", v1alpha1.LabelParentTask: "a"}
	own.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(a, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
	if child, err := tasks.Create(ctx, own, metav1.CreateOptions{}); err != nil || child.Spec.RequestedBy != nil || child.Annotations[v1alpha1.AnnotationRequestedByStamp] != "" {
		t.Errorf("a child by an owner reference: %+v, %v", child, err)
	}
	for _, patch := range []string{
		`{"spec":{"requestedBy":{"subject":"x"}}}`, `{"spec":{"requestedBy":null}}`, `{"metadata":{"annotations":{"platform.ai/requested-by-stamp":null}}}`,
		`{"metadata":{"annotations":{"platform.ai/requested-by-source":"me"}}}`, `{"metadata":{"labels":{"platform.ai/auth-profile":"x"}}}`,
	} {
		if _, err := tasks.Patch(ctx, "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", patch, err)
		}
	}
	if _, err := tasks.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"priority":7}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("another field: %v", err)
	}

	// With another key nothing is verified any more, and the controller is told.
	s.Stop(t)
	if err := os.WriteFile(filepath.Join(s.DataDir, "pki", "requester.key"), []byte(strings.Repeat("x", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	patch := []byte(`{"status":{"phase":"Pending"}}`)
	got, err := s.Core(t).Tasks("team").Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil || !meta.IsStatusConditionFalse(got.Status.Conditions, v1alpha1.ConditionRequesterVerified) {
		t.Errorf("after the key was replaced: %+v, %v", got.Status.Conditions, err)
	}
}
