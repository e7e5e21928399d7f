// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/test/scene"
)

// sceneKills is how often something is killed at least; ROUNDS raises it.
const sceneKills = 20

// TestCoordinationUnderKills plays a scene of four levels while the server and workers are killed at random moments: three
// iterations, 20 delegated tasks and those that replace what was killed, of which one fails and one is cancelled, and two approvals
// at the lowest level, decided by whoever watches the root. Siblings write to each other.
func TestCoordinationUnderKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	p := newTeam(t, scene.Slow(""), scene.Agents()...)
	kills := max(sceneKills, rounds(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*10*time.Second+5*time.Minute)
	defer cancel()
	_, err := p.api.Tasks("default").Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: scene.Prompt, AgentRef: &v1alpha1.NamespacedReference{Name: scene.Chief},
		RetryPolicy: &v1alpha1.RetryPolicy{MaxRetries: 100, InitialDelay: v1alpha1.DurationOf(time.Millisecond)},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var printed, complaints bytes.Buffer
	watched := make(chan int, 1)
	go func() {
		args := []string{"--kubeconfig", p.Kubeconfig, "task", "watch", "root", "--tree", "-o", "json"}
		watched <- cli.Main(ctx, "platform", args, cli.Streams{In: strings.NewReader(""), Out: &printed, Err: &complaints})
	}()
	ended, enough := make(chan error, 1), make(chan struct{})
	go func() { ended <- p.decideAll(ctx, enough) }()

	for done := 0; done < kills; {
		pause(ctx, time.Duration(random.Int64N(int64(1500*time.Millisecond))))
		if random.IntN(2) == 0 {
			if !killWorker(p.DataDir, random) {
				continue // nobody was at work
			}
		} else {
			if random.IntN(3) == 0 {
				_ = p.Stop() // as an operator does; its exit says how
			} else {
				p.Kill()
			}
			if random.IntN(4) == 0 {
				killWorker(p.DataDir, random) // unseen
			}
			p.Restart(t)
		}
		done++
		select {
		case err := <-ended:
			t.Fatalf("the root has ended after %d kills: %v", done, err)
		default:
		}
	}
	close(enough)
	t.Logf("%d kills", kills)
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, p.MustShell(t, "platform task tree root"))
	}
	if code := <-watched; code != 0 {
		t.Errorf("the watch ended with %d: %s", code, complaints.String())
	}
	if err := p.checkScene(ctx, t, &printed); err != nil {
		t.Errorf("%v\n%s", err, p.MustShell(t, "platform task tree root"))
	}
}

// decideAll approves whatever waits in the tree of the root, until the root has ended. After the first iteration it does so only
// once hold is closed: before that the root cannot end.
func (p *team) decideAll(ctx context.Context, hold <-chan struct{}) error {
	for {
		var root v1alpha1.Task
		if err := p.raw.insist(ctx, http.MethodGet, base+"tasks/root", nil, &root); err != nil {
			return err
		}
		if root.Status.Phase.Terminal() {
			return nil
		}
		if root.Status.Iteration > 0 {
			select {
			case <-hold:
			default:
				pause(ctx, 100*time.Millisecond)
				continue
			}
		}
		var list v1alpha1.ApprovalList
		if err := p.raw.insist(ctx, http.MethodGet, base+"approvals?fieldSelector=spec.rootTask%3Droot,status.state%3Dpending", nil, &list); err != nil {
			return err
		}
		for i := range list.Items {
			const yes = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ApprovalDecision","spec":{"decision":"approve"}}`
			// The task may have ended meanwhile, and the decision may have been made before its answer was lost.
			_ = p.raw.do(ctx, http.MethodPost, base+"approvals/"+list.Items[i].Name+"/decision", []byte(yes), nil)
		}
		pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: the root is %s", errBrokeEnds, root.Status.Phase)
		}
	}
}

// checkScene checks what came of the scene.
func (p *team) checkScene(ctx context.Context, t *testing.T, printed io.Reader) error {
	t.Helper()
	events, err := p.api.ExecutionEvents("default").List(ctx, metav1.ListOptions{FieldSelector: "rootTask=root"})
	if err != nil {
		return err
	}
	tasks, err := p.api.Tasks("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var broken []error
	counts := map[v1alpha1.TaskPhase]int{}
	children := map[string]string{} // the parents of the delegated tasks
	for i := range tasks.Items {
		x := &tasks.Items[i]
		counts[x.Status.Phase]++
		if d := x.Status.Delegation; d != nil {
			children[x.Name] = d.Parent
		}
		if !x.Status.Phase.Terminal() || x.Status.Phase == v1alpha1.TaskFailed && x.Status.Message == "" {
			broken = append(broken, fmt.Errorf("%w: %s is %s", errBrokeEnds, x.Name, x.Status.Phase))
		}
		broken = append(broken, checkEvents(ctx, p.raw, x), checkRest(x))
	}
	t.Logf("%d delegated tasks: %v", len(children), counts)
	root, err := p.api.Tasks("default").Get(ctx, "root", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if root.Status.Phase != v1alpha1.TaskSucceeded || !strings.HasPrefix(root.Status.Message, "goal complete after ") ||
		len(children) < 16 || counts[v1alpha1.TaskFailed] == 0 || counts[v1alpha1.TaskCancelled] == 0 {
		broken = append(broken, fmt.Errorf("%w: the root is %s (%s)", errBrokeTrue, root.Status.Phase, root.Status.Message))
	}
	return errors.Join(append(broken,
		scene.CheckPlan(events.Items), scene.CheckMessages(p.model.Exchanges()), scene.CheckDelegations(events.Items, children), scene.CheckPrinted(events.Items, printed),
	)...)
}
