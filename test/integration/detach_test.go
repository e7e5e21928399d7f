// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

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
	t.Parallel()
	goOn := filepath.Join(t.TempDir(), "go")
	p, _ := withModel(t, strings.ReplaceAll(detachScript, "GO", goOn), func(o *standalone.Options) {
		o.AllowHostCommands, o.SandboxRead = true, append(o.SandboxRead, filepath.Dir(goOn))
	})
	p.team()
	agents := p.api().Agents("default")
	must[*v1alpha1.Agent](t)(agents.Patch(t.Context(), "chief", types.MergePatchType, []byte(`{"spec":{"tools":[{"name":"detach_task"}]}}`), metav1.PatchOptions{}))
	p.commission("boss", "Detach it.")
	p.awaitPhase("boss", v1alpha1.TaskSucceeded)
	if got := p.resultOf("boss"); got != "detached" {
		t.Errorf("the result is %q", got)
	}
	p.commission("other", "Leave it.")
	p.awaitTask("other", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	left := p.below("other")[0].Name
	p.awaitPhase(left, v1alpha1.TaskRunning)
	if out, errs, code := platformCommand(t.Context(), p.Kubeconfig, "task", "detach", "boss", left); code == 0 || !strings.Contains(errs, "was not delegated by task boss") {
		t.Errorf("with another parent: %d %s%s", code, out, errs)
	}
	if out, errs, code := platformCommand(t.Context(), p.Kubeconfig, "task", "detach", "other", left, "--reason", "it may go on"); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	p.awaitPhase("other", v1alpha1.TaskSucceeded)
	for _, parent := range []string{"boss", "other"} {
		child := p.below(parent)[0]
		if child.Status.Phase != v1alpha1.TaskRunning || !child.Status.Delegation.Detached || len(child.OwnerReferences) != 0 {
			t.Errorf("the child of %s is %s, owned by %v", parent, child.Status.Phase, child.OwnerReferences)
		}
		if noted := p.detached(child.Name); noted != 1 {
			t.Errorf("%d events of the child of %s say that it was detached", noted, parent)
		}
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.awaitPhase(left, v1alpha1.TaskSucceeded)
	p.awaitPhase(p.below("boss")[0].Name, v1alpha1.TaskSucceeded)
}

// detached returns how many events of a task say that it was detached for the reason of these tests.
func (p *platform) detached(task string) (n int) {
	p.t.Helper()
	for _, e := range p.eventsOf(task, v1alpha1.EventTaskPhaseChanged) {
		if c := string(e.Content.Raw); strings.Contains(c, v1alpha1.ReasonDetached) && strings.Contains(c, "it may go on") {
			n++
		}
	}
	return n
}

// On a full disk a child is not detached, not even in part. Once there is room, the same command detaches it.
func TestDetachOnAFullDisk(t *testing.T) {
	t.Parallel()
	goOn, volume, metrics := filepath.Join(t.TempDir(), "go"), small(t, 64), prometheus.NewRegistry()
	p, _ := withModel(t, strings.ReplaceAll(detachScript, "GO", goOn), func(o *standalone.Options) {
		o.DataDir, o.Metrics, o.DiskReserve.Quantity = filepath.Join(volume, "data"), metrics, resource.MustParse("16Mi")
		o.AllowHostCommands, o.SandboxRead = true, append(o.SandboxRead, filepath.Dir(goOn))
	})
	p.team()
	p.commission("boss", "Leave it.")
	p.awaitTask("boss", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	child := p.below("boss")[0].Name
	p.awaitPhase(child, v1alpha1.TaskRunning)
	filler := filepath.Join(volume, "filler")
	fillVolume(t, filler, 4<<20)
	p.awaitDiskFull(metrics)
	detach := func() (int, string) {
		out, errs, code := platformCommand(t.Context(), p.Kubeconfig, "task", "detach", "boss", child, "--reason", "it may go on")
		return code, out + errs
	}
	if code, said := detach(); code == 0 || !strings.Contains(said, "the disk of the server is full") {
		t.Errorf("on a full disk: %d %s", code, said)
	}
	if now := p.below("boss")[0]; now.Status.Delegation.Detached || len(now.OwnerReferences) != 1 || p.detached(child) > 0 {
		t.Errorf("after the refusal: owned by %v, %+v, %d events", now.OwnerReferences, now.Status.Delegation, p.detached(child))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.poll("room on the disk", func() bool { code, _ := detach(); return code == 0 })
	if n := p.detached(child); n != 1 {
		t.Errorf("%d events say that it was detached", n)
	}
	p.awaitPhase("boss", v1alpha1.TaskSucceeded)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.awaitPhase(child, v1alpha1.TaskSucceeded)
}
