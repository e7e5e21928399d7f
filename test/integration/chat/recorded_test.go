// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestChatsAreRecorded: in a namespace that wants it, what a chat asked its model, and what the model answered, is found from the session
// and shown by the command to those who may read it.
func TestChatsAreRecorded(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, orchestrator)
	label := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelRecordRequests + `":"Full"}}}`)
	if _, err := p.Kubernetes(t).CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c := p.API()
	shown := ""
	kit.Await(t, "a chat to be recorded", func() bool { // the label is seen a little later
		_, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "chat", "run it")
		if code != 0 {
			t.Fatal(errs)
		}
		_, session, _ := strings.Cut(errs, "session ")
		session, _, _ = strings.Cut(strings.TrimSpace(session), "\n")
		list := kit.Must[*v1alpha1.UsageMeasurementList](t)(c.UsageMeasurements("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.sessionName=" + session}))
		for i := range list.Items {
			out, _, code := standalone.Command(t.Context(), p.Kubeconfig, "usage", "show", list.Items[i].Name)
			if code == 0 && strings.Contains(out, "[tool]") {
				shown = out
			}
		}
		return shown != ""
	})
	for _, want := range []string{"tools: ", "[user]\nrun it\n", "calls create_container_task\n", "\n[assistant]\nDone: chat-"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "usage", "requests")
	if code != 0 || !strings.Contains(out, "completed") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if _, err := p.As(t, "viewer", "platform-viewer").UsageMeasurements("default").GetRecording(t.Context(), strings.Fields(strings.SplitN(out, "\n", 3)[1])[0], metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer: %v", err)
	}
}
