// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
// the server's client of itself, from which the plugin takes the schemas of the
// versions that the server serves, when it first needs one: the host's copy of
// them comes late, and the plugin would look for it only every five seconds.
func NewMutating(own discovery.DiscoveryInterfaces, versions ...schema.GroupVersion) (admission.Interface, error) {
	p, err := mutating.NewPlugin(nil)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", mutating.PluginName, err)
	}
	return &mutator{p, schemas{own, versions}}, nil
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

// schemas are those of this server. The list is known before the server answers.
type schemas struct {
	discovery.DiscoveryInterfaces
	versions []schema.GroupVersion
}

// OpenAPIV3 is the client of the documents.
func (s schemas) OpenAPIV3() openapi.Client { return s }

// Paths lists the documents.
func (s schemas) Paths() (map[string]openapi.GroupVersion, error) {
	paths := map[string]openapi.GroupVersion{}
	for _, v := range s.versions {
		d := document{s.DiscoveryInterfaces, "apis/" + v.String()}
		paths[d.path] = d
	}
	return paths, nil
}

// document is the schema of one version. It never changes while the server runs.
type document struct {
	own  discovery.DiscoveryInterfaces
	path string
}

// ServerRelativeURL is the same for the same content.
func (d document) ServerRelativeURL() string { return "/openapi/v3/" + d.path }

// Schema reads the document.
func (d document) Schema(contentType string) ([]byte, error) {
	paths, err := d.own.OpenAPIV3().Paths()
	if err != nil {
		return nil, err
	}
	v := paths[d.path]
	if v == nil {
		return nil, fmt.Errorf("this server has no document %s", d.ServerRelativeURL())
	}
	return v.Schema(contentType)
}
