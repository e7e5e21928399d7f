// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"

	"github.com/platform-ai/platform/pkg/server/expression"
)

// mutator is Kubernetes' plugin, changed to use its own informers for parameters, its own compiler, and the schemas of this server.
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

// NewMutating makes the admission plugin of MutatingAdmissionPolicies. own is the server's client of itself. The
// plugin reads the schemas of the served versions from it when it first needs one. The host's own copy of the schemas
// becomes available late, and the plugin would look for it only every five seconds. Policies are compiled by package
// expression, which bounds what they cost.
func NewMutating(own discovery.DiscoveryInterfaces, versions ...schema.GroupVersion) admission.Interface {
	p := &mutating.Plugin{Plugin: generic.NewPlugin(admission.NewHandler(admission.Create, admission.Update, admission.Connect), mutations, mutate)}
	p.SetEnabled(true)
	return &mutator{p, schemas{own, versions}}
}

func mutations(f informers.SharedInformerFactory, _ kubernetes.Interface, params dynamic.Interface, kinds meta.RESTMapper) generic.Source[mutating.PolicyHook] {
	stored := f.Admissionregistration().V1()
	return generic.NewPolicySource(
		stored.MutatingAdmissionPolicies().Informer(), stored.MutatingAdmissionPolicyBindings().Informer(),
		mutating.NewMutatingAdmissionPolicyAccessor, mutating.NewMutatingAdmissionPolicyBindingAccessor,
		expression.CompileMutating, f, params, kinds,
	)
}

func mutate(a authorizer.UnconditionalAuthorizer, m *matching.Matcher, c kubernetes.Interface) generic.Dispatcher[mutating.PolicyHook] {
	return mutating.NewDispatcher(a, m, patch.NewTypeConverterManager(nil, c.Discovery().OpenAPIV3()))
}

// SetExternalKubeInformerFactory sets the informers of policies, bindings and namespaces.
func (m *mutator) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	m.Plugin.SetExternalKubeInformerFactory(ownParams{f})
}

// SetExternalKubeClientSet sets the client that reads namespaces.
func (m *mutator) SetExternalKubeClientSet(c kubernetes.Interface) {
	m.Plugin.SetExternalKubeClientSet(withSchemas{c, m.schemas})
}

// withSchemas is a client whose discovery returns the schemas of this server.
type withSchemas struct {
	kubernetes.Interface
	schemas schemas
}

// Discovery returns the server's own discovery.
func (c withSchemas) Discovery() discovery.DiscoveryInterfaces { return c.schemas }

// schemas returns the schemas of this server. Their list is known before the server answers requests.
type schemas struct {
	discovery.DiscoveryInterfaces
	versions []schema.GroupVersion
}

// OpenAPIV3 returns the client of the schema documents.
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

// ServerRelativeURL returns a URL that is the same for the same content.
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
