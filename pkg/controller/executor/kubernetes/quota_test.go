// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// quotaOf returns the quota among the objects of a file.
func quotaOf(t *testing.T, file string) corev1.ResourceList {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		var q corev1.ResourceQuota
		switch err := d.Decode(&q); {
		case errors.Is(err, io.EOF):
			t.Fatalf("%s has no ResourceQuota", file)
		case err != nil:
			t.Fatal(err)
		case q.Kind == "ResourceQuota":
			return q.Spec.Hard
		}
	}
}

// TestDefaultSizeFitsTheQuota: as many runs of the default size as the shipped quota has Pods fit its memory.
func TestDefaultSizeFitsTheQuota(t *testing.T) {
	hard := quotaOf(t, "../../../../artifacts/examples/cluster/team.yaml")
	pods, most := hard.Pods(), hard[corev1.ResourceLimitsMemory]
	if pods.Value() < 2 || most.IsZero() {
		t.Fatalf("quota %v", hard)
	}
	for _, spec := range []v1alpha1.TaskSpec{
		{Type: v1alpha1.TaskTypeContainer, Image: "image", Command: []string{"true"}},
		{Type: v1alpha1.TaskTypeAI, Prompt: "p", AI: &v1alpha1.TaskAI{}},
	} {
		pod := testExecutor(t, nil).pod(runOf("t", spec))
		limit := resource.Quantity{} // as the quota counts it
		for i := range pod.Containers {
			limit.Add(*pod.Containers[i].Resources.Limits.Memory())
		}
		for i := range pod.InitContainers {
			if l := pod.InitContainers[i].Resources.Limits.Memory(); l.Cmp(limit) > 0 {
				limit = *l
			}
		}
		if all := limit.Value() * pods.Value(); limit.IsZero() || all > most.Value() {
			t.Errorf("%d runs of type %s need %d bytes, and the quota has %d", pods.Value(), spec.Type, all, most.Value())
		}
	}
}
