// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const toolCallsPath = "/apis/core.platform.ai/v1alpha1/namespaces/default/toolcalls"

func toolCall(task, id, arguments string) string {
	return fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"ToolCall","spec":{"taskName":%q,"toolName":"file_read","callId":%q,"arguments":%s}}`, task, id, arguments)
}

// The calls of each attempt are judged again as the attempt made them, though models repeat the ids of calls. A call that is asked
// about twice is kept once. After the task is deleted, a new one of its name has none of them.
func TestCallsOfEachAttemptAreKept(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	task, _ := s.RESTTask(t, "t")
	tasks := s.Core(t).Tasks("default")
	for attempt := int32(1); attempt <= 2; attempt++ {
		worker := s.RESTWorker(t, task) // of a new run
		now := kit.Must[*v1alpha1.Task](t)(tasks.Get(t.Context(), "t", metav1.GetOptions{}))
		now.Status.Attempts = attempt
		kit.Must[*v1alpha1.Task](t)(tasks.UpdateStatus(t.Context(), now, metav1.UpdateOptions{}))
		call := toolCall("t", "call_1", fmt.Sprintf(`{"path":"of attempt %d"}`, attempt))
		for range 2 {
			worker.Post(toolCallsPath, call).Want(t, http.StatusCreated)
		}
		const events = "/internal/v1/events/default/task/t"
		worker.Post(events, fmt.Sprintf(`{"type":"WorkerStarted","content":{"attempt":%d}}`, attempt)).Want(t, http.StatusCreated)
		worker.Post(events, `{"type":"ToolCallStarted","toolName":"file_read","toolCallID":"call_1"}`).Want(t, http.StatusCreated)
	}
	kept := func() []string {
		t.Helper()
		var all []string
		for _, c := range kit.Must[*v1alpha1.TaskCallList](t)(tasks.GetCalls(t.Context(), "t", metav1.GetOptions{})).Calls {
			all = append(all, fmt.Sprintf("%d %s %s %s", c.Attempt, c.ToolName, c.CallID, c.Arguments.Raw))
		}
		return all
	}
	if d := cmp.Diff([]string{`1 file_read call_1 {"path":"of attempt 1"}`, `2 file_read call_1 {"path":"of attempt 2"}`}, kept()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: first}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [core.platform.ai], apiVersions: [v1alpha1], resources: [toolcalls], operations: [CREATE]}]}
  validations: [{expression: "object.spec.fileRead.path != 'of attempt 1'"}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "policy", "test", "--task", "t", "-f", file, "-o", "json")
	var judged struct {
		Calls []struct{ Source, Verdict string }
	}
	if err := json.Unmarshal([]byte(out), &judged); err != nil || code != 2 || fmt.Sprint(judged.Calls) != "[{record Denied} {record Allowed}]" {
		t.Errorf("judged again: %d %s %s", code, out, errs)
	}
	if err := tasks.Delete(t.Context(), "t", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.RESTTask(t, "t")
	if left := kept(); len(left) > 0 {
		t.Errorf("calls of the task before: %q", left)
	}
}

// On a full disk a call is judged as ever. It is not kept.
func TestCallsOnAFullDisk(t *testing.T) {
	volume := standalone.SmallVolume(t, 64)
	s := standalone.Start(t, func(o *standalone.Options) {
		o.DataDir = filepath.Join(volume, "data")
		o.DiskReserve.Quantity = resource.MustParse("16Mi")
	})
	_, worker := s.RESTTask(t, "t")
	worker.Post(toolCallsPath, toolCall("t", "early", `{}`)).Want(t, http.StatusCreated)
	standalone.FillVolume(t, filepath.Join(volume, "filler"), 4<<20) // what the store frees by itself does not make the reserve whole
	_, refusal := fillWithEvents(worker, "/internal/v1/events/default/task/t")
	refusal.Problem(t, http.StatusInsufficientStorage, "the disk of the server is full")
	worker.Post(toolCallsPath, toolCall("t", "late", `{}`)).Want(t, http.StatusCreated, `"verdict":"Allowed"`)
	calls := kit.Must[*v1alpha1.TaskCallList](t)(s.Core(t).Tasks("default").GetCalls(t.Context(), "t", metav1.GetOptions{})).Calls
	if len(calls) != 1 || calls[0].CallID != "early" {
		t.Errorf("kept calls: %+v", calls)
	}
}
