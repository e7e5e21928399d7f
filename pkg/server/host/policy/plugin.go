// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/platform-ai/platform/pkg/server/expression"
)

// plugin is Kubernetes' plugin, changed to use its own informers for
// parameters and its own compiler.
type plugin struct{ *validating.Plugin }

var (
	_ admission.ValidationInterface                = &plugin{}
	_ admission.InitializationValidator            = &plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &plugin{}
)

// New makes the admission plugin of ValidatingAdmissionPolicies. Requests wait
// until it knows all policies. A change of a policy takes effect within about a
// second. Policies are compiled by package expression, which bounds what they cost.
func New() admission.Interface {
	p := &validating.Plugin{Plugin: generic.NewPlugin(
		admission.NewHandler(admission.Connect, admission.Create, admission.Delete, admission.Update), source, dispatcher,
	)}
	p.SetEnabled(true)
	p.SetExcludedAdmissionResources(questions())
	return &plugin{p}
}

func source(f informers.SharedInformerFactory, _ kubernetes.Interface, params dynamic.Interface, kinds meta.RESTMapper) generic.Source[validating.PolicyHook] {
	stored := f.Admissionregistration().V1()
	return generic.NewPolicySource(
		stored.ValidatingAdmissionPolicies().Informer(), stored.ValidatingAdmissionPolicyBindings().Informer(),
		validating.NewValidatingAdmissionPolicyAccessor, validating.NewValidatingAdmissionPolicyBindingAccessor,
		expression.Compile, f, params, kinds,
	)
}

func dispatcher(a authorizer.UnconditionalAuthorizer, m *matching.Matcher, _ kubernetes.Interface) generic.Dispatcher[validating.PolicyHook] {
	return validating.NewDispatcher(a, generic.NewPolicyMatcher(m))
}

// questions returns the resources that policies never apply to, as in
// Kubernetes. Otherwise a policy could make every answer about identities and
// permissions fail.
func questions() []schema.GroupResource {
	return []schema.GroupResource{
		authenticationv1.Resource("selfsubjectreviews"),
		authenticationv1.Resource("tokenreviews"),
		authorizationv1.Resource("localsubjectaccessreviews"),
		authorizationv1.Resource("selfsubjectaccessreviews"),
		authorizationv1.Resource("selfsubjectrulesreviews"),
		authorizationv1.Resource("subjectaccessreviews"),
	}
}

// SetExternalKubeInformerFactory sets the informers of policies, bindings and
// namespaces.
func (p *plugin) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	p.Plugin.SetExternalKubeInformerFactory(ownParams{f})
}

// ownParams is a factory that has no informers for kinds found at run time. The
// plugin then makes an informer for each kind of parameters itself, which ends
// with the last policy that uses it. A factory would neither stop its informer
// nor start it again for the next such policy.
type ownParams struct {
	informers.SharedInformerFactory
}

// ForResource always fails.
func (ownParams) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("informers of %s are not shared", r)
}
