// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/kit/host"
)

// Policies of the cluster judge the calls of agents' tools, which its own admission never sees: one is denied, one is held for
// a person, one is allowed, and what was found is in the stream of the task.
func TestToolCallPolicies(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "calls")
	const curlPolicy, amountPolicy = "no-curl.test", "held-amounts.test"
	s.policy("calls", "toolcalls", curlPolicy, "", "!has(object.spec.codeExec) || !object.spec.codeExec.code.contains('curl')", "no curl", "Deny")
	s.policy("calls", "toolcalls", amountPolicy, `platform.ai/require-approval: "true"`, "!('amount' in object.spec.numbers) || object.spec.numbers['amount'] <= 100.0", "above 100", "Audit")
	_, worker := w.run(t, "judged", "")
	call := func(tool, arguments string) string {
		return fmt.Sprintf(`{"apiVersion": "core.platform.ai/v1alpha1", "kind": "ToolCall", "spec": {"taskName": "judged", "toolName": %q, "arguments": %s}}`, tool, arguments)
	}
	const curl, pay = `{"language": "bash", "code": "curl x"}`, `{"amount": 101}`
	// The server learns of policies by a watch, so they take effect a moment later.
	for _, probe := range []struct{ tool, arguments, verdict string }{{"code_exec", curl, "Denied"}, {"pay", pay, "ApprovalRequired"}} {
		for !strings.Contains(s.send(t, worker, "POST", w.path("toolcalls?dryRun=All"), call(probe.tool, probe.arguments)).Body, `"verdict":"`+probe.verdict+`"`) {
			if t.Context().Err() != nil {
				t.Fatal("the policies have no effect")
			}
		}
	}
	for way, via := range s.ways() {
		t.Run(way, func(t *testing.T) {
			c := via(worker)
			post := func(tool, arguments string) host.Answer {
				return s.send(t, c, "POST", w.path("toolcalls"), call(tool, arguments))
			}
			post("code_exec", curl).Want(t, 201, `"verdict":"Denied"`).Want(t, 201, `"message":"no curl"`)
			post("pay", pay).Want(t, 201, `"verdict":"ApprovalRequired"`).Want(t, 201, `"message":"above 100"`)
			post("pay", `{"amount": 100}`).Want(t, 201, `"verdict":"Allowed"`)
		})
	}
	events, err := w.platform.CoreV1alpha1().ExecutionEvents(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=judged,type=ToolCallJudged"})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, e := range events.Items {
		for _, name := range []string{curlPolicy, amountPolicy} {
			if strings.Contains(string(e.Content.Raw), name) {
				found[e.ToolName+" "+name]++
			}
		}
	}
	if len(events.Items) != 2 || found["code_exec "+curlPolicy] != 1 || found["pay "+amountPolicy] != 1 { // an equal call is recorded once
		t.Errorf("%d verdicts are recorded: %v", len(events.Items), found)
	}
}
