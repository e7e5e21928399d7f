// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/test/harness"
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
	api, err := typed.NewForConfig(p.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	play := &play{place: p, tasks: api.Tasks(p.Namespace()), approvals: api.Approvals(p.Namespace())}
	model := cast(t, p, scene.Slow(p.Image()), scene.Agents())
	play.begin(ctx, t, &v1alpha1.RetryPolicy{MaxRetries: 100, InitialDelay: v1alpha1.DurationOf(time.Millisecond)})
	start := time.Now()
	complaints := filepath.Join(t.TempDir(), "complaints")
	watch := harness.Start(t, p.Env(t), "bash", "-c", "exec platform task watch root --tree -o json 2>"+complaints)
	ended, enough := make(chan error, 1), make(chan struct{})
	go func() { ended <- play.decide(ctx, enough) }()
	killed := map[string]int{}
	for n, kills := 0, sceneKills(t); n < kills; {
		select {
		case err := <-ended:
			t.Fatalf("the root has ended after %d kills: %v\n%s", n, err, p.Shell(t, "platform task tree root").Output)
		case <-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond)))):
		}
		victim := "worker"
		switch random.IntN(20) {
		case 0, 1, 2, 3:
			victim = "server"
			p.KillServer(t)
		case 4, 5, 6:
			victim = "controller"
			p.KillController(t)
		default:
			if !play.killSome(ctx, t, random) {
				continue // nobody was at work
			}
		}
		killed[victim]++
		n++
	}
	close(enough)
	t.Logf("killed %v within %s", killed, time.Since(start).Round(time.Second))
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, p.Shell(t, "platform task tree root").Output)
	}
	t.Logf("the root has ended after %s", time.Since(start).Round(time.Second))
	if err := watch.Wait(); err != nil {
		said, _ := os.ReadFile(complaints)
		t.Errorf("the watch: %v: %s", err, said)
	}
	events, err := api.ExecutionEvents(p.Namespace()).List(ctx, metav1.ListOptions{FieldSelector: "rootTask=root"})
	if err != nil {
		t.Fatal(err)
	}
	parents := play.checkKilled(ctx, t, events.Items)
	for _, err := range []error{
		scene.CheckPlan(events.Items), scene.CheckMessages(model.Exchanges()), scene.CheckDelegations(events.Items, parents),
		scene.CheckPrinted(events.Items, strings.NewReader(watch.Output())),
	} {
		if err != nil {
			t.Error(err)
		}
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
func (p *play) checkKilled(ctx context.Context, t *testing.T, events []v1alpha1.ExecutionEvent) map[string]string {
	t.Helper()
	tasks, err := p.tasks.List(ctx, metav1.ListOptions{FieldSelector: "rootTask=root"})
	if err != nil {
		t.Fatal(err)
	}
	counts, parents := map[v1alpha1.TaskPhase]int{}, map[string]string{}
	for i := range tasks.Items {
		x := &tasks.Items[i]
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

// checkAttempts checks the events of one task among those of its tree: their sequence has no holes, no attempt was begun twice,
// and the last event, which is the only end, says how the task ended.
func checkAttempts(all []v1alpha1.ExecutionEvent, task *v1alpha1.Task) error {
	var seq int64
	var end v1alpha1.EventType
	begun := map[string]bool{}
	for i := range all {
		e := &all[i]
		if e.TaskName != task.Name {
			continue
		}
		if seq++; e.Seq != seq {
			return fmt.Errorf("%s: event %d has seq %d", task.Name, seq, e.Seq)
		}
		if end != "" && !event.Late(e.Type) {
			return fmt.Errorf("%s: %s follows %s", task.Name, e.Type, end)
		}
		switch {
		case event.Terminal(e.Type):
			end = e.Type
		case e.Type == v1alpha1.EventTaskStarted && begun[e.Summary]:
			return fmt.Errorf("%s was begun twice: %s", task.Name, e.Summary)
		case e.Type == v1alpha1.EventTaskStarted:
			begun[e.Summary] = true
		}
	}
	if string(end) != "Task"+string(task.Status.Phase) || len(begun) > int(task.Status.Attempts) {
		return fmt.Errorf("%s is %s (%s) and its stream ends with %q; %d attempts of %d were begun", task.Name, task.Status.Phase, task.Status.Message, end, len(begun), task.Status.Attempts)
	}
	return nil
}
