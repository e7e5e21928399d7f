// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
)

// mutator is Kubernetes' plugin with informers of its own for parameters, and the schemas of this server.
type mutator struct {
	*mutating.Plugin
	schemas schemas
}

var (
	_ admission.MutationInterface                  = &mutator{}
	_ admission.InitializationValidator            = &mutator{}
	_ initializer.WantsExternalKubeInformerFactory = &mutator{}
	_ initializer.WantsExternalKubeClientSet       = &mutator{}
)

// NewMutating makes the admission plugin of MutatingAdmissionPolicies. own is
// the server's client of itself, from which the plugin takes the schemas of what
// it changes, once ready is closed: the host's copy of them comes late. ready
// is also closed when the server ends.
func NewMutating(own discovery.DiscoveryInterfaces, ready <-chan struct{}) (admission.Interface, error) {
	p, err := mutating.NewPlugin(nil)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", mutating.PluginName, err)
	}
	return &mutator{p, schemas{own, ready}}, nil
}

// SetExternalKubeInformerFactory gives the informers of policies, bindings and
// namespaces.
func (m *mutator) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	m.Plugin.SetExternalKubeInformerFactory(ownParams{f})
}

// SetExternalKubeClientSet gives the client of namespaces.
func (m *mutator) SetExternalKubeClientSet(c kubernetes.Interface) {
	m.Plugin.SetExternalKubeClientSet(withSchemas{c, m.schemas})
}

// withSchemas is a client whose discovery tells the schemas of this server.
type withSchemas struct {
	kubernetes.Interface
	schemas schemas
}

// Discovery is the server's own.
func (c withSchemas) Discovery() discovery.DiscoveryInterfaces { return c.schemas }

// schemas are those of this server, once it answers.
type schemas struct {
	discovery.DiscoveryInterfaces
	ready <-chan struct{}
}

// OpenAPIV3 is the client of the documents.
func (s schemas) OpenAPIV3() openapi.Client { return s }

// Paths lists the documents.
func (s schemas) Paths() (map[string]openapi.GroupVersion, error) {
	<-s.ready // the plugin asks again only after seconds, in which its policies would fail
	return s.DiscoveryInterfaces.OpenAPIV3().Paths()
}
