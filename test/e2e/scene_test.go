// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scene"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// sceneTime is how long the scene may take: many times what it takes on a busy machine.
const sceneTime = 10 * time.Minute

// TestCoordination plays the scene of coordination while the API server and the controller are killed and replaced: 20 tasks
// on three levels, of which one fails and is asked for again and one is cancelled, messages between siblings, and two
// approvals at the lowest level, decided by whoever watches the root. Nothing is done twice, and one watch of the root has
// the whole of it in order. TestCoordinationUnderKills plays it in a cluster.
func TestCoordination(t *testing.T) {
	t.Parallel()
	p := local{kit.StartServer(t, t.TempDir(), "--allow-host-commands")}
	ctx, cancel := context.WithTimeout(t.Context(), sceneTime)
	defer cancel()
	play := open(ctx, t, p, scene.Script(p.Image()), nil)
	ended := make(chan error, 1)
	go func() { ended <- play.decide(ctx, nil) }()
	both := func(t *testing.T) { p.KillController(t); p.KillServer(t) }
	for _, blow := range []struct {
		after  int // tasks that were delegated
		strike func(*testing.T)
	}{
		{1, both}, {8, p.RestartServer}, {12, p.RestartController}, {16, p.KillServer},
	} {
		if err := play.await(ctx, blow.after); err != nil {
			t.Fatal(err)
		}
		t.Logf("strike after %d delegated tasks", blow.after)
		blow.strike(t)
	}
	play.end(t, <-ended)
	for _, err := range play.check(ctx, t) {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(p.Shell(t, "platform task tree root").Output)
	}
}

// play is the scene in a place, with one watch of its tree.
type play struct {
	place
	tasks      typed.TaskInterface
	approvals  typed.ApprovalInterface
	events     typed.ExecutionEventInterface
	model      *script.Server
	watch      *kit.Process
	complaints string // the file with what the watch said about errors
}

// open makes what the scene needs and its root, which is tried again as the policy says, if there is one.
func open(ctx context.Context, t *testing.T, p place, text string, again *v1alpha1.RetryPolicy) *play {
	t.Helper()
	api, err := typed.NewForConfig(p.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	opened := &play{
		place: p, tasks: api.Tasks(p.Namespace()), approvals: api.Approvals(p.Namespace()), events: api.ExecutionEvents(p.Namespace()),
		model: cast(t, p, text, scene.Agents()), complaints: filepath.Join(t.TempDir(), "complaints"),
	}
	_, err = opened.tasks.Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: scene.Prompt, AgentRef: &v1alpha1.NamespacedReference{Name: scene.Chief}, RetryPolicy: again,
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opened.watch = kit.Start(t, p.Env(t), "bash", "-c", "exec platform task watch root --tree -o json 2>"+opened.complaints)
	return opened
}

// end is called when the root has ended, with what went wrong until then. It returns when the watch has ended as well.
func (p *play) end(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Shell(t, "platform task tree root").Output)
	}
	if err := p.watch.Wait(); err != nil {
		said, _ := os.ReadFile(p.complaints)
		t.Errorf("the watch: %v: %s", err, said)
	}
}

