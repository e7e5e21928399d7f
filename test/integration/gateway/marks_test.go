// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestMarks: nobody but the server says that a task answers an event of a gateway, or for whom a task is, be it created or applied.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	editor := s.REST(t, "default", "ed", "edit")
	const tasks = "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks"
	for what, metadata := range map[string]string{
		"annotation": `"annotations": {"` + v1alpha1.AnnotationGatewayEvent + `": "gev-x"}`,
		"label":      `"labels": {"` + v1alpha1.LabelGateway + `": "chat"}`,
		"requester":  `"annotations": {"` + v1alpha1.AnnotationRequestedByStamp + `": "x"}`,
	} {
		body := `{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": {"name": "a", ` + metadata + `}, "spec": {"type": "container", "command": ["true"]}}`
		for how, code := range map[string]func() (int, string){
			"created": func() (int, string) { a := editor.Post(tasks, body); return a.Code, a.Body },
			"applied": func() (int, string) {
				a := editor.With("Content-Type", string(types.ApplyYAMLPatchType)).Do("PATCH", tasks+"/a?fieldManager=ed&force=true", body)
				return a.Code, a.Body
			},
		} {
			if code, answer := code(); code != 422 || !strings.Contains(answer, "is set by the server") {
				t.Errorf("%s, %s: %d %s", what, how, code, answer)
			}
		}
	}
	plain := `{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": {"name": "b"}, "spec": {"type": "container", "command": ["true"]}}`
	apply := editor.With("Content-Type", string(types.ApplyYAMLPatchType))
	for _, want := range []int{201, 200} {
		if a := apply.Do("PATCH", tasks+"/b?fieldManager=ed", plain); a.Code != want || !strings.Contains(a.Body, v1alpha1.AnnotationRequestedBy) {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
}
