// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// The audit log records who did what, whichever path the request took, under the id in kube-apiserver's own log. It
// contains no token.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	log, policy := filepath.Join(dir, "audit.log"), filepath.Join(dir, "policy.yaml")
	rules := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: RequestResponse\n"
	if err := os.WriteFile(policy, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Start(t, "--audit-log", log, "--audit-policy", policy)
	s.namespace("audited")
	writer := s.member("audited", "writer", "platform-editor", "create")
	const path = "/apis/core.platform.ai/v1alpha1/namespaces/audited/tasks"
	body := func(name string) string {
		b, err := json.Marshal(task(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	type record struct {
		User, Verb, Resource, Name string
		Code                       int32
	}
	const user = "system:serviceaccount:audited:writer"
	want := map[string]record{}
	sent := func(r host.Answer, verb, name string, code int) {
		t.Helper()
		id := r.Want(t, code, "").Header.Get("Audit-Id")
		want[id] = record{user, verb, "tasks", name, int32(code)}
	}
	for way, as := range s.ways() {
		name := map[string]string{"direct": "a"}[way] + "x"
		sent(s.send(t, as(writer), http.MethodPost, path, body(name)), "create", name, http.StatusCreated)
		sent(s.send(t, as(writer), http.MethodDelete, path+"/"+name+"?dryRun=All", ""), "delete", name, http.StatusOK)
	}
	sent(s.send(t, s.direct(writer), http.MethodGet, "/api/v1/tasks/x?namespace=audited", ""), "get", "x", http.StatusOK)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}

	written, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(written, []byte(writer.BearerToken)) {
		t.Error("the token is in the audit log")
	}
	got := map[string]record{}
	for line := range bytes.Lines(written) {
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if _, ok := want[string(e.AuditID)]; ok && e.ObjectRef.Subresource == "" { // REST also reads the task's plan
			got[string(e.AuditID)] = record{e.User.Username, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name, e.ResponseStatus.Code}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 5 {
		t.Errorf("requests by their ids (-want +got):\n%s", diff)
	}
}

// The REST paths on a port without TLS accept the cluster's users. Without priority and fairness no FlowSchema applies.
func TestOtherListenerOtherLimits(t *testing.T) {
	address := "127.0.0.1:" + kit.FreePort(t)
	s := Start(t, "--rest-bind-address", address, "--enable-priority-and-fairness=false")
	plain := func(c *rest.Config) *rest.Config {
		return &rest.Config{Host: "http://" + address, BearerToken: c.BearerToken}
	}
	s.namespace("plain")
	reader := s.member("plain", "reader", "platform-viewer", "list")
	// The namespace is the one of the caller's account.
	s.send(t, plain(reader), http.MethodGet, "/api/v1/tasks", "").Want(t, http.StatusOK, "items")
	s.send(t, plain(reader), http.MethodGet, "/api/v1/tasks?namespace=default", "").Want(t, http.StatusForbidden, `"error"`)
	// There are no anonymous callers here, although everybody may read health and discovery natively.
	for _, c := range []*rest.Config{plain(&rest.Config{}), s.direct(s.Anonymous())} {
		for _, header := range [][]string{
			nil,
			{"Authorization", "Basic eDp5"},
			{"Authorization", "Bearer "},
			{"X-Api-Key", " "},
			{"Authorization", "Bearer x"},
			{"X-Remote-User", "admin", "X-Remote-Group", "system:masters"},
		} {
			for _, path := range []string{"/api/v1/tasks", "/api/v1/tasks/x/events", "/api/v1/auth/validate", "/api/v1/auth/whoami"} {
				s.send(t, c, http.MethodGet, path, "", header...).Want(t, http.StatusUnauthorized, `{"error":{"code":401,"message":"Unauthorized"}}`)
			}
		}
	}
	s.send(t, plain(reader), http.MethodGet, "/apis/core.platform.ai/v1alpha1/namespaces/plain/tasks", "").Want(t, http.StatusNotFound, `"error"`)
	if id := s.Ask(t, s.direct(reader), http.MethodGet, "/apis/core.platform.ai/v1alpha1/namespaces/plain/tasks", "").Header.Get("X-Kubernetes-Pf-Flowschema-Uid"); id != "" {
		t.Errorf("FlowSchema %s decides", id)
	}
	if code, body := s.get(s.direct(s.Config()), "/metrics"); code != http.StatusOK || !bytes.Contains([]byte(body), []byte("apiserver_current_inflight_requests")) {
		t.Errorf("/metrics: %d", code)
	}
}