// cast makes agents and the model that they ask.
func cast(t *testing.T, p place, text string, agents []v1alpha1.Agent) *script.Server {
	t.Helper()
	parsed, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	model := script.New(parsed, io.Discard)
	vendor := httptest.NewUnstartedServer(model)
	if err := vendor.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	if vendor.Listener, err = net.Listen("tcp", net.JoinHostPort(p.Address(), "0")); err != nil {
		t.Fatal(err)
	}
	vendor.Start()
	t.Cleanup(vendor.Close)
	api, err := typed.NewForConfig(p.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	p.MustShell(t, "kubectl create secret generic key --from-literal=api-key="+modelKey)
	_, err = api.Providers(p.Namespace()).Create(t.Context(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: vendor.URL + "/v1", DefaultModel: "scripted-1",
		SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range agents {
		a.Spec.ProviderRef = &v1alpha1.NamespacedReference{Name: "model"}
		if _, err := api.Agents(p.Namespace()).Create(t.Context(), &a, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return model
}

// insist repeats a question until it is answered with yes. The server may be away meanwhile.
func insist(ctx context.Context, ask func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var done bool
		done, last = ask(ctx)
		return done && last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// await returns when so many tasks were delegated, or the root has ended.
func (p *play) await(ctx context.Context, delegated int) error {
	return insist(ctx, func(ctx context.Context) (bool, error) {
		list, err := p.tasks.List(ctx, metav1.ListOptions{FieldSelector: "rootTask=root"})
		if err != nil {
			return false, err
		}
		over := slices.ContainsFunc(list.Items, func(t v1alpha1.Task) bool { return t.Name == "root" && t.Status.Phase.Terminal() })
		return over || len(list.Items) > delegated, nil
	})
}

// decide approves whatever waits in the tree of the root, until the root has ended. After the first iteration it does so only
// once hold is closed, if there is one: before that the root cannot end.
func (p *play) decide(ctx context.Context, hold <-chan struct{}) error {
	return insist(ctx, func(ctx context.Context) (bool, error) {
		root, err := p.tasks.Get(ctx, "root", metav1.GetOptions{})
		if err != nil || root.Status.Phase.Terminal() {
			return true, err
		}
		if hold != nil && root.Status.Iteration > 0 {
			select {
			case <-hold:
			default:
				return false, nil
			}
		}
		list, err := p.approvals.List(ctx, metav1.ListOptions{FieldSelector: "spec.rootTask=root,status.state=pending"})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			_, err := p.approvals.Decide(ctx, list.Items[i].Name, &v1alpha1.ApprovalDecision{
				Spec: v1alpha1.ApprovalDecisionSpec{Decision: "approve"},
			}, metav1.CreateOptions{})
			if err != nil {
				return false, err
			}
		}
		return false, nil
	})
}

// check returns what is wrong with what came of the scene.
func (p *play) check(ctx context.Context, t *testing.T) (wrong []error) {
	t.Helper()
	tasks, events := p.tree(ctx, t)
	counts := map[v1alpha1.TaskPhase]int{}
	parents := map[string]string{}
	depths := map[string]int32{}
	for i := range tasks {
		x := &tasks[i]
		counts[x.Status.Phase]++
		attempts := int32(scene.Iterations)
		if d := x.Status.Delegation; d != nil {
			parents[x.Name], depths[x.Name], attempts = d.Parent, d.Depth, 1
		} else if want := fmt.Sprintf("goal complete after %d iterations", scene.Iterations); x.Status.Message != want {
			wrong = append(wrong, fmt.Errorf("the root says %q, want %q", x.Status.Message, want))
		}
		if err := checkStream(events, x, attempts); err != nil {
			wrong = append(wrong, err)
		}
	}
	want := map[v1alpha1.TaskPhase]int{v1alpha1.TaskSucceeded: scene.Delegated - 1, v1alpha1.TaskFailed: 1, v1alpha1.TaskCancelled: 1}
	if fmt.Sprint(counts) != fmt.Sprint(want) || len(parents) != scene.Delegated {
		wrong = append(wrong, fmt.Errorf("%d delegated tasks: %v, want %v", len(parents), counts, want))
	}
	asked, answered := map[string]bool{}, 0
	for i := range events {
		switch e := &events[i]; e.Type {
		case v1alpha1.EventApprovalRequested:
			asked[e.TaskName] = depths[e.TaskName] == 3
		case v1alpha1.EventApprovalApproved:
			answered++
		}
	}
	if len(asked) != scene.Approvals || answered != scene.Approvals {
		wrong = append(wrong, fmt.Errorf("approvals were asked for by %v, and %d were given", asked, answered))
	}
	for name, deep := range asked {
		if !deep {
			wrong = append(wrong, fmt.Errorf("%s at depth %d asked for an approval", name, depths[name]))
		}
	}
	return append(wrong, p.told(events, parents)...)
}

// tree returns the tasks of the tree and their events.
func (p *play) tree(ctx context.Context, t *testing.T) ([]v1alpha1.Task, []v1alpha1.ExecutionEvent) {
	t.Helper()
	ofRoot := metav1.ListOptions{FieldSelector: "rootTask=root"}
	events, err := p.events.List(ctx, ofRoot)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := p.tasks.List(ctx, ofRoot)
	if err != nil {
		t.Fatal(err)
	}
	return tasks.Items, events.Items
}

// told returns what is wrong with what the events, the model and the watch say of the scene. parents are those of delegated tasks.
func (p *play) told(events []v1alpha1.ExecutionEvent, parents map[string]string) []error {
	return slices.DeleteFunc([]error{
		scene.CheckPlan(events), scene.CheckMessages(p.model.Exchanges()), scene.CheckDelegations(events, parents),
		scene.CheckPrinted(events, strings.NewReader(p.watch.Output())),
	}, func(err error) bool { return err == nil })
}

// checkStream checks the events of one task among those of its tree as walk does, and that each attempt was begun once.
func checkStream(all []v1alpha1.ExecutionEvent, task *v1alpha1.Task, attempts int32) error {
	var begun int32
	err := walk(all, task, func(e *v1alpha1.ExecutionEvent) error {
		if e.Type == v1alpha1.EventWorkerStarted {
			begun++
		}
		return nil
	})
	stopped := task.Status.Phase == v1alpha1.TaskCancelled && begun < attempts // perhaps before it began
	if err == nil && (begun != attempts && !stopped || task.Status.Attempts > attempts) {
		err = fmt.Errorf("%s is %s (%s); %d workers began, %d attempts of %d", task.Name, task.Status.Phase, task.Status.Message, begun, task.Status.Attempts, attempts)
	}
	return err
}

// walk calls do with the events of one task among those of its tree. Their sequence must have no holes, and the last, which is the
// only end, must say how the task ended.
func walk(all []v1alpha1.ExecutionEvent, task *v1alpha1.Task, do func(*v1alpha1.ExecutionEvent) error) error {
	var seq int64
	var end v1alpha1.EventType
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
		if event.Terminal(e.Type) {
			end = e.Type
		}
		if err := do(e); err != nil {
			return err
		}
	}
	if string(end) != "Task"+string(task.Status.Phase) {
		return fmt.Errorf("%s is %s (%s) and its stream ends with %q", task.Name, task.Status.Phase, task.Status.Message, end)
	}
	return nil
}
