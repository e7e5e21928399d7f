// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/test/scene"
)

// leastDelegated is how many tasks there are at least: a task that delegates again what failed does so for one at a time, so
// of two that failed at once one is replaced.
const leastDelegated = scene.Delegated - 4

// sceneKills returns how often something is killed while the scene is played: KILLS, by default 4, because a server that was
// killed several times is started again later and later.
func sceneKills(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("KILLS"), "4"))
	if err != nil || n < 1 {
		t.Fatalf("KILLS: %q: must be a number and at least 1", os.Getenv("KILLS"))
	}
	return n
}

// TestCoordinationUnderKills plays the scene of coordination while the API server, the controller and workers are killed at
// random moments. What fails is delegated again, and the root is tried again, so it ends as it should; each attempt was begun
// once, and one watch of the root has all of it in order.
func TestCoordinationUnderKills(t *testing.T) {
	p := newTeam(t) // test/robustness plays it on one machine
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ctx, cancel := context.WithTimeout(t.Context(), sceneTime)
	defer cancel()
	play := open(ctx, t, p, scene.Slow(p.Image()), &v1alpha1.RetryPolicy{MaxRetries: 100, InitialDelay: v1alpha1.DurationOf(time.Millisecond)})
	ended, enough := make(chan error, 1), make(chan struct{})
	go func() { ended <- play.decide(ctx, enough) }()
	killed := map[string]int{}
	for n, kills := 0, sceneKills(t); n < kills; {
		select {
		case err := <-ended:
			t.Fatalf("the root has ended after %d kills: %v\n%s", n, err, p.Shell(t, "platform task tree root").Output)
		case <-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond)))): // at what moments of a real history something is killed is what is tested
		}
		victim := "worker"
		switch random.IntN(20) {
		case 0, 1, 2, 3:
			victim = "server"
			p.killPod(t, "platform-apiserver")
			p.replacePods(t, "platform-apiserver")
			p.awaitServer(t)
		case 4, 5, 6:
			victim = "controller"
			p.killPod(t, "platform-controller")
			p.replacePods(t, "platform-controller")
		default:
			if !play.killSome(ctx, t, random) {
				continue // nobody was at work
			}
		}
		killed[victim]++
		n++
	}
	close(enough)
	t.Logf("killed %v", killed)
	play.end(t, <-ended)
	tasks, events := play.tree(ctx, t)
	for _, err := range play.told(events, checkKilled(t, tasks, events)) {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(p.Shell(t, "platform task tree root").Output)
	}
}

// killSome kills the processes of some run of the tree, if there is one.
func (p *play) killSome(ctx context.Context, t *testing.T, random *rand.Rand) bool {
	t.Helper()
	var list *v1alpha1.TaskList
	if err := insist(ctx, func(ctx context.Context) (ok bool, err error) {
		list, err = p.tasks.List(ctx, metav1.ListOptions{FieldSelector: "rootTask=root,status.phase=Running"})
		return true, err
	}); err != nil {
		t.Fatal(err)
	}
	random.Shuffle(len(list.Items), func(i, j int) { list.Items[i], list.Items[j] = list.Items[j], list.Items[i] })
	for i := range list.Items {
		if killRun(t, runspec.EnvTaskUID+"="+string(list.Items[i].UID)) > 0 {
			return true
		}
	}
	return false
}

// checkKilled checks the tasks and their streams, and returns the parents of the delegated tasks.
func checkKilled(t *testing.T, tasks []v1alpha1.Task, events []v1alpha1.ExecutionEvent) map[string]string {
	t.Helper()
	counts, parents := map[v1alpha1.TaskPhase]int{}, map[string]string{}
	for i := range tasks {
		x := &tasks[i]
		counts[x.Status.Phase]++
		if d := x.Status.Delegation; d != nil {
			parents[x.Name] = d.Parent
			if x.Status.Attempts > 1 {
				t.Errorf("%s, which may be tried once, was tried %d times", x.Name, x.Status.Attempts)
			}
		} else if x.Status.Phase != v1alpha1.TaskSucceeded || !strings.HasPrefix(x.Status.Message, "goal complete after ") {
			t.Errorf("the root is %s: %s", x.Status.Phase, x.Status.Message)
		}
		if err := checkAttempts(events, x); err != nil {
			t.Error(err)
		}
	}
	if len(parents) < leastDelegated || counts[v1alpha1.TaskFailed] == 0 || counts[v1alpha1.TaskCancelled] == 0 {
		t.Errorf("%d delegated tasks: %v", len(parents), counts)
	}
	return parents
}

// checkAttempts checks the events of one task among those of its tree as walk does, and that no attempt was begun twice.
func checkAttempts(all []v1alpha1.ExecutionEvent, task *v1alpha1.Task) error {
	begun := map[string]bool{}
	err := walk(all, task, func(e *v1alpha1.ExecutionEvent) error {
		if e.Type != v1alpha1.EventTaskStarted {
			return nil
		}
		if begun[e.Summary] {
			return fmt.Errorf("%s was begun twice: %s", task.Name, e.Summary)
		}
		begun[e.Summary] = true
		return nil
	})
	if err == nil && len(begun) > int(task.Status.Attempts) {
		err = fmt.Errorf("%s is %s (%s); %d attempts of %d were begun", task.Name, task.Status.Phase, task.Status.Message, len(begun), task.Status.Attempts)
	}
	return err
}
