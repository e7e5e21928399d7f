// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// detachScript: a chief starts a command, and detaches it once it runs or leaves that to a person.
const detachScript = `
models: [scripted-1]
turns:
- name: start and leave it
  match: {turn: 1, lastRole: user, contains: Leave it}
  reply: {toolCalls: [{name: create_container_task, arguments: {command: [sh, -c, "while [ ! -e GO ]; do sleep 0.05; done; echo done"]}}, {name: check_messages, arguments: {}}]}
- name: start
  match: {turn: 1, lastRole: user, offered: [detach_task]}
  reply: {toolCalls: [{name: create_container_task, arguments: {command: [sh, -c, "while [ ! -e GO ]; do sleep 0.05; done; echo done"]}}]}
- name: leave it
  match: {turn: 2, lastRole: tool, contains: no new messages}
  reply: {text: left}
- name: detached
  match: {lastRole: tool, contains: '"status":"detached"'}
  reply: {text: detached}
- name: it runs
  match: {lastRole: tool, contains: '"phase":"Running"'}
  reply: {toolCalls: [{name: detach_task, arguments: {task_name: "{{ .Results.create_container_task.data.name }}", reason: it may go on}}]}
- name: wait
  match: {lastRole: tool}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.create_container_task.data.name }}"], timeout: 1s}}]}
`

// TestDetach: a coordinator lets a child go on, and a person another one; their parents then end before they do. A command
// that names the wrong parent changes nothing.
func TestDetach(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	goOn := filepath.Join(t.TempDir(), "go")
	p, _ := standalone.WithModel(t, strings.ReplaceAll(detachScript, "GO", goOn), func(o *standalone.Options) {
		o.AllowHostCommands, o.SandboxRead = true, append(o.SandboxRead, filepath.Dir(goOn))
	})
	p.Team()
	agents := p.API().Agents("default")
	kit.Must[*v1alpha1.Agent](t)(agents.Patch(t.Context(), "chief", types.MergePatchType, []byte(`{"spec":{"tools":[{"name":"detach_task"}]}}`), metav1.PatchOptions{}))
	commission(p, "boss", "Detach it.")
	p.AwaitPhase("boss", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("boss"); got != "detached" {
		t.Errorf("the result is %q", got)
	}
	commission(p, "other", "Leave it.")
	p.AwaitTask("other", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	left := p.Below("other")[0].Name
	p.AwaitPhase(left, v1alpha1.TaskRunning)
	if out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "detach", "boss", left); code == 0 || !strings.Contains(errs, "was not delegated by task boss") {
		t.Errorf("with another parent: %d %s%s", code, out, errs)
	}
	if out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "detach", "other", left, "--reason", "it may go on"); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	p.AwaitPhase("other", v1alpha1.TaskSucceeded)
	for _, parent := range []string{"boss", "other"} {
		child := p.Below(parent)[0]
		if child.Status.Phase != v1alpha1.TaskRunning || !child.Status.Delegation.Detached || len(child.OwnerReferences) != 0 {
			t.Errorf("the child of %s is %s, owned by %v", parent, child.Status.Phase, child.OwnerReferences)
		}
		if noted := detached(p, child.Name); noted != 1 {
			t.Errorf("%d events of the child of %s say that it was detached", noted, parent)
		}
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase(left, v1alpha1.TaskSucceeded)
	p.AwaitPhase(p.Below("boss")[0].Name, v1alpha1.TaskSucceeded)
}

// detached returns how many events of a task say that it was detached for the reason of these tests.
func detached(p *standalone.Platform, task string) (n int) {
	p.T.Helper()
	for _, e := range p.EventsOf(task, v1alpha1.EventTaskPhaseChanged) {
		if c := string(e.Content.Raw); strings.Contains(c, v1alpha1.ReasonDetached) && strings.Contains(c, "it may go on") {
			n++
		}
	}
	return n
}

// On a full disk a child is not detached, not even in part. Once there is room, the same command detaches it.
func TestDetachOnAFullDisk(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	goOn, volume, metrics := filepath.Join(t.TempDir(), "go"), standalone.SmallVolume(t, 64), prometheus.NewRegistry()
	p, _ := standalone.WithModel(t, strings.ReplaceAll(detachScript, "GO", goOn), func(o *standalone.Options) {
		o.DataDir, o.Metrics, o.DiskReserve.Quantity = filepath.Join(volume, "data"), metrics, resource.MustParse("16Mi")
		o.AllowHostCommands, o.SandboxRead = true, append(o.SandboxRead, filepath.Dir(goOn))
	})
	p.Team()
	commission(p, "boss", "Leave it.")
	p.AwaitTask("boss", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	child := p.Below("boss")[0].Name
	p.AwaitPhase(child, v1alpha1.TaskRunning)
	filler := filepath.Join(volume, "filler")
	standalone.FillVolume(t, filler, 4<<20)
	standalone.AwaitDiskFull(t, metrics)
	detach := func() (int, string) {
		out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "detach", "boss", child, "--reason", "it may go on")
		return code, out + errs
	}
	if code, said := detach(); code == 0 || !strings.Contains(said, "the disk of the server is full") {
		t.Errorf("on a full disk: %d %s", code, said)
	}
	if now := p.Below("boss")[0]; now.Status.Delegation.Detached || len(now.OwnerReferences) != 1 || detached(p, child) > 0 {
		t.Errorf("after the refusal: owned by %v, %+v, %d events", now.OwnerReferences, now.Status.Delegation, detached(p, child))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "room on the disk", func() bool { code, _ := detach(); return code == 0 })
	if n := detached(p, child); n != 1 {
		t.Errorf("%d events say that it was detached", n)
	}
	p.AwaitPhase("boss", v1alpha1.TaskSucceeded)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase(child, v1alpha1.TaskSucceeded)
}
