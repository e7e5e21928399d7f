// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestBudgetByKubectl: an administrator creates a Budget with kubectl and sees in kubectl get what chats spent. A chat that
// does not fit is refused with the reason, as an answer and in a stream; an editor may read the Budget and not change it.
func TestBudgetByKubectl(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, orchestrator)
	dir := t.TempDir()
	manifest := filepath.Join(dir, "budget.yaml")
	text := "apiVersion: core.platform.ai/v1alpha1\nkind: Budget\nmetadata: {name: month}\nspec: {limit: {tokens: 40000}, window: month}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		r := kit.Run(t, append(os.Environ(), "HOME="+dir, "KUBECONFIG="+p.Kubeconfig), kit.Bin(t, "kubectl"), args...)
		if r.Code != 0 {
			t.Fatalf("kubectl %v: %d %s", args, r.Code, r.Output)
		}
		return r.Output
	}
	kubectl("apply", "-f", manifest)
	editor := p.REST(t, "default", "editor", "platform-editor")
	editor.Chat(map[string]any{"message": "hello", "maxTokens": 100}, http.StatusOK)
	row := regexp.MustCompile(`(?m)^NAME +SPENT +RESERVED +LIMIT +RENEWS +AGE\nmonth +[1-9]\d* +0 +40000 +\d{4}-\d\d-01T00:00:00Z `)
	if got := kubectl("get", "budgets"); !row.MatchString(got) {
		t.Errorf("kubectl get budgets:\n%s", got)
	}
	budgets := p.API().Budgets("default")
	money := &v1alpha1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "money"}, Spec: v1alpha1.BudgetSpec{
		Limit: v1alpha1.BudgetLimit{Cost: &v1alpha1.BudgetCost{Amount: "2.50", Currency: "EUR"}}, Window: v1alpha1.BudgetMonth,
	}}
	if _, err := budgets.Create(t.Context(), money, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	editor.Chat(map[string]any{"message": "hello", "maxTokens": 100}, http.StatusForbidden) // nobody knows what it costs
	unpriced := chatStream(editor, t.Context(), map[string]any{"message": "hello", "maxTokens": 100})
	if last := unpriced[len(unpriced)-1]; last.Error == nil || !strings.Contains(last.Error.Message, "BudgetUnpriced: Budget money limits the cost in EUR, and no price in EUR is in force for model scripted-1 of Provider default") {
		t.Errorf("a model without a price: %+v", last)
	}
	kubectl("patch", "provider", "default", "--type=merge", "-p", `{"spec":{"prices":[{"model":"*","effectiveFrom":"2026-01-01","currency":"EUR","input":"1","output":"1000"}]}}`)
	editor.Chat(map[string]any{"message": "hello", "maxTokens": 100}, http.StatusOK)
	if got := kubectl("get", "budget", "money"); !regexp.MustCompile(`(?m)^NAME +SPENT +RESERVED +LIMIT +RENEWS +AGE\nmoney +0\.0\d+ +0 +2\.5 EUR +\d{4}-\d\d-01T00:00:00Z `).MatchString(got) {
		t.Errorf("kubectl get budget money:\n%s", got)
	}
	b, err := budgets.Get(t.Context(), "month", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Spec.Limit.Tokens = new(b.Status.Spent + 1000)
	if _, err := budgets.Update(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	editor.Chat(map[string]any{"message": "hello", "maxTokens": 500}, http.StatusForbidden) // it never fits
	frames := chatStream(editor, t.Context(), map[string]any{"message": "hello", "maxTokens": 500})
	if last := frames[len(frames)-1]; last.Error == nil || last.Error.Code != "budget_exhausted" || !strings.Contains(last.Error.Message, v1alpha1.ReasonBudgetExhausted+": Budget month") {
		t.Errorf("stream: %+v", last)
	}
	for verb, want := range map[string]string{"get": "yes", "update": "no", "create": "no", "delete": "no"} {
		r := kit.Run(t, append(os.Environ(), "HOME="+dir, "KUBECONFIG="+p.Kubeconfig), kit.Bin(t, "kubectl"), "auth", "can-i", verb, "budgets", "--as", "system:serviceaccount:default:editor")
		if strings.TrimSpace(r.Output) != want {
			t.Errorf("an editor may %s: %s", verb, r.Output)
		}
	}
	if refused := kubectl("get", "budget", "month", "-o", "jsonpath={.status.conditions[0].type}={.status.conditions[0].status}"); refused != "Exhausted=False" {
		t.Errorf("condition: %s", refused)
	}
}
