// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// Rows with the metadata of objects have all of it but the managed fields. Whole objects are complete.
func TestRowsWithoutManagedFields(t *testing.T) {
	at := metav1.NewTime(time.Now().Truncate(time.Second))
	grace := int64(3)
	pod := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "a", GenerateName: "g", Namespace: "n", UID: "u", ResourceVersion: "7", Generation: 2, CreationTimestamp: at, DeletionTimestamp: &at,
		DeletionGracePeriodSeconds: &grace, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, Finalizers: []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}, Data: map[string]string{"text": "x"}}
	list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{pod, pod}}
	c := tableConvertor[*corev1.ConfigMap]{clock: clock.RealClock{}}
	for include, whole := range map[metav1.IncludeObjectPolicy]bool{"": false, metav1.IncludeMetadata: false, metav1.IncludeNone: false, metav1.IncludeObject: true} {
		table, err := c.ConvertToTable(t.Context(), list, &metav1.TableOptions{IncludeObject: include})
		if err != nil || len(table.Rows) != 2 {
			t.Fatalf("%q: %v, %v", include, table, err)
		}
		got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(table.Rows[1].Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		meta, _ := got["metadata"].(map[string]any)
		if _, has := meta["managedFields"]; has != whole {
			t.Errorf("%q: managed fields: %v, want %v", include, has, whole)
		}
		if _, has := got["data"]; has != whole {
			t.Errorf("%q: data: %v, want %v", include, has, whole)
		}
		if missing := 14 - len(meta); !whole && missing != 1 {
			t.Errorf("%q: %d members of the metadata are missing: %v", include, missing-1, meta)
		}
	}
	if pod.ManagedFields == nil || list.Items[0].ManagedFields == nil || strings.TrimSpace(list.Items[0].Name) == "" {
		t.Error("the objects were changed")
	}
}

// Texts of others are shown on one line, without what a terminal would obey.
func TestCellsAreClean(t *testing.T) {
	c := tableConvertor[*corev1.ConfigMap]{clock: clock.RealClock{}, whole: true, columns: []Column[*corev1.ConfigMap]{{Value: func(m *corev1.ConfigMap) any { return m.Data["text"] }}}}
	for in, want := range map[string]string{
		"plain ä":                         "plain ä",
		"\a\u009b2J\x00\x1b]0;x":          `\u0007\u009b2J\u0000\u001b]0;x`,
		"two\nlines\tsafe\u202etxt\u200b": `two lines safe\u202etxt\u200b`,
	} {
		if got := c.cells(&corev1.ConfigMap{Data: map[string]string{"text": in}}); got[0] != want {
			t.Errorf("%+q becomes %q, want %q", in, got[0], want)
		}
	}
}
