// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestUsage: two tasks of one issue and one task without show the same totals in the native report, in REST and in the
// command, with their cost.
func TestUsage(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, "turns: [{reply: {text: Hello.}}]")
	ctx := t.Context()
	providers := p.API().Providers("default")
	kit.Must[*v1alpha1.Provider](t)(providers.Patch(ctx, "model", types.MergePatchType,
		[]byte(`{"spec":{"prices":[{"model":"*","effectiveFrom":"2020-01-01","currency":"USD","input":"1","output":"1"}]}}`), metav1.PatchOptions{}))
	for i, name := range []string{"plan", "implement", "alone"} {
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, Prompt: "Say hello.", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}},
		}}
		if i < 2 {
			task.Annotations = map[string]string{
				v1alpha1.LabelPrefix + "github-repository": "Owner/Repo", v1alpha1.LabelPrefix + "monitor-item-kind": "issue", v1alpha1.LabelPrefix + "monitor-item-number": "7",
			}
		}
		if _, err := p.Tasks().Create(ctx, task, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	u, err := p.API().UsageReports("default").Create(ctx, &v1alpha1.UsageReport{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := u.Status.Summary
	if s.WorkRequests != 1 || s.Calls != 2 || s.Attempts != 2 || s.Completeness != v1alpha1.UsageComplete || s.TotalTokens == nil || *s.TotalTokens == 0 || s.PRsOpened != nil {
		t.Fatalf("summary %+v", s)
	}
	if w := u.Status.Works[0]; w.Repository != "owner/repo" || w.Number != 7 || w.NamespaceUID == "" || len(w.Models) != 1 || w.Tasks != nil {
		t.Errorf("work %+v", w)
	}
	if o := u.Status.OtherWork[1]; o.Category != v1alpha1.UsageOtherRequests || o.TaskCount != 1 || o.Usage.Calls != 1 || *o.Usage.TotalTokens*2 != *s.TotalTokens {
		t.Errorf("other requests %+v", o)
	}
	if want := fmt.Sprintf("0.%06d", *s.TotalTokens); len(s.Cost.Amounts) != 1 || s.Cost.Amounts[0].Amount != strings.TrimRight(want, "0") {
		t.Errorf("cost %+v, want %s", s.Cost, want)
	}

	asOf := u.Status.Selection.AsOf
	viewer := p.REST(t, "default", "viewer", "platform-viewer")
	var rest struct {
		Summary v1alpha1.UsageSummaryOf
		Works   []v1alpha1.UsageWork
		Page    v1alpha1.UsagePage
	}
	if err := json.Unmarshal([]byte(viewer.Get("/api/v1/usage?teams=default&asOf="+asOf).Want(t, 200).Body), &rest); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*s, rest.Summary); d != "" {
		t.Errorf("REST differs (-native +REST):\n%s", d)
	}
	if d := cmp.Diff(u.Status.Works, rest.Works); d != "" {
		t.Errorf("REST differs (-native +REST):\n%s", d)
	}
	var detail struct{ Work v1alpha1.UsageWork }
	if err := json.Unmarshal([]byte(viewer.Get("/api/v1/usage/work/"+rest.Works[0].ID+"?asOf="+asOf).Want(t, 200).Body), &detail); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*s, detail.Work.Summary); d != "" || len(detail.Work.Tasks) != 2 || detail.Work.Tasks[0].TaskName == "alone" || detail.Work.Tasks[1].TaskName == "alone" || len(detail.Work.Tasks[0].Measurements) != 1 {
		t.Errorf("work request %+v %s", detail.Work, d)
	}

	viewer.Get("/api/v1/usage?kind=pr").Problem(t, 400, "kind: must be issue or pull_request")
	viewer.Get("/api/v1/usage?offset=0&limit=101").Problem(t, 400, "limit: must be between 1 and 100")
	viewer.Get("/api/v1/usage/other/everything").Problem(t, 404, "review_only, other_requests or unassociated")
	viewer.Get("/api/v1/usage/work/work-0").Problem(t, 404, "no work request")
	viewer.Get("/api/v1/usage?teams=default,other").Problem(t, 400, "several teams are not supported")
	p.REST(t, "default", "nobody", "").Get("/api/v1/usage").Problem(t, 403)

	out, errs, code := standalone.Command(ctx, p.Kubeconfig, "usage", "summary", "--as-of", asOf, "-o", "json")
	var said v1alpha1.UsageReportStatus
	if err := json.Unmarshal([]byte(out), &said); err != nil || code != 0 {
		t.Fatalf("%d %s %s %v", code, out, errs, err)
	}
	if d := cmp.Diff(s, said.Summary); d != "" {
		t.Errorf("the command differs (-native +command):\n%s", d)
	}
	out, _, code = standalone.Command(ctx, p.Kubeconfig, "usage", "summary", "--as-of", asOf, "--chart", "model")
	for _, want := range []string{fmt.Sprintf("Recorded tokens  %d", *s.TotalTokens), "PRs opened       Unavailable", "issue owner/repo#7", "No model calls", "scripted-1", "█"} {
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	out, errs, code = standalone.Command(ctx, p.Kubeconfig, "usage", "other", "everything")
	if code == 0 || out != "" || !strings.Contains(errs, "review_only, other_requests or unassociated") {
		t.Errorf("a report that is refused: %d %q %q", code, out, errs)
	}
}

// TestUsageLinks: a controller records that a task created a pull request and that it was merged; the report shows both. No
// role of users, and no worker, may record it.
func TestUsageLinks(t *testing.T) {
	t.Parallel()
	p := &standalone.Platform{T: t, Server: standalone.Start(t)}
	task, err := p.Tasks().Create(t.Context(), &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "publisher", Annotations: map[string]string{
			v1alpha1.LabelPrefix + "github-repository": "owner/repo", v1alpha1.LabelPrefix + "monitor-item-kind": "issue", v1alpha1.LabelPrefix + "monitor-item-number": "7",
		}},
		Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/apis/core.platform.ai/v1alpha1/namespaces/default/usagelinks"
	body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"UsageLink","spec":{"taskUID":%q,"repository":"owner/repo","number":8,"origin":"created","evidenceID":"d-1","state":"merged","mergedAt":"2026-01-01T00:00:00Z"}}`, task.UID)
	for _, role := range []string{"platform-viewer", "platform-editor", "platform-operator", "platform-approver", "admin"} {
		p.REST(t, "default", role, role).Post(path, body).Want(t, 403)
	}
	_, worker := p.RESTTask(t, "worker")
	worker.Post(path, body).Want(t, 403)
	report := func() *v1alpha1.UsageSummaryOf {
		t.Helper()
		u, err := p.API().UsageReports("default").Create(t.Context(), &v1alpha1.UsageReport{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return u.Status.Summary
	}
	if s := report(); s.PRsOpened != nil || s.PRsMerged != nil {
		t.Errorf("without a link: %+v", s)
	}
	if err := p.API().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if s := report(); s.PRsOpened == nil || *s.PRsOpened != 1 || *s.PRsMerged != 1 {
		t.Errorf("with a link: %+v", s)
	}
}
