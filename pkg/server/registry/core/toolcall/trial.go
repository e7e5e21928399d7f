// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/listers/admissionregistration/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/expression"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxTrial is how many policies and bindings a dry run may bring.
const maxTrial = 32

// trial judges by policies that are not stored. It evaluates them with the code of the admission plugin. That code counts
// in metrics by the names of policies and bindings, so it gets names from a small set here. Such policies cannot read what the
// server may read and the caller may not: they have no parameters and no authorizer, and see only the name of the namespace.
type trial struct {
	hooks      []validating.PolicyHook
	dispatcher generic.Dispatcher[validating.PolicyHook]
	names      map[string]string // those that the caller wrote, by ours
}

var _ admission.ValidationInterface = (*trial)(nil)

// Handles implements admission.Interface.
func (t *trial) Handles(o admission.Operation) bool { return o == admission.Create }

// Validate implements admission.ValidationInterface.
func (t *trial) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return t.dispatcher.Dispatch(ctx, a, o, t.hooks)
}

// named replaces our names by the caller's.
func (t *trial) named(found []v1alpha1.ToolCallFinding) {
	for i := range found {
		found[i].Policy, found[i].Binding = t.names[found[i].Policy], t.names[found[i].Binding]
	}
}

// try returns a judge by the policies that a dry run brings.
func (j *judge) try(ctx context.Context, namespace string, given []apiextensionsv1.JSON) (*judge, error) {
	caller, _ := request.UserFrom(ctx)
	switch {
	case !resource.IsDryRun(ctx) || guard.IsWorker(caller):
		return nil, apierrors.NewBadRequest("spec.policies: only dry runs (dryRun=All) of callers other than workers may have policies")
	case len(given) > maxTrial:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.policies: at most %d are tried at a time", maxTrial))
	}
	policies, bindings, err := readTrial(given)
	if err != nil {
		return nil, err
	}
	stored := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	t := &trial{names: map[string]string{}}
	rename := func(name string) string {
		ours := fmt.Sprintf("tried-%d", len(t.names))
		t.names[ours] = name
		return ours
	}
	for _, p := range policies {
		bound := bindings[p.Name]
		if len(bound) == 0 {
			bound = []*admissionv1.ValidatingAdmissionPolicyBinding{{
				Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
			}}
		}
		p.Name = rename(p.Name)
		for _, b := range bound {
			b.Name, b.Spec.PolicyName = rename(b.Name), p.Name
		}
		if err := stored.Add(p); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		e := expression.Compile(p)
		if err := e.CompileError(); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.policies: %s: %v", t.names[p.Name], err))
		}
		t.hooks = append(t.hooks, validating.PolicyHook{Policy: p, Bindings: bound, Evaluator: e})
	}
	spaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := spaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{corev1.LabelMetadataName: namespace}}}); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	t.dispatcher = validating.NewDispatcher(noAuthorizer{}, generic.NewPolicyMatcher(matching.NewMatcher(corelisters.NewNamespaceLister(spaces), nil)))
	return &judge{tasks: j.tasks, tool: j.tool, scheme: j.scheme, admission: t, policies: v1.NewValidatingAdmissionPolicyLister(stored)}, nil
}

// noAuthorizer answers policies that ask what a caller may do. A trial must not reveal that.
type noAuthorizer struct{}

func (noAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", errors.New("policies that are tried cannot ask the authorizer")
}

// readTrial returns the policies in their order, and the bindings by the names of their policies.
func readTrial(given []apiextensionsv1.JSON) ([]*admissionv1.ValidatingAdmissionPolicy, map[string][]*admissionv1.ValidatingAdmissionPolicyBinding, error) {
	refuse := func(i int, format string, args ...any) error {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.policies[%d]: ", i) + fmt.Sprintf(format, args...))
	}
	var policies []*admissionv1.ValidatingAdmissionPolicy
	bindings, names, asked := map[string][]*admissionv1.ValidatingAdmissionPolicyBinding{}, map[string]bool{}, map[string]int{}
	for i, raw := range given {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(raw.Raw, &kind); err != nil {
			return nil, nil, refuse(i, "%v", err)
		}
		if kind.APIVersion != admissionv1.SchemeGroupVersion.String() {
			return nil, nil, refuse(i, "apiVersion: must be %s, not %q", admissionv1.SchemeGroupVersion, kind.APIVersion)
		}
		switch kind.Kind {
		case "ValidatingAdmissionPolicy":
			p := &admissionv1.ValidatingAdmissionPolicy{}
			if err := json.Unmarshal(raw.Raw, p); err != nil {
				return nil, nil, refuse(i, "%v", err)
			}
			switch {
			case p.Name == "" || names[p.Name]:
				return nil, nil, refuse(i, "metadata.name: %q: must be set, and differ from that of the other policies", p.Name)
			case p.Spec.FailurePolicy != nil && *p.Spec.FailurePolicy != admissionv1.Fail:
				return nil, nil, refuse(i, "spec.failurePolicy: must be Fail: a call that cannot be judged is denied")
			case expression.Source(&p.Spec) > expression.MaxSource:
				return nil, nil, refuse(i, "spec: all expressions together must have at most %d bytes", expression.MaxSource)
			case p.Spec.ParamKind != nil:
				return nil, nil, refuse(i, "spec.paramKind: a policy with parameters can be tried only once it is stored")
			}
			names[p.Name] = true
			setDefaults(&p.Spec)
			policies = append(policies, p)
		case "ValidatingAdmissionPolicyBinding":
			b := &admissionv1.ValidatingAdmissionPolicyBinding{}
			if err := json.Unmarshal(raw.Raw, b); err != nil {
				return nil, nil, refuse(i, "%v", err)
			}
			if b.Spec.ParamRef != nil || len(b.Spec.ValidationActions) == 0 {
				return nil, nil, refuse(i, "spec: must have validationActions and no paramRef")
			}
			setMatchDefaults(b.Spec.MatchResources)
			bindings[b.Spec.PolicyName] = append(bindings[b.Spec.PolicyName], b)
			asked[b.Spec.PolicyName] = i
		default:
			return nil, nil, refuse(i, "kind: must be ValidatingAdmissionPolicy or ValidatingAdmissionPolicyBinding, not %q", kind.Kind)
		}
	}
	for name, i := range asked {
		if !names[name] {
			return nil, nil, refuse(i, "spec.policyName: no policy here is named %q", name)
		}
	}
	return policies, bindings, nil
}

// setDefaults sets what a stored policy has.
func setDefaults(s *admissionv1.ValidatingAdmissionPolicySpec) {
	if s.FailurePolicy == nil {
		s.FailurePolicy = new(admissionv1.Fail)
	}
	setMatchDefaults(s.MatchConstraints)
}

func setMatchDefaults(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	if m.MatchPolicy == nil {
		m.MatchPolicy = new(admissionv1.Equivalent)
	}
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			if rules[i].Scope == nil {
				rules[i].Scope = new(admissionv1.AllScopes)
			}
		}
	}
}
