// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

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
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const measurementsOf = "/apis/core.platform.ai/v1alpha1/namespaces/%/usagemeasurements"

// TestUsageOfAnotherTenant: who may do everything in one namespace learns nothing about the usage of another one, by
// reports or measurements, natively or over REST, whatever the request names.
func TestUsageOfAnotherTenant(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, "turns: [{reply: {text: Hello.}}]")
	if _, err := p.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "hidden-task", Annotations: map[string]string{
			v1alpha1.LabelPrefix + "github-repository": "hidden/repo", v1alpha1.LabelPrefix + "monitor-item-kind": "issue", v1alpha1.LabelPrefix + "monitor-item-number": "7",
		}},
		Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "Say hello.", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}}},
	}
	if _, err := p.Tasks().Create(t.Context(), task, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("hidden-task", v1alpha1.TaskSucceeded)

	viewer, tenant := p.REST(t, "default", "viewer", "platform-viewer"), p.REST(t, "other", "operator", "platform-operator")
	measurements := func(ns string) string { return strings.ReplaceAll(measurementsOf, "%", ns) }
	var list v1alpha1.UsageMeasurementList
	if err := json.Unmarshal([]byte(viewer.Do("GET", measurements("default"), "").Want(t, 200).Body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Spec.TaskName != "hidden-task" || !list.Items[0].Status.Complete || list.Items[0].Status.InputTokens == nil {
		t.Fatalf("measurements: %+v", list.Items)
	}
	id := list.Items[0].Name
	var report struct{ Works []v1alpha1.UsageWork }
	if err := json.Unmarshal([]byte(viewer.Get("/api/v1/usage").Want(t, 200).Body), &report); err != nil || len(report.Works) != 1 {
		t.Fatalf("report: %+v, %v", report, err)
	}
	work, native := report.Works[0].ID, "/apis/core.platform.ai/v1alpha1/namespaces/%/usagereports"
	body := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"UsageReport","metadata":{"namespace":"default"},"spec":{"teams":["default"]}}`
	answers := map[string]host.Answer{
		"list":                tenant.Do("GET", measurements("default"), "").Want(t, 403),
		"get":                 tenant.Do("GET", measurements("default")+"/"+id, "").Want(t, 403),
		"list everywhere":     tenant.Do("GET", "/apis/core.platform.ai/v1alpha1/usagemeasurements", "").Want(t, 403),
		"get by id":           tenant.Do("GET", measurements("other")+"/"+id, "").Want(t, 404),
		"list of its own":     tenant.Do("GET", measurements("other"), "").Want(t, 200),
		"selector":            tenant.Do("GET", measurements("other")+"?fieldSelector=metadata.namespace%3Ddefault", "").Want(t, 200),
		"selector of a task":  tenant.Do("GET", measurements("other")+"?fieldSelector=spec.taskUID%3D"+string(list.Items[0].Spec.TaskUID), "").Want(t, 200),
		"report":              tenant.Do("POST", strings.ReplaceAll(native, "%", "default"), body).Want(t, 403),
		"report from outside": tenant.Do("POST", strings.ReplaceAll(native, "%", "other"), body).Want(t, 400),
		"REST, namespace":     tenant.Get("/api/v1/usage?namespace=default").Want(t, 403),
		"REST, teams":         tenant.Get("/api/v1/usage?teams=default&namespace=other").Want(t, 403),
		"REST, both teams":    tenant.Get("/api/v1/usage?teams=other,default").Want(t, 400),
		"REST, own":           tenant.Get("/api/v1/usage?namespace=other").Want(t, 200),
		"REST, work":          tenant.Get("/api/v1/usage/work/"+work+"?namespace=other").Want(t, 404),
		"REST, other":         tenant.Get("/api/v1/usage/other/unassociated?namespace=other").Want(t, 200),
	}
	for name, a := range answers {
		for _, secret := range []string{"hidden", id, "scripted-1", string(list.Items[0].Spec.TaskUID)} {
			if strings.Contains(a.Body, secret) && (secret != id || name != "get by id" && name != "get") {
				t.Errorf("%s shows %q: %s", name, secret, a.Body)
			}
		}
	}
	p.REST(t, "default", "monitor", "platform-approver").Do("GET", measurements("default"), "").Want(t, 403)
	p.REST(t, "default", "nobody", "").Do("GET", measurements("default"), "").Want(t, 403)
	// The admission of creates notices a namespace that does not exist before its identity is read.
	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "usage", "summary", "-n", "missing")
	if code == 0 || out != "" || !strings.Contains(errs, `namespaces "missing" not found`) {
		t.Errorf("a namespace that does not exist: %d %q %q", code, out, errs)
	}
	viewer.Do("DELETE", measurements("default")+"/"+id, "").Want(t, 403)
	viewer.Do("GET", measurements("default")+"?watch=true", "").Want(t, 403)
	if r := kit.Run(t, append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+p.Kubeconfig), kit.Bin(t, "kubectl"), "get", "um"); !regexp.MustCompile(
		`(?m)^NAME +TASK +SESSION +MODEL +STATE +INPUT +OUTPUT +GAP +AGE\n` + id + ` +hidden-task +scripted-1 +completed +\d+ +\d+ +`).MatchString(r.Output) {
		t.Errorf("kubectl get um: %s", r.Output)
	}
}
