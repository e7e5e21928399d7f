// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A policy whose expression explodes denies the call and names the limit; also when a user who may not store
// policies tries one, many times at once.
func TestPolicyExplodes(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, "exit 0")
	p.Run("t")
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)
	arguments := `{"s":"` + strings.Repeat("a", 256<<10) + `"}`
	const limits = "the policy needs more than 32 MiB of memory for this request"
	rule := `!('s' in object.spec.strings) || object.spec.strings['s'].replace('a', object.spec.strings['s']) == ''`
	stored := host.Policy("explodes", rule, "no")
	stored.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"toolcalls"}
	host.Install(t, p.Kubernetes(t), stored, host.Deny("explodes"))
	kit.Await(t, "the policy in force", func() bool {
		s, err := judge(p, "t", "pay", arguments)
		return err == nil && s.Verdict == v1alpha1.ToolCallDenied && strings.Contains(said(s), limits)
	})
	doubled := host.Policy("doubles", "size(variables.v9) == 0", "no")
	doubled.Spec.MatchConstraints = stored.Spec.MatchConstraints
	doubled.APIVersion, doubled.Kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
	doubled.Spec.Variables = append(doubled.Spec.Variables, variable("v0", "object.spec.strings['s']"))
	for i := range 9 {
		doubled.Spec.Variables = append(doubled.Spec.Variables, variable(fmt.Sprintf("v%d", i+1), fmt.Sprintf("variables.v%d + variables.v%d", i, i)))
	}
	raw, err := json.Marshal(doubled)
	if err != nil {
		t.Fatal(err)
	}
	var tries sync.WaitGroup
	for range 8 {
		tries.Go(func() {
			out, err := p.API().ToolCalls("default").Create(t.Context(), &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
				TaskName: "t", ToolName: "pay", Arguments: &apiextensionsv1.JSON{Raw: []byte(arguments)}, Policies: []apiextensionsv1.JSON{{Raw: raw}},
			}}, metav1.CreateOptions{DryRun: []string{"All"}})
			if err != nil || !strings.Contains(said(out.Status), limits) {
				t.Errorf("a policy that was tried: %v", err)
			}
		})
	}
	tries.Wait()
}

func variable(name, expression string) admissionv1.Variable {
	return admissionv1.Variable{Name: name, Expression: expression}
}
