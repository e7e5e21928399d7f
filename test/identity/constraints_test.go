// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
)

const allScopes = "platform:tasks:create platform:tasks:get platform:tasks:list platform:tasks:delete platform:tasks:update platform:agents:read"

// The context of a transaction limits its tasks in mode enforce, and the scopes alone do not.
func TestConstraints(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{external.ModeAudit, external.ModeEnforce} {
		i, s := scopes(t, mode, nil)
		n := 0
		for _, c := range []struct {
			context      string
			method, path string
			body         string
			allowed      bool
		}{
			{`{"agent":"x"}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"x"}}`, true},
			{`{"agent":"x"}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"y"}}`, false},
			{`{"agent":"x"}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"container","command":["true"]}`, false},
			{`{"agent":"x"}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"x","namespace":"other"}}`, false},
			{`{"allowedAgents":["x","y"]}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"y"}}`, true},
			{`{"allowedProviders":["p"]}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"ai","prompt":"p","ai":{"providerRef":{"name":"p"}}}`, true},
			{`{"allowedProviders":["p"]}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"ai","prompt":"p","ai":{"providerRef":{"name":"q"}}}`, false},
			{`{"provider":"p"}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"x"},"ai":{"providerRef":{"name":"p"}}}`, false},
			{`{"repo":"https://h/o/r"}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"container","command":["true"]}`, false},
			{`{"task":"mine"}`, "POST", "/api/v1/tasks", `{"name":"NEW","type":"container","command":["true"]}`, false},
			{`{"task":"a"}`, "GET", "/api/v1/tasks/a", "", true},
			{`{"task":"b"}`, "GET", "/api/v1/tasks/a", "", false},
			{`{"task":"a"}`, "GET", "/api/v1/tasks", "", false},
			{`{"task":"a"}`, "GET", "/api/v1/agents", "", false},
			{`{"namespace":"team"}`, "GET", "/api/v1/tasks?namespace=team", "", true},
			{`{"colour":"red"}`, "GET", "/api/v1/tasks", "", true},
		} {
			n++
			body := strings.ReplaceAll(c.body, "NEW", "new-"+strings.Repeat("x", n))
			token := i.transaction("user-1", object{"scope": allScopes, "tctx": json.RawMessage(c.context)})
			code, answer := s.send(c.method, c.path, body, "Txn-Token", token)
			if refused := code == http.StatusForbidden; refused != (!c.allowed && mode == external.ModeEnforce) || !refused && code >= 300 {
				t.Errorf("%s: tctx %s: %s %s %s: %d %s", mode, c.context, c.method, c.path, body, code, answer)
			}
		}
		if code, answer := s.send(http.MethodGet, "/api/v1/tasks", "", "Txn-Token", i.transaction("user-1", object{"scope": allScopes, "tctx": object{"agent": 7}})); code != http.StatusUnauthorized {
			t.Errorf("%s: a constraint that cannot be understood: %d %s", mode, code, answer)
		}
		// The namespace is a property of the caller and not of a mode.
		for ns, want := range map[string]int{"team": http.StatusForbidden, "other": http.StatusOK} {
			token := i.transaction("user-1", object{"scope": allScopes, "tctx": object{"namespace": "other"}})
			if code, answer := s.send(http.MethodGet, "/api/v1/tasks?namespace="+ns, "", "Txn-Token", token); code != want {
				t.Errorf("%s: namespace %s: %d %s", mode, ns, code, answer)
			}
		}
	}
}

// A delegated child and the run of a schedule belong to whoever asked for their parent, with a seal of their own, and are in
// its transaction. An unverified parent has nothing to pass on.
func TestRequesterIsInherited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bind("team", "platform-editor", external.GroupContextToken)
	token := w.issuer.transaction("user-1", object{"scope": allScopes, "tctx": object{"agent": "parent"}})
	w.await(func() bool {
		code, _ := w.send(http.MethodGet, "/api/v1/tasks", "", "Txn-Token", token)
		return code == http.StatusOK
	})
	create := func(body string) *v1alpha1.Task {
		code, answer := w.send(http.MethodPost, "/api/v1/tasks", body, "Txn-Token", token)
		if code != http.StatusCreated {
			t.Fatalf("%s: %d %s", body, code, answer)
		}
		task := &v1alpha1.Task{}
		if err := json.Unmarshal([]byte(answer), task); err != nil {
			t.Fatal(err)
		}
		return task
	}
	ctx := context.Background()
	seal := must(external.OpenSeal(filepath.Join(w.DataDir, "pki", "requester.key")))(t)
	inherits := func(what string, task, of *v1alpha1.Task) {
		t.Helper()
		if d := cmp.Diff(of.Spec.RequestedBy, task.Spec.RequestedBy) + cmp.Diff(of.Spec.Transaction, task.Spec.Transaction); d != "" || !seal.Verified(task) ||
			task.Labels[v1alpha1.LabelTransactionID] != "txn-1" || task.Annotations[v1alpha1.AnnotationRequestedByStamp] == of.Annotations[v1alpha1.AnnotationRequestedByStamp] {
			t.Errorf("%s: %s %v %v", what, d, task.Labels, task.Annotations)
		}
	}
	owned := func(by *v1alpha1.Task, agent string) *v1alpha1.Task {
		return &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "of-" + by.Name + "-", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(by, v1alpha1.SchemeGroupVersion.WithKind("Task"))}},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "part of " + by.Name, AgentRef: &v1alpha1.NamespacedReference{Name: agent}},
		}
	}

	root := create(`{"name":"root","type":"ai","prompt":"of root","agentRef":{"name":"parent"}}`)
	w.publish("root", v1alpha1.TaskRunning)
	me := w.as(w.worker(root)).Tasks("team")
	inherits("child", must(me.Create(ctx, owned(root, "parent"), metav1.CreateOptions{}))(t), root)
	if _, err := me.Create(ctx, owned(root, "other"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the transaction allows only parent") {
		t.Errorf("a child outside of the transaction: %v", err)
	}
	forged := owned(root, "parent")
	forged.Spec.RequestedBy = &v1alpha1.TaskRequester{Subject: "somebody", Issuer: w.issuer.URL}
	if _, err := me.Create(ctx, forged, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a child of somebody else: %v", err)
	}

	schedule := create(`{"name":"often","type":"ai","prompt":"p","agentRef":{"name":"parent"},"schedule":"@yearly"}`)
	run := func(agent string) (*v1alpha1.Task, error) { // as the controller makes one
		task := owned(schedule, agent)
		task.Labels = map[string]string{v1alpha1.LabelScheduledRun: "true"}
		return w.api.Tasks("team").Create(ctx, task, metav1.CreateOptions{})
	}
	inherits("run of a schedule", must(run("parent"))(t), schedule)
	if _, err := run("other"); !apierrors.IsForbidden(err) {
		t.Errorf("a run outside of the transaction: %v", err)
	}
	patch := []byte(`{"spec":{"requestedBy":null,"transaction":null}}`)
	if _, err := w.api.Tasks("team").Patch(ctx, "often", types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a schedule that forgets its transaction: %v", err)
	}
}
