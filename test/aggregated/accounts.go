// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"path/filepath"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit"
)

// account returns the client configuration of a ServiceAccount, which is made if it does not exist.
func (s *Server) account(namespace, name string) *rest.Config {
	s.t.Helper()
	return s.With(s.Token(s.t, namespace, name))
}

// member returns an account with a role in its namespace. It waits until the role is in effect, since the authorizer learns
// of bindings by a watch and the server caches a refusal for seconds. verb is one that the role allows on tasks.
func (s *Server) member(namespace, name, role, verb string) *rest.Config {
	s.t.Helper()
	c := s.With(s.Token(s.t, namespace, name, role))
	s.awaitAllowed(namespace, "system:serviceaccount:"+namespace+":"+name, verb, "")
	return c
}

// awaitAllowed waits until the cluster allows a user a verb on tasks, or on their subresource.
func (s *Server) awaitAllowed(namespace, user, verb, subresource string) {
	s.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: tasks.Group, Resource: tasks.Resource, Subresource: subresource,
		},
	}}
	kit.Await(s.t, verb+" allowed to "+user, func() bool {
		r, err := s.Kubernetes(s.t).AuthorizationV1().SubjectAccessReviews().Create(s.t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		return r.Status.Allowed
	})
}

// direct returns a configuration with the same identity that connects straight to the server, bypassing kube-apiserver.
func (s *Server) direct(c *rest.Config) *rest.Config {
	s.t.Helper()
	c = rest.CopyConfig(c)
	c.Host = "https://127.0.0.1:" + s.port
	c.TLSClientConfig.CAFile, c.TLSClientConfig.CAData = filepath.Join(s.DataDir, "pki", "ca.crt"), nil
	return c
}
