// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A policy on calls of tools that cannot match, or does not fit their schema, is refused when it is written.
func TestToolCallPolicies(t *testing.T) {
	t.Parallel()
	const good = "!has(object.spec.codeExec) || !object.spec.codeExec.code.contains('curl')"
	policy := func(expression string, change ...func(*admissionv1.ValidatingAdmissionPolicySpec)) *admissionv1.ValidatingAdmissionPolicy {
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec = admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy:       ptr.To(admissionv1.Equivalent),
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{"core.platform.ai"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"toolcalls"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: expression}},
		}
		for _, f := range change {
			f(&p.Spec)
		}
		return p
	}
	rule := func(f func(r *admissionv1.NamedRuleWithOperations)) func(*admissionv1.ValidatingAdmissionPolicySpec) {
		return func(s *admissionv1.ValidatingAdmissionPolicySpec) { f(&s.MatchConstraints.ResourceRules[0]) }
	}
	for name, c := range map[string]struct {
		policy *admissionv1.ValidatingAdmissionPolicy
		want   string // empty if it is accepted
	}{
		"typed":             {policy(good), ""},
		"free arguments":    {policy("object.spec.arguments.amount <= 100"), "use strings, numbers or booleans"},
		"values":            {policy("!('amount' in object.spec.numbers) || object.spec.numbers['amount'] <= 100"), ""},
		"requester":         {policy("has(object.spec.task.requestedBy) && object.spec.task.requestedBy.groups.exists(g, g == 'writers')"), ""},
		"misspelt tool":     {policy("!has(object.spec.codeExecution)"), "undefined field 'codeExecution'"},
		"misspelt argument": {policy("!has(object.spec.codeExec) || object.spec.codeExec.source == ''"), "undefined field 'source'"},
		"wrong type":        {policy("object.spec.webSearch.limit == 'many'"), "no matching overload"},
		"misspelt condition": {policy(good, func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "c", Expression: "object.spec.tool == 'code_exec'"}}
		}), "spec.matchConditions[0].expression"},
		"singular":    {policy(good, rule(func(r *admissionv1.NamedRuleWithOperations) { r.Resources = []string{"toolcall"} })), "matches nothing"},
		"subresource": {policy(good, rule(func(r *admissionv1.NamedRuleWithOperations) { r.Resources = []string{"toolcalls/status"} })), "matches nothing"},
		"update only": {policy(good, rule(func(r *admissionv1.NamedRuleWithOperations) {
			r.Operations = []admissionv1.OperationType{admissionv1.Update}
		})), "matches nothing"},
		"old version":   {policy(good, rule(func(r *admissionv1.NamedRuleWithOperations) { r.APIVersions = []string{"v1"} })), "matches nothing"},
		"ignores":       {policy(good, func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.FailurePolicy = ptr.To(admissionv1.Ignore) }), "must be Fail"},
		"other kinds":   {policy("object.spec.anything == 'x'", rule(func(r *admissionv1.NamedRuleWithOperations) { r.Resources = []string{"tasks"} })), ""},
		"more than one": {policy("has(object.spec.anything)", rule(func(r *admissionv1.NamedRuleWithOperations) { r.Resources = []string{"tasks", "toolcalls"} })), ""},
	} {
		errs := validatePolicy(t.Context(), c.policy)
		switch text := errs.ToAggregate(); {
		case c.want == "" && text != nil:
			t.Errorf("%s: %v", name, text)
		case c.want != "" && (text == nil || !strings.Contains(text.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, text, c.want)
		}
	}
}
