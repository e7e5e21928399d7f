// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/test/kit"
)

// TestUsageKilled kills the server, and the worker of a task, while a vendor has three requests: of the task, of a chat and
// of a client of the OpenAI API. Each leaves exactly one gap, which the report shows and never as zero, and what a Budget
// had reserved for them is spent, because nobody knows what the vendor did.
func TestUsageKilled(t *testing.T) {
	t.Parallel()
	asked, over := make(chan string, 100), make(chan struct{})
	vendor := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what arrived says who asks
		for _, who := range []string{"question-1", "question-2", "question-3"} {
			if strings.Contains(string(body), who) {
				asked <- who
			}
		}
		select { // no answer
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(vendor.Close)
	t.Cleanup(func() { close(over) })
	s := kit.StartServer(t, t.TempDir())
	c := newChatClient(t, s.Kubeconfig)
	c.answers(t, vendor.URL)
	api := c.api.CoreV1alpha1()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := api.Budgets("default").Create(ctx, &v1alpha1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.BudgetSpec{
		Limit: v1alpha1.BudgetLimit{Tokens: new(int64(10_000_000))}, Window: v1alpha1.BudgetMonth,
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	task, err := api.Tasks("default").Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "killed"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "question-1", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "default"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	send := c.clientOfVendorAPI(t)
	go func() { // ends with the server
		_, _ = api.Chats("default").Create(ctx, &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: "question-2"}}, metav1.CreateOptions{})
	}()
	go send(ctx, "question-3")
	for waiting := map[string]bool{"question-1": true, "question-2": true, "question-3": true}; len(waiting) > 0; {
		select {
		case who := <-asked:
			delete(waiting, who)
		case <-ctx.Done():
			t.Fatalf("the vendor got no request %v", waiting)
		}
	}
	b, err := api.Budgets("default").Get(ctx, "all", metav1.GetOptions{})
	if err != nil || b.Status.Reserved == 0 || b.Status.Spent != 0 {
		t.Fatalf("while the vendor is asked: %+v, %v", b, err)
	}
	reserved := b.Status.Reserved
	if err := killWorkerOf(s.DataDir, task); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart(t)

	raw := newClient(t, s.Kubeconfig)
	if ended, err := awaitEnd(ctx, raw, "killed"); err != nil || ended.Status.Phase != v1alpha1.TaskFailed {
		t.Fatalf("the task is %+v, %v", ended, err)
	}
	report, err := api.UsageReports("default").Create(ctx, &v1alpha1.UsageReport{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[v1alpha1.UsageCategory]int64{v1alpha1.UsageReviewOnly: 0, v1alpha1.UsageOtherRequests: 1, v1alpha1.UsageUnassociated: 2}
	for _, o := range report.Status.OtherWork {
		u, n := o.Usage, want[o.Category]
		if u.Measurements != n || u.MissingMeasurements != n || u.ReportedMeasurements != 0 || n > 0 && (u.InputTokens != nil || u.TotalTokens != nil || u.Completeness != v1alpha1.UsageUnavailable) {
			t.Errorf("%s: %+v, want %d gaps", o.Category, u, n)
		}
		delete(want, o.Category)
	}
	list, err := api.UsageMeasurements("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var gaps []string
	for i := range list.Items {
		gaps = append(gaps, fmt.Sprint(list.Items[i].Spec.TaskName, ": ", list.Items[i].Status.Gap))
	}
	if len(want) > 0 || len(gaps) != 3 || strings.Count(strings.Join(gaps, "\n"), usage.GapFinalUsage) != 3 {
		t.Errorf("gaps %q, not shown %v", gaps, want)
	}
	if b, err := api.Budgets("default").Get(ctx, "all", metav1.GetOptions{}); err != nil || b.Status.Reserved != 0 || b.Status.Spent != reserved {
		t.Errorf("after the restart: %+v, %v; %d were reserved", b.Status, err, reserved)
	}
}

// TestUsageStopped stops the server while a vendor has ten requests of clients. Its doors are closed first, then the answers arrive,
// and then its store is closed: the clients get them, and the next server knows what each of them used.
func TestUsageStopped(t *testing.T) {
	t.Parallel()
	const clients = 10
	asked, answer := make(chan struct{}, clients), make(chan struct{})
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-answer
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`)
	}))
	t.Cleanup(vendor.Close)
	s := kit.StartServer(t, t.TempDir())
	c := newChatClient(t, s.Kubeconfig)
	c.answers(t, vendor.URL)
	api := c.api.CoreV1alpha1()
	if _, err := api.Budgets("default").Create(t.Context(), &v1alpha1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.BudgetSpec{
		Limit: v1alpha1.BudgetLimit{Tokens: new(int64(10_000_000))}, Window: v1alpha1.BudgetMonth,
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	send, codes := c.clientOfVendorAPI(t), make(chan int, clients)
	for range clients {
		go func() { codes <- send(t.Context(), "question") }()
	}
	for range clients {
		<-asked
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop() }()
	kit.Await(t, "closed doors", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(c.config.Host, "https://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(answer)
	for range clients {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a client got %d", code)
		}
	}
	if err := <-stopped; err != nil || strings.Contains(s.Output(), "the store is closed") {
		t.Errorf("the server ended with %v\n%s", err, s.Output())
	}
	s.Restart(t)
	b, err := api.Budgets("default").Get(t.Context(), "all", metav1.GetOptions{})
	if err != nil || b.Status.Spent != clients*7 || b.Status.Reserved != 0 {
		t.Errorf("the Budget has %+v, %v", b, err)
	}
	report, err := api.UsageReports("default").Create(t.Context(), &v1alpha1.UsageReport{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range report.Status.OtherWork {
		if u := o.Usage; o.Category == v1alpha1.UsageUnassociated && (u.ReportedMeasurements != clients || u.MissingMeasurements+u.PartialMeasurements != 0 || u.TotalTokens == nil || *u.TotalTokens != clients*7) {
			t.Errorf("usage: %+v", u)
		}
	}
}

// clientOfVendorAPI returns what sends a message to the OpenAI API with the token of a ServiceAccount, and waits for the
// answer, whose status it returns; 0 for none.
func (c *chatClient) clientOfVendorAPI(t *testing.T) func(ctx context.Context, message string) int {
	t.Helper()
	const account = "client"
	meta := metav1.ObjectMeta{Name: account}
	if _, err := c.core.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.core.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: "default"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := c.core.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(c.config)
	cfg.BearerToken = token.Status.Token
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, message string) int {
		body := fmt.Sprintf(`{"model":"scripted-1","messages":[{"role":"user","content":%q}]}`, message)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.Host+"/openai/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return 0 // the test misses the request
		}
		req.Header.Set("X-Platform-Tools", "disabled")
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
}
