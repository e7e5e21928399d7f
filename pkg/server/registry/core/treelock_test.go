// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// TestCancellationsWaitForNoWebhook: while admission judges a child, which may take long, its tree is cancelled, and the child is
// refused. Without a cancellation, the child is created.
func TestCancellationsWaitForNoWebhook(t *testing.T) {
	k := &kinsfolk{start(t), map[string]context.Context{}}
	k.coordinate("boss", `{enabled: true, allowedAgents: [{name: "*"}]}`)
	for _, name := range []string{"cancelled", "other"} {
		k.root(name, "{type: ai, prompt: x, agentRef: {name: boss}}")
	}
	judged, verdict := make(chan struct{}), make(chan struct{})
	webhook := func(context.Context, runtime.Object) error {
		judged <- struct{}{}
		<-verdict
		return nil
	}
	results := map[string]chan error{}
	for _, name := range []string{"cancelled", "other"} {
		child := kinChild(k, name)
		result := make(chan error, 1)
		results[name] = result
		go func() {
			_, err := k.Storage["tasks"].(rest.Creater).Create(coretest.WithPath(k.by[name], "tasks"), child, webhook, &metav1.CreateOptions{})
			result <- err
		}()
		<-judged
	}
	k.cancel("cancelled") // returns, although the child of its tree is being judged
	if !meta.IsStatusConditionTrue(k.Task("cancelled").Status.Conditions, v1alpha1.ConditionCancelRequested) {
		t.Error("the task is not marked")
	}
	close(verdict)
	if err := <-results["cancelled"]; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "was cancelled and starts nothing more") {
		t.Errorf("a child of a cancelled task: %v", err)
	}
	if err := <-results["other"]; err != nil {
		t.Errorf("a child of another task: %v", err)
	}
}

// kinChild is a child of a task, as its worker sends it.
func kinChild(k *kinsfolk, of string) *v1alpha1.Task {
	k.t.Helper()
	obj, err := k.Decode(withHead("kind: Task\nspec: {type: ai, prompt: part, agentRef: {name: boss}}", of+"-child"))
	if err != nil {
		k.t.Fatal(err)
	}
	child := obj.(*v1alpha1.Task)
	child.Namespace = "default"
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(k.Task(of), v1alpha1.SchemeGroupVersion.WithKind("Task"))}
	return child
}
