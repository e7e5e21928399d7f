// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// diary is a folder in which runs record the order in which they began. A run
// of the task named by hold does not end before the diary is opened. Two
// concurrent runs are recorded as such.
type diary string

func (d diary) script(hold string) string {
	return fmt.Sprintf(`cd %s
mkdir busy 2>/dev/null || echo "not alone:" >>order
echo "$PLATFORM_TASK_NAME" >>order
if [ "$PLATFORM_TASK_NAME" = %q ]; then while [ ! -e open ]; do sleep 0.05; done; fi
rmdir busy
echo '{"reason":"Completed","message":"done","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"
`, string(d), hold)
}

func (d diary) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(d), "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d diary) order(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(string(d), "order"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func waitsFor(reason string) func(*v1alpha1.Task) bool {
	return func(t *v1alpha1.Task) bool {
		c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason
	}
}

// Twelve short tasks of one priority share one slot. They take it in the order of their
// creation, one at a time, even if the server was restarted meanwhile.
func TestOneSlot(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*standalone.Options){
		v1alpha1.ReasonTaskLimitReached:          func(o *standalone.Options) { o.MaxRunning = 1 },
		v1alpha1.ReasonNamespaceTaskLimitReached: func(o *standalone.Options) { o.MaxRunningPerNamespace = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := diary(t.TempDir())
			p := standalone.NewPlatform(t, d.script("z-first"), configure)
			p.Run("z-first")
			atWork(p, "z-first")
			want := []string{"z-first"}
			for i := range 11 {
				want = append(want, fmt.Sprintf("task-%02d", 50-i))
				p.Run(want[i+1])
			}
			for _, waits := range want[1:] {
				k, _ := p.Await(waits, waitsFor(name))
				if k.Status.Phase != v1alpha1.TaskPending || !strings.Contains(k.Status.Message, "runs its limit of 1 tasks") {
					t.Errorf("%s: %s: %s", waits, k.Status.Phase, k.Status.Message)
				}
			}
			p.Restart(t)
			d.open(t)
			for _, name := range want {
				k := p.AwaitPhase(name, v1alpha1.TaskSucceeded)
				if meta.IsStatusConditionTrue(k.Status.Conditions, v1alpha1.ConditionWaitingToStart) {
					t.Errorf("%s is over and waits: %+v", name, k.Status.Conditions)
				}
			}
			if got := d.order(t); !slices.Equal(got, want) {
				t.Errorf("order %v, want %v", got, want)
			}
			events, err := p.Kubernetes(t).CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			warned := map[string]int{}
			for _, e := range events.Items {
				if e.Reason == v1alpha1.ReasonNamespaceTaskLimitReached && e.Type == "Warning" && e.InvolvedObject.Kind == "Task" {
					warned[e.InvolvedObject.Name]++
				}
			}
			for _, waited := range want[1:] {
				if n := warned[waited]; name == v1alpha1.ReasonNamespaceTaskLimitReached && n != 1 || name != v1alpha1.ReasonNamespaceTaskLimitReached && n != 0 {
					t.Errorf("%s has %d warnings", waited, n)
				}
			}
		})
	}
}

// Tasks that many clients create at once start in the order of priority, and of creation within one priority, also if
// the server is restarted while they wait. None is lost. A change of a waiting task's priority counts.
func TestPriorityOfManyTasks(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const tasks, clients = 24, 6
	d := diary(t.TempDir())
	p := standalone.NewPlatform(t, d.script("first"), func(o *standalone.Options) { o.MaxRunning = 1 })
	p.Run("first")
	atWork(p, "first")
	// Further apart than what ageing adds before a task is promoted.
	priorities := []int32{0, 400, 800}
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := c; i < tasks; i += clients {
				k := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t-%02d", i)}, Spec: v1alpha1.TaskSpec{
					Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Priority: &priorities[i%len(priorities)],
				}}
				if _, err := p.Tasks().Create(t.Context(), k, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var want []*v1alpha1.Task
	for i := range tasks {
		k, _ := p.Await(fmt.Sprintf("t-%02d", i), waitsFor(v1alpha1.ReasonTaskLimitReached))
		want = append(want, k)
	}
	last := want[tasks-1]
	last.Spec.Priority = new(int32(600))
	if _, err := p.Tasks().Patch(t.Context(), last.Name, types.MergePatchType, []byte(`{"spec":{"priority":600}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(want, func(a, b *v1alpha1.Task) int {
		return cmp.Or( // tasks that are created at the same moment may have one revision
			cmp.Compare(*b.Spec.Priority, *a.Spec.Priority), cmp.Compare(a.Status.CreationRevision, b.Status.CreationRevision),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	p.Restart(t)
	d.open(t)
	names := []string{"first"}
	for _, k := range want {
		p.AwaitPhase(k.Name, v1alpha1.TaskSucceeded)
		names = append(names, k.Name)
	}
	if got := d.order(t); !slices.Equal(got, names) {
		t.Errorf("order %v, want %v", got, names)
	}
}

// atWork waits until a run is at work.
func atWork(p *standalone.Platform, name string) {
	p.T.Helper()
	p.Await(name, func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated)
	})
}

// Tasks of a session that are created within the same second run in the order of their creation.
func TestSessionOrderWithinASecond(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	d := diary(t.TempDir())
	p := standalone.NewPlatform(t, d.script(""))
	var want []string
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		want = append(want, name)
		p.Run(name, func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "s", Create: true} })
	}
	for _, name := range want {
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	if got := d.order(t); !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// Only the server determines the place of a task among others.
func TestCreationRevision(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, "exit 0")
	var last int64
	var k *v1alpha1.Task
	for i := range 3 {
		k = &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t-%d", 3-i)}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Schedule: "@yearly",
		}}
		k.Status.CreationRevision = 1
		var err error
		if k, err = p.Tasks().Create(t.Context(), k, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if k.Status.CreationRevision <= max(last, 1) {
			t.Errorf("%s has revision %d, that before it %d", k.Name, k.Status.CreationRevision, last)
		}
		last = k.Status.CreationRevision
	}
	for _, patch := range []string{`{"status":{"creationRevision":1}}`, `{"status":{"creationRevision":null}}`} {
		got, err := p.Tasks().Patch(t.Context(), k.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil || got.Status.CreationRevision != last {
			t.Errorf("%s: %v: %+v", patch, err, got.Status)
		}
	}
}
