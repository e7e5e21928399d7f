// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// tryPolicies: policies of a file judge the calls in place of those of the server, and are not stored. Without a binding they
// deny; the label for approvals, warnings, match conditions and selectors work as they do for stored policies.
func tryPolicies(p *standalone.Platform) {
	t := p.T
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.yaml")
	try := func(policies string, args ...string) (string, string, int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(policies), 0o600); err != nil {
			t.Fatal(err)
		}
		return standalone.Command(t.Context(), p.Kubeconfig, append([]string{"policy", "test", "-f", file, "--task", "t", "-o", "json"}, args...)...)
	}
	policy := func(name, labels, spec string) string {
		return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %s, labels: {%s}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [core.platform.ai], apiVersions: [v1alpha1], resources: [toolcalls], operations: [CREATE]}]}
%s
`, name, labels, spec)
	}
	binding := func(policy, spec string) string {
		return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b-%s}
spec: {policyName: %s, %s}
`, policy, policy, spec)
	}
	const never, paid = "  validations: [{expression: \"false\", message: never}]", "  validations: [{expression: \"!has(object.spec.fileWrite) || object.spec.fileWrite.path != 'paid.txt'\", message: not that file}]"
	before := len(kit.Must[*admissionv1.ValidatingAdmissionPolicyList](t)(p.Kubernetes(t).AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})).Items)
	for name, c := range map[string]struct{ policies, want string }{
		"without a binding": {policy("p", "", paid), "Denied Deny p  not that file"},
		"none that matches": {policy("p", "", "  matchConditions: [{name: c, expression: \"object.spec.toolName == 'web_fetch'\"}]\n"+never), "Allowed"},
		"other namespaces":  {policy("p", "", never) + binding("p", "validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}"), "Allowed"},
		"this namespace":    {policy("p", "", never) + binding("p", "validationActions: [Warn], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}"), "Allowed Warn p b-p never"},
		"approval":          {policy("p", `platform.ai/require-approval: "true"`, never) + binding("p", "validationActions: [Audit]"), "ApprovalRequired RequireApproval p b-p never"},
		"two":               {policy("p", "", paid) + binding("p", "validationActions: [Audit]") + policy("q", "", never), "Denied Deny q  never"},
		"an error":          {policy("p", "", "  validations: [{expression: \"object.spec.fileWrite.pathh == 'x'\"}]") + binding("p", "validationActions: [Audit]"), "Denied Deny p b-p expression"},
		"the authorizer":    {policy("p", "", "  validations: [{expression: \"authorizer.group('').resource('secrets').check('get').allowed()\", message: refused}]"), "Denied Deny p  "},
	} {
		out, errs, code := try(c.policies)
		var got struct {
			Calls []struct {
				Tool, Verdict string
				Findings      []v1alpha1.ToolCallFinding
			}
		}
		want := 0 // of the exit code
		if err := json.Unmarshal([]byte(out), &got); err == nil && strings.Contains(out, `"verdict": "Denied"`) {
			want = 2
		}
		if code != want || len(got.Calls) != 3 {
			t.Errorf("%s: exit code %d, want %d: %s%s", name, code, want, out, errs)
			continue
		}
		text := got.Calls[1].Verdict
		if f := got.Calls[1].Findings; len(f) > 0 {
			text += fmt.Sprintf(" %s %s %s %s", f[0].Action, f[0].Policy, f[0].Binding, f[0].Message)
		}
		if !strings.HasPrefix(text, c.want) || c.want == "Allowed" && text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
	for name, c := range map[string]struct{ policies, want string }{
		"empty":      {"---\n", "has no policies"},
		"other kind": {"apiVersion: v1\nkind: Secret\n", "apiVersion: must be admissionregistration.k8s.io/v1"},
		"parameters": {policy("p", "", "  paramKind: {apiVersion: v1, kind: Secret}\n"+never), "spec.paramKind"},
		"ignored":    {policy("p", "", "  failurePolicy: Ignore\n"+never), "spec.failurePolicy: must be Fail"},
		"unbound":    {policy("p", "", never) + binding("q", "validationActions: [Deny]"), `no policy here is named "q"`},
		"twice":      {policy("p", "", never) + policy("p", "", never), "metadata.name"},
	} {
		if _, errs, code := try(c.policies); code != 1 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
	if after := len(kit.Must[*admissionv1.ValidatingAdmissionPolicyList](t)(p.Kubernetes(t).AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})).Items); after != before {
		t.Errorf("%d policies are stored, %d were", after, before)
	}
	if _, err := p.API().ToolCalls("default").Create(t.Context(), &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
		TaskName: "t", ToolName: "file_read", Policies: []apiextensionsv1.JSON{{Raw: []byte(`{}`)}},
	}}, metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("policies that are no dry run: %v", err)
	}
}
