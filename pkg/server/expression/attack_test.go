// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/server/expression"
	"github.com/platform-ai/platform/test/kit"
)

// policy returns the policy with these variables, named v0, v1 and so on, and this expression.
func policy(rule string, variables ...string) *admissionv1.ValidatingAdmissionPolicy {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.MatchConstraints = &admissionv1.MatchResources{}
	p.Spec.Validations = []admissionv1.Validation{{Expression: rule, Message: "no"}}
	for i, v := range variables {
		p.Spec.Variables = append(p.Spec.Variables, admissionv1.Variable{Name: fmt.Sprintf("v%d", i), Expression: v})
	}
	return p
}

// again returns the expression, in which PREVIOUS is the variable before, n times after the first.
func again(first, each string, n int) []string {
	all := []string{first}
	for i := range n {
		all = append(all, strings.ReplaceAll(each, "PREVIOUS", fmt.Sprintf("variables.v%d", i)))
	}
	return all
}

// judge evaluates a policy on a ConfigMap, and returns what it decided.
func judge(t *testing.T, v validating.Validator, data map[string]string) validating.PolicyDecision {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}, Data: data}
	kind, resource := corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithResource("configmaps")
	attr := &admission.VersionedAttributes{
		Attributes:    admission.NewAttributesRecord(object, nil, kind, "default", "c", resource, "", admission.Create, nil, false, &user.DefaultInfo{Name: "u"}),
		VersionedKind: kind, VersionedObject: admission.NewLazyObject(object),
	}
	r := v.Validate(t.Context(), resource, attr, nil, &corev1.Namespace{}, celconfig.RuntimeCELCostBudget, nil)
	if len(r.Decisions) != 1 {
		t.Fatalf("%d decisions", len(r.Decisions))
	}
	return r.Decisions[0]
}

// A policy that explodes ends with an error that names the limit, and allocates little more than the limit in all.
var limits = regexp.MustCompile("MiB of memory|compares more than|a regular expression|cost limit|cost budget")

func TestExplosions(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	long := map[string]string{"s": strings.Repeat("a", 1<<20), "m": strings.Repeat("a,", 1<<19)}
	const many = "lists.range(50000)"
	wide := "[size(object.data.s), " + strings.Repeat("1, ", 5000) + "1]"
	for name, c := range map[string]struct {
		rule      string
		variables []string
	}{
		"doubled text":           {"size(variables.v40) == 0", again("object.data.s", "PREVIOUS + PREVIOUS", 40)},
		"doubled bytes":          {"size(variables.v40) == 0", again("bytes(object.data.s)", "PREVIOUS + PREVIOUS", 40)},
		"doubled list":           {"variables.v40.all(x, x == 'a')", again("[object.data.s]", "PREVIOUS + PREVIOUS", 40)},
		"doubled list, joined":   {"variables.v20.join() == ''", again("[object.data.s]", "PREVIOUS + PREVIOUS", 20)},
		"nested list, compared":  {"variables.v60 == variables.v60.map(x, x)", again("[object.data.s]", "[PREVIOUS, PREVIOUS]", 60)},
		"nested list, formatted": {"'%s'.format([variables.v60]) == ''", again("[object.data.s]", "[PREVIOUS, PREVIOUS]", 60)},
		"nested list, found":     {"variables.v60 in [variables.v60.map(x, x)]", again("[object.data.s]", "[PREVIOUS, PREVIOUS]", 60)},
		"nested list, flattened": {"size(variables.v60.flatten(100)) == 0", again("[object.data.s]", "[PREVIOUS, PREVIOUS]", 60)},
		"nested map":             {"variables.v60 == variables.v60.transformMap(k, v, v)", again("{'a': object.data.s}", "{'a': PREVIOUS, 'b': PREVIOUS}", 60)},
		"replaced":               {"object.data.s.replace('a', object.data.s) == ''", nil},
		"replaced with nothing":  {"object.data.s.replace('', object.data.s) == ''", nil},
		"many long texts":        {"size(" + many + ".map(i, object.data.s + string(i))) == 0", nil},
		"many copies":            {"size(" + many + ".map(i, object.data.s.upperAscii())) == 0", nil},
		"many variables":         {strings.Join(names(100), " == '' || ") + " == ''", again("object.data.s + '0'", "object.data.s + 'x'", 100)},
		"wide lists":             {"size(" + many + ".map(i, " + wide + ")) == 0", nil},
		"split":                  {"object.data.m.split(',').map(x, object.data.m.split(',')).size() == 0", nil},
		"all matches":            {"size(" + many + ".map(i, object.data.s.findAll('a'))) == 0", nil},
		"all matches of a value": {"size(" + many + ".map(i, object.data.s.findAll(dyn('a') + ''))) == 0", nil},
		"precision":              {"'%.999999999f'.format([1.5]) == ''", nil},
		"precision of a value":   {"(dyn('%.99999') + '9999f').format([1.5]) == ''", nil},
		"large range":            {"size(lists.range(100).map(i, lists.range(1000000))) == 0", nil},
		"pattern":                {"'a'.matches('((abcdefghijklmnopqrstuvwxyz){100}xyz){9}((abcdefghijklmnopqrstuvwxyz){100}xyz){9}((abcdefghijklmnopqrstuvwxyz){100}xyz){9}')", nil},
		"pattern of a value":     {"'a'.matches('(' + object.data.s + ')*')", nil},
		"many patterns":          {many + ".exists(i, 'a'.matches('((abcdefghijklmnopqrstuvwxyz){100}xyz){9}' + string(i)))", nil},
		"sorted":                 {"size(" + many + ".map(i, variables.v0.sort())) == 0", []string{many}},
		"searched":               {many + ".exists(i, variables.v0.indexOf(-1) == 1)", []string{many}},
	} {
		v := expression.Compile(policy(c.rule, c.variables...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := judge(t, v, long)
		runtime.ReadMemStats(&after)
		grown := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%-24s %4d MiB  %s %s %v", name, grown, d.Evaluation, d.Message[max(0, len(d.Message)-110):], d.Elapsed)
		if d.Action != validating.ActionDeny || d.Evaluation != validating.EvalError || !limits.MatchString(d.Message) {
			t.Errorf("%s: %s: %s", name, d.Evaluation, d.Message)
		}
		if grown > maxAllocated {
			t.Errorf("%s: %d MiB allocated", name, grown)
		}
	}
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("variables.v%d", i)
	}
	return all
}
