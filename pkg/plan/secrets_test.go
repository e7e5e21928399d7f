// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// TestSecretHosts plans tasks whose Secret permits different hosts. "" is a Secret without the annotation, "none" one with an
// empty annotation.
func TestSecretHosts(t *testing.T) {
	const own = "http://evil.example:8080/v1"
	withTool := plantest.AI(plantest.With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{"weather"} }))
	variable := plantest.Container(func(s *v1alpha1.TaskSpec) {
		s.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "token",
		}}}}
	})
	optional := variable.DeepCopy()
	optional.Spec.Env[0].ValueFrom.SecretKeyRef.Optional = new(true)
	mount := plantest.Container(func(s *v1alpha1.TaskSpec) { s.SecretRef = &v1alpha1.NamespacedReference{Name: "keys"} })
	for name, tc := range map[string]struct {
		task    *v1alpha1.Task
		rule    string
		baseURL string
		require bool
		says    []string // parts of the refusal; none if the task runs
	}{
		"no rule":                {task: plantest.AI()},
		"no rule, required":      {task: plantest.AI(), require: true, says: []string{`Provider n/openai: Secret "keys" of namespace "n"`, "the operator requires"}},
		"named":                  {task: plantest.AI(), rule: "api.openai.com", require: true},
		"named among others":     {task: plantest.AI(), rule: "x.example, *.openai.com"},
		"an editor's own server": {task: plantest.AI(), rule: "api.openai.com", baseURL: own, says: []string{`Provider n/openai: the value of Secret "keys" of namespace "n"`, "http://evil.example:8080", `"api.openai.com"`, v1alpha1.AnnotationAllowedHosts}},
		"its subdomain":          {task: plantest.AI(), rule: "api.openai.com", baseURL: "https://api.openai.com.evil.example/v1", says: []string{"https://api.openai.com.evil.example"}},
		"not encrypted":          {task: plantest.AI(), rule: "api.openai.com", baseURL: "http://api.openai.com/v1", says: []string{"http://api.openai.com"}},
		"anywhere":               {task: plantest.AI(), rule: "*", baseURL: own, require: true},
		"nowhere":                {task: plantest.AI(), rule: "none", says: []string{"https://api.openai.com"}},
		"a wrong rule":           {task: plantest.AI(), rule: "api.openai.com, https://api.openai.com/v1", says: []string{`annotation platform.ai/allowed-hosts: "https://api.openai.com/v1" must be a host`}},
		"a tool":                 {task: withTool, rule: "api.openai.com tool.example"},
		"a tool elsewhere":       {task: withTool, rule: "api.openai.com", says: []string{"Tool n/weather: ", "https://tool.example"}},
		"a variable":             {task: variable, rule: "api.openai.com", says: []string{"spec.env: the value of TOKEN", "a program could send it anywhere"}},
		"a variable, anywhere":   {task: variable, rule: "*", require: true},
		"a variable, required":   {task: variable, require: true, says: []string{"the operator requires"}},
		"an optional variable":   {task: optional, rule: "api.openai.com", says: []string{"a program could send it anywhere"}},
		"optional, required":     {task: optional, require: true, says: []string{"the operator requires"}},
		"a mount":                {task: mount, rule: "api.openai.com", says: []string{"a program could send it anywhere"}},
	} {
		objects := newShelf()
		for _, s := range plantest.Secrets() {
			switch tc.rule {
			case "":
			case "none":
				s.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: ""}
			default:
				s.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: tc.rule}
			}
			objects["secret "+s.Namespace+"/"+s.Name] = s
		}
		for _, o := range plantest.Objects() {
			if p, ok := o.(*v1alpha1.Provider); ok && p.Name == "openai" {
				p.Spec.BaseURL = tc.baseURL
				objects["provider "+p.Namespace+"/"+p.Name] = p
			}
		}
		p, err := plan.Make(t.Context(), objects, plan.Place{RequireHosts: tc.require}, tc.task)
		refused, ok := errors.AsType[*refusal.Error](err)
		switch {
		case len(tc.says) == 0 && err != nil, len(tc.says) > 0 && (!ok || refused.Reason != v1alpha1.ReasonSecretHostNotAllowed || refused.Missing):
			t.Errorf("%s: %v", name, err)
			continue
		case len(tc.says) == 0:
			for _, s := range p.Secrets {
				if s.Hosts != (egress.Hosts{Rule: tc.rule, Set: tc.rule != ""}) {
					t.Errorf("%s: the plan has %+v", name, s)
				}
			}
			continue
		}
		for _, part := range tc.says {
			if !strings.Contains(refused.Message, part) {
				t.Errorf("%s: %q lacks %q", name, refused.Message, part)
			}
		}
		for _, value := range []string{"value-1", "value-2"} {
			if strings.Contains(refused.Message, value) {
				t.Errorf("%s: the message has the value: %s", name, refused.Message)
			}
		}
	}
}

// TestQuestionHosts: what does not belong to a task keeps to the same rule.
func TestQuestionHosts(t *testing.T) {
	q := &plan.Question{Namespace: plantest.Namespace, Provider: "openai", RequireHosts: true}
	_, err := plan.Answering(t.Context(), newShelf(), q)
	if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Reason != v1alpha1.ReasonSecretHostNotAllowed {
		t.Errorf("%v", err)
	}
}
