// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// recordedSecret is written by the model, and printed by the program that it runs.
const recordedSecret = "ghp_0123456789abcdefghijklmnopqrstuvwxAB"

const recordedScript = `
models: [scripted-1]
turns:
- name: calls
  match: {turn: 1}
  reply:
    text: I will look.
    toolCalls:
    - {name: code_exec, arguments: {language: bash, code: "echo found it; echo ` + recordedSecret + `"}}
- name: end
  match: {turn: 2}
  reply: {text: It is done.}
`

// TestRecording: whoever may read recordings finds which command an agent ran, what it printed, and what the model was asked, by the seq
// of the event, through the API and the command. Nobody else does, no event has it, no secret is in it, and an agent may have it off or
// as digests.
func TestRecording(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, recordedScript)
	c := p.API()
	for _, mode := range []v1alpha1.RecordingMode{"", v1alpha1.RecordingDigests, v1alpha1.RecordingOff} {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "agent" + strings.ToLower(string(mode))}, Spec: v1alpha1.AgentSpec{
			ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []v1alpha1.AgentTool{{Name: "code_exec"}},
		}}
		if mode != "" {
			a.Spec.Recording = &v1alpha1.AgentRecording{Mode: mode}
		}
		kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Create(t.Context(), a, metav1.CreateOptions{}))
		p.Give("run"+strings.ToLower(string(mode)), a.Name, "Look for it.", v1alpha1.TaskSucceeded)
	}
	seq := func(task string, typ v1alpha1.EventType, n int) string {
		t.Helper()
		return strconv.FormatInt(p.EventsOf(task, typ)[n].Seq, 10)
	}
	entry := func(c typed.CoreV1alpha1Interface, task, seq string) (*v1alpha1.RecordedEntry, error) {
		var r v1alpha1.TaskRecording
		if err := c.RESTClient().Get().Namespace("default").Resource("tasks").Name(task).Suffix("recording", seq).Do(t.Context()).Into(&r); err != nil {
			return nil, err
		}
		return &r.Entries[0], nil
	}

	asked := kit.Must[*v1alpha1.RecordedEntry](t)(entry(c, "run", seq("run", v1alpha1.EventModelRequestStarted, 1)))
	var roles []string
	for _, m := range asked.Conversation {
		roles = append(roles, m.Message.Role)
	}
	if got := strings.Join(roles, " "); !strings.HasSuffix(got, "user assistant tool") || asked.Conversation[len(roles)-3].Message.Text != "Look for it." || asked.Tools == nil {
		t.Errorf("the second request: %s, %+v", got, asked)
	}
	call := kit.Must[*v1alpha1.RecordedEntry](t)(entry(c, "run", seq("run", v1alpha1.EventToolCallStarted, 0)))
	if call.ToolCall == nil || call.ToolCall.Name != "code_exec" || !strings.Contains(call.ToolCall.Arguments, "echo found it") {
		t.Errorf("the call: %+v", call.ToolCall)
	}
	answer := kit.Must[*v1alpha1.RecordedEntry](t)(entry(c, "run", seq("run", v1alpha1.EventModelRequestCompleted, 1)))
	if answer.Message.Message.Text != "It is done." {
		t.Errorf("the answer: %+v", answer.Message)
	}
	for _, args := range [][]string{{"show", "run", seq("run", v1alpha1.EventToolCallCompleted, 0)}, {"transcript", "run"}} {
		out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, append([]string{"task"}, args...)...)
		if code != 0 || !strings.Contains(out, "    found it\n") || strings.Contains(out, recordedSecret) {
			t.Errorf("platform task %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
		}
	}

	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "search", "run", "FOUND")
	if want := seq("run", v1alpha1.EventToolCallCompleted, 0) + "\tToolCallCompleted\t"; code != 0 || !strings.Contains(out, want) || strings.Count(out, "\n") != 2 {
		t.Errorf("platform task search: exit code %d\n%s%s, want %q", code, out, errs, want)
	}
	if _, errs, code = standalone.Command(t.Context(), p.Kubeconfig, "task", "search", "run", " "); code == 0 || !strings.Contains(errs, "q: must be a text") {
		t.Errorf("platform task search for nothing: exit code %d, %s", code, errs)
	}

	out, errs, code = standalone.Command(t.Context(), p.Kubeconfig, "task", "diff", "run", "rundigests")
	if code != 0 || !strings.Contains(out, "\n-It is done.\n") || !strings.Contains(out, "\n+[assistant] (only its digest is kept: ") {
		t.Errorf("platform task diff: exit code %d\n%s%s", code, out, errs)
	}

	digest := kit.Must[*v1alpha1.RecordedEntry](t)(entry(c, "rundigests", seq("rundigests", v1alpha1.EventModelRequestCompleted, 0)))
	if m := digest.Message; m.Omitted != "DigestsOnly" || len(m.Digest) != 64 || m.Bytes == 0 || m.Message.Text != "" {
		t.Errorf("digests alone: %+v", m)
	}
	if off := kit.Must[*v1alpha1.TaskRecording](t)(c.Tasks("default").GetRecording(t.Context(), "runoff", metav1.GetOptions{})); len(off.Entries) > 0 {
		t.Errorf("an agent without a recording has %+v", off.Entries)
	}
	for role, may := range map[string]bool{"platform-viewer": false, "platform-approver": false, "platform-editor": true} {
		if _, err := entry(p.As(t, role+"-person", role), "run", seq("run", v1alpha1.EventToolCallStarted, 0)); apierrors.IsForbidden(err) == may {
			t.Errorf("%s: %v", role, err)
		}
	}
	events := c.RESTClient().Get().Namespace("default").Resource("executionevents").Do(t.Context())
	if raw := kit.Must[[]byte](t)(events.Raw()); strings.Contains(string(raw), "found it") || strings.Contains(string(raw), `"recording":`) {
		t.Error("events have what is recorded")
	}
	notInFiles(t, p.DataDir, recordedSecret)

	fork := kit.Must[*v1alpha1.TaskFork](t)(c.Tasks("default").Fork(t.Context(), "run", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "other"}}, metav1.CreateOptions{}))
	of := kit.Must[*v1alpha1.TaskRecording](t)(c.Tasks("default").GetRecording(t.Context(), fork.Status.NewTaskName, metav1.GetOptions{})).ForkedFrom
	if of == nil || of.Task != "run" || of.Seq != fork.Status.AfterSeq {
		t.Errorf("the recording of a fork names %+v", of)
	}

	uid := kit.Must[*v1alpha1.Task](t)(p.Tasks().Get(t.Context(), "run", metav1.GetOptions{})).UID
	if err := p.Tasks().Delete(t.Context(), "run", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the recording to go with the task", func() bool {
		_, err := entry(c, "run", "1")
		return apierrors.IsNotFound(err)
	})
}

// notInFiles fails if a file of the store or of a run has the text.
func notInFiles(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), text) {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}
