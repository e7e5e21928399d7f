// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/json"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/tokenservice"
)

// TestTransactionTokens: the task of a caller with a transaction token gets a token of its own, in a Secret of the cluster
// that the task owns. The server's account may create that Secret, and the garbage collector deletes it with the task.
func TestTransactionTokens(t *testing.T) {
	tts := tokenservice.New(t)
	s := Start(t, "--context-token-profile=transaction-token", "--context-token-issuer="+tts.URL, "--context-token-audience=platform",
		"--context-token-tts-endpoint="+tts.URL+"/token", "--context-token-tts-timeout=1m", "--context-token-child-scope=work", "--oidc-namespace=transactions")
	s.namespace("transactions")
	s.c.MustShell(t, `kubectl -n transactions create rolebinding callers --clusterrole=platform-editor --group=platform:context-token
		until kubectl auth can-i create tasks -n transactions --as txn:ann --as-group platform:context-token; do :; done`)
	incoming, err := tts.Sign("txntoken+jwt", tokenservice.Claims{"sub": "ann", "txn": "txn-1", "scope": "work more", "req_wl": "gateway"})
	if err != nil {
		t.Fatal(err)
	}
	caller := s.direct(s.Anonymous())
	s.send(t, caller, http.MethodPost, "/api/v1/tasks", `{"name":"boss","type":"container","command":["true"]}`, "Txn-Token", incoming).Want(t, http.StatusCreated, "txn-1")
	task := &v1alpha1.Task{}
	_, body := s.get(s.Config(), "/apis/core.platform.ai/v1alpha1/namespaces/transactions/tasks/boss")
	if err := json.Unmarshal([]byte(body), task); err != nil {
		t.Fatal(err)
	}
	name := task.Annotations[v1alpha1.AnnotationTransactionTokenSecret]
	if name == "" || task.Annotations[v1alpha1.AnnotationTransactionTokenPending] != "" {
		t.Fatalf("annotations: %v", task.Annotations)
	}
	secret, err := s.Kubernetes(t).CoreV1().Secrets("transactions").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := tts.Read(string(secret.Data[v1alpha1.TransactionTokenKey]))
	if err != nil || claims["scope"] != "work" || claims["txn"] != "txn-1" || !metav1.IsControlledBy(secret, task) || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("%+v: %v %v", secret.ObjectMeta, claims, err)
	}
	s.c.Kubectl(t, "--namespace", "transactions", "delete", "task", "boss")
	s.awaitGone(corev1.SchemeGroupVersion.WithResource("secrets"), "transactions", name)
}
