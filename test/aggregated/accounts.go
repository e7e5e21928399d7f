// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"path/filepath"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// account returns the client configuration of a ServiceAccount, which is made if it does not exist.
func (s *Server) account(namespace, name string) *rest.Config {
	s.t.Helper()
	return s.c.ServiceAccountConfig(s.t, namespace, name)
}

// member returns an account with a role in its namespace. It waits until the role is in effect, since the authorizer learns
// of bindings by a watch and the server caches a refusal for seconds. verb is one that the role allows on tasks.
func (s *Server) member(namespace, name, role, verb string) *rest.Config {
	s.t.Helper()
	c := s.account(namespace, name)
	_, err := s.host().RbacV1().RoleBindings(namespace).Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
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
	s.poll(func() bool {
		r, err := s.host().AuthorizationV1().SubjectAccessReviews().Create(s.t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		return r.Status.Allowed
	})
}

// kubeconfig writes a client configuration with a token into a file.
func (s *Server) kubeconfig(c *rest.Config) string {
	s.t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthority: s.c.CAFile}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: c.BearerToken}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "c"
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// direct returns a configuration with the same identity that connects straight to the server, bypassing kube-apiserver.
func (s *Server) direct(c *rest.Config) *rest.Config {
	s.t.Helper()
	c = rest.CopyConfig(c)
	c.Host = "https://127.0.0.1:" + s.port
	c.TLSClientConfig.CAFile, c.TLSClientConfig.CAData = filepath.Join(s.DataDir, "pki", "ca.crt"), nil
	return c
}
