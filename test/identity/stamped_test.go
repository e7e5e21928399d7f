// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit/host"
)

// A task that is created with a token of a real provider, through REST or the Kubernetes API, is sealed with the requester that
// the token names.
func TestRequesterOfOpenIDProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := start(t, external.Options{OIDC: external.OIDC{Issuer: p.issuer, Audience: "platform", AllowedSubjects: []string{"user-?"}, Namespace: "team"}})
	s.Namespaces(t, "team")
	s.bind("team", "platform-editor", external.GroupOIDC)
	seal := must(external.OpenSeal(filepath.Join(s.DataDir, "pki", "requester.key")))(t)
	for _, want := range []*v1alpha1.TaskRequester{
		{Subject: "user-1", Issuer: p.issuer, Username: "ann", Email: "ann@example.com", Groups: []string{"dev"}, Roles: []string{"r1", "r2"}},
		{Subject: "user-2", Issuer: p.issuer, Username: "user-2", Groups: []string{"ops"}},
	} {
		token := p.token(want.Subject, "urn:platform")
		s.await(func() bool {
			code, _ := s.send(http.MethodGet, "/api/v1/tasks", "", "Authorization", "Bearer "+token)
			return code == http.StatusOK
		})
		for way, task := range map[string]*v1alpha1.Task{
			"REST":           s.create(want.Subject+"-rest", "Authorization", "Bearer "+token),
			"Kubernetes API": s.createNatively(want.Subject+"-native", token),
		} {
			stored := must(s.Core(t).Tasks("team").Get(t.Context(), task.Name, metav1.GetOptions{}))(t)
			if d := cmp.Diff(want, stored.Spec.RequestedBy); d != "" || stored.Spec.Transaction != nil {
				t.Errorf("%s, %s: requester (-want +got):\n%s%+v", want.Subject, way, d, stored.Spec.Transaction)
			}
			if !seal.Verified(stored) || stored.Annotations[v1alpha1.AnnotationRequestedBySource] != "api" || stored.Labels[v1alpha1.LabelAuthProfile] != external.TypeOIDC ||
				stored.Annotations[v1alpha1.AnnotationRequestedBy] != "oidc:"+want.Username {
				t.Errorf("%s, %s: %v %v", want.Subject, way, stored.Labels, stored.Annotations)
			}
		}
	}
}

// createNatively makes a task through the Kubernetes API with a Bearer token.
func (s *server) createNatively(name, token string) *v1alpha1.Task {
	s.t.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	return must(host.CoreOf(s.t, s.With(token)).Tasks("team").Create(s.t.Context(), task, metav1.CreateOptions{}))(s.t)
}
