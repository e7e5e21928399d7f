// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

const measurementsOf = "/apis/core.platform.ai/v1alpha1/namespaces/%/usagemeasurements"

// TestUsageOfAnotherTenant: who may do everything in one namespace learns nothing about the usage of another one, by
// reports or measurements, natively or over REST, whatever the request names.
func TestUsageOfAnotherTenant(t *testing.T) {
	t.Parallel()
	p, _ := withModel(t, "turns: [{reply: {text: Hello.}}]")
	if _, err := p.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "hidden-task", Annotations: map[string]string{
			v1alpha1.LabelPrefix + "github-repository": "hidden/repo", v1alpha1.LabelPrefix + "monitor-item-kind": "issue", v1alpha1.LabelPrefix + "monitor-item-number": "7",
		}},
		Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "Say hello.", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}}},
	}
	if _, err := p.tasks().Create(t.Context(), task, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.awaitPhase("hidden-task", v1alpha1.TaskSucceeded)

	viewer, tenant := restAs(t, p.Server, "default", "viewer", "platform-viewer"), restAs(t, p.Server, "other", "operator", "platform-operator")
	measurements := func(ns string) string { return strings.ReplaceAll(measurementsOf, "%", ns) }
	var list v1alpha1.UsageMeasurementList
	if err := json.Unmarshal([]byte(viewer.do("GET", measurements("default"), "").want(t, 200).body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Spec.TaskName != "hidden-task" || !list.Items[0].Status.Complete || list.Items[0].Status.InputTokens == nil {
		t.Fatalf("measurements: %+v", list.Items)
	}
	id := list.Items[0].Name
	var report struct{ Works []v1alpha1.UsageWork }
	if err := json.Unmarshal([]byte(viewer.get("/api/v1/usage").want(t, 200).body), &report); err != nil || len(report.Works) != 1 {
		t.Fatalf("report: %+v, %v", report, err)
	}
	work, native := report.Works[0].ID, "/apis/core.platform.ai/v1alpha1/namespaces/%/usagereports"
	body := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"UsageReport","metadata":{"namespace":"default"},"spec":{"teams":["default"]}}`
	answers := map[string]answer{
		"list":                tenant.do("GET", measurements("default"), "").want(t, 403),
		"get":                 tenant.do("GET", measurements("default")+"/"+id, "").want(t, 403),
		"list everywhere":     tenant.do("GET", "/apis/core.platform.ai/v1alpha1/usagemeasurements", "").want(t, 403),
		"get by id":           tenant.do("GET", measurements("other")+"/"+id, "").want(t, 404),
		"list of its own":     tenant.do("GET", measurements("other"), "").want(t, 200),
		"selector":            tenant.do("GET", measurements("other")+"?fieldSelector=metadata.namespace%3Ddefault", "").want(t, 200),
		"selector of a task":  tenant.do("GET", measurements("other")+"?fieldSelector=spec.taskUID%3D"+string(list.Items[0].Spec.TaskUID), "").want(t, 200),
		"report":              tenant.do("POST", strings.ReplaceAll(native, "%", "default"), body).want(t, 403),
		"report from outside": tenant.do("POST", strings.ReplaceAll(native, "%", "other"), body).want(t, 400),
		"REST, namespace":     tenant.get("/api/v1/usage?namespace=default").want(t, 403),
		"REST, teams":         tenant.get("/api/v1/usage?teams=default&namespace=other").want(t, 403),
		"REST, both teams":    tenant.get("/api/v1/usage?teams=other,default").want(t, 400),
		"REST, own":           tenant.get("/api/v1/usage?namespace=other").want(t, 200),
		"REST, work":          tenant.get("/api/v1/usage/work/"+work+"?namespace=other").want(t, 404),
		"REST, other":         tenant.get("/api/v1/usage/other/unassociated?namespace=other").want(t, 200),
	}
	for name, a := range answers {
		for _, secret := range []string{"hidden", id, "scripted-1", string(list.Items[0].Spec.TaskUID)} {
			if strings.Contains(a.body, secret) && (secret != id || name != "get by id" && name != "get") {
				t.Errorf("%s shows %q: %s", name, secret, a.body)
			}
		}
	}
	restAs(t, p.Server, "default", "monitor", "platform-approver").do("GET", measurements("default"), "").want(t, 403)
	restAs(t, p.Server, "default", "nobody", "").do("GET", measurements("default"), "").want(t, 403)
	// The admission of creates notices a namespace that does not exist before its identity is read.
	out, errs, code := platformCommand(t.Context(), p.Kubeconfig, "usage", "summary", "-n", "missing")
	if code == 0 || out != "" || !strings.Contains(errs, `namespaces "missing" not found`) {
		t.Errorf("a namespace that does not exist: %d %q %q", code, out, errs)
	}
	viewer.do("DELETE", measurements("default")+"/"+id, "").want(t, 403)
	viewer.do("GET", measurements("default")+"?watch=true", "").want(t, 403)
	if r := kit.Run(t, append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+p.Kubeconfig), kit.Bin(t, "kubectl"), "get", "um"); !regexp.MustCompile(
		`(?m)^NAME +TASK +SESSION +MODEL +STATE +INPUT +OUTPUT +GAP +AGE\n` + id + ` +hidden-task +scripted-1 +completed +\d+ +\d+ +`).MatchString(r.Output) {
		t.Errorf("kubectl get um: %s", r.Output)
	}
}
