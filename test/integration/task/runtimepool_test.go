// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/kit"
)

// crowd watches tasks of coding agents, and notes whenever more of them hold places or work than a pool allows. The server sends changes
// in the order of its store, so what is noted is what was stored.
type crowd struct {
	mu    sync.Mutex
	tasks map[string]*v1alpha1.Task
	// most is what was seen at most, and ends the terminal phases of each task in their order.
	resident, running, queued int
	ends                      map[string][]v1alpha1.TaskPhase
	wrong                     []string
}

func (c *crowd) note(o any) {
	t, ok := o.(*v1alpha1.Task)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.tasks[t.Name]
	c.tasks[t.Name] = t
	if t.Status.Phase.Terminal() && (before == nil || before.Status.Phase != t.Status.Phase) {
		c.ends[t.Name] = append(c.ends[t.Name], t.Status.Phase)
	}
	if e := t.Status.Execution; e != nil && e.State == v1alpha1.ExecutionQueued && t.Status.Phase != v1alpha1.TaskPending {
		c.wrong = append(c.wrong, fmt.Sprintf("%s is %s and says %s", t.Name, t.Status.Phase, e.State))
	}
	resident, running, queued := 0, 0, 0
	for _, t := range c.tasks {
		switch t.Status.Phase {
		case v1alpha1.TaskRunning:
			running++
			resident++
		case v1alpha1.TaskFinalizing:
			resident++
		case v1alpha1.TaskPending:
			queued++
		}
	}
	c.resident, c.running, c.queued = max(c.resident, resident), max(c.running, running), max(c.queued, queued)
}

// ended returns how many tasks have ended.
func (c *crowd) ended() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ends)
}

// TestRuntimePoolKilled: many tasks that change a repository are queued for a pool of 10 sessions and 4 prompts, and the server is killed
// again and again. Each task ends once, with one commit; never are there more sessions or prompts; and in the end the pool holds nothing.
func TestRuntimePoolKilled(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const tasks, kills = 200, 12
	agent := kit.Bin(t, "scriptedagent")
	h := githost.New(t, repositoryToken)
	h.PushToken = pushToken
	h.Create(t, "shop")
	h.Commit(t, "shop", "main", map[string]string{"README.md": "a shop\n"})
	s := kit.StartServer(t, t.TempDir(), "--agent-runtime", "codex="+agent, "--repository-allow", h.Address())
	rest, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	rest.QPS = -1
	api := kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(rest))
	ctx, cancel := context.WithTimeout(t.Context(), 4*kit.Patience)
	defer cancel()
	for name, token := range map[string]string{"reader": repositoryToken, "pusher": pushToken} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": token}}
		kit.Must[*corev1.Secret](t)(kit.Must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(rest)).CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}))
	}
	kit.Must[*v1alpha1.Agent](t)(api.CoreV1alpha1().Agents("default").Create(ctx, &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "coder"}, Spec: v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}},
	}, metav1.CreateOptions{}))

	seen := &crowd{tasks: map[string]*v1alpha1.Task{}, ends: map[string][]v1alpha1.TaskPhase{}}
	watch := cache.NewSharedInformer(cache.NewListWatchFromClient(api.CoreV1alpha1().RESTClient(), "tasks", "default", fields.Everything()), &v1alpha1.Task{}, 0)
	kit.Must[cache.ResourceEventHandlerRegistration](t)(watch.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen.note, UpdateFunc: func(_, now any) { seen.note(now) },
	}))
	var watching sync.WaitGroup
	watching.Go(func() { watch.RunWithContext(ctx) })
	defer watching.Wait()
	defer cancel()
	reader, pusher := &v1alpha1.WorkspaceCredentialReference{Name: "reader"}, &v1alpha1.WorkspaceCredentialReference{Name: "pusher"}
	for i := range tasks {
		kit.Must[*v1alpha1.Task](t)(api.CoreV1alpha1().Tasks("default").Create(ctx, &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("change-%03d", i)}, Spec: v1alpha1.TaskSpec{
				Type: v1alpha1.TaskTypeAgent, AgentRef: &v1alpha1.NamespacedReference{Name: "coder"}, Prompt: "do: touch new.txt fresh\ndo: say changed",
				Priority: new(int32(i % 7 * 100)), Timeout: v1alpha1.DurationOf(4 * kit.Patience),
				Workspace: &v1alpha1.TaskWorkspace{
					GitRepo: h.Location("shop"), Branch: "main", Intent: v1alpha1.WorkspaceWrite, PushBranch: fmt.Sprintf("work-%03d", i),
					ReadCredentialRef: reader, PublicationReadCredentialRef: reader, PublicationCredentialRef: pusher,
				},
			},
		}, metav1.CreateOptions{}))
	}
	for kill := 1; kill <= kills; kill++ {
		enough := tasks * kill / (kills + 1)
		kit.Await(t, fmt.Sprintf("%d tasks have ended", enough), func() bool { return seen.ended() >= enough })
		s.Kill()
		s.Restart(t)
	}
	kit.Await(t, "all tasks have ended", func() bool { return seen.ended() == tasks })

	seen.mu.Lock()
	defer seen.mu.Unlock()
	for name, ends := range seen.ends {
		task := seen.tasks[name]
		if len(ends) != 1 || ends[0] != v1alpha1.TaskSucceeded || task.Status.Attempts != 1 {
			t.Errorf("%s ended %v after %d attempts: %s", name, ends, task.Status.Attempts, task.Status.Message)
			continue
		}
		if e := task.Status.Execution; e.State != v1alpha1.ExecutionSucceeded || e.Outcome != "Succeeded" || e.RuntimePoolUID == "" || e.Attempt != 1 {
			t.Errorf("%s: execution %+v", name, e)
		}
		if log := h.Git(t, "shop", "", "log", "--format=%H", "main.."+task.Spec.Workspace.PushBranch); log != task.Status.Delivery.VerifiedRemoteSHA {
			t.Errorf("%s has the commits %s", name, log)
		}
	}
	if seen.resident > 10 || seen.running > 4 || seen.queued < tasks/2 || len(seen.wrong) > 0 {
		t.Errorf("at most %d sessions, %d prompts, %d queued; %v", seen.resident, seen.running, seen.queued, seen.wrong)
	}
	t.Logf("%d tasks, %d kills: at most %d sessions, %d prompts, %d queued", tasks, kills, seen.resident, seen.running, seen.queued)

	kit.Await(t, "the pool reports that nothing is in use", func() bool {
		list := kit.Must[*v1alpha1.RuntimePoolList](t)(api.CoreV1alpha1().RuntimePools("default").List(ctx, metav1.ListOptions{}))
		if len(list.Items) != 1 {
			t.Fatalf("%d pools", len(list.Items))
		}
		p := &list.Items[0]
		u := p.Status.Capacity
		return u != nil && u.Resident+u.Running+u.Queued+u.Reserved == 0 && len(u.Reservations) == 0 &&
			p.Status.Lifecycle == v1alpha1.PoolStopped && p.Status.Admission == v1alpha1.PoolAdmissionAccepting
	})
	pools := map[types.UID]bool{}
	for _, task := range seen.tasks {
		pools[task.Status.Execution.RuntimePoolUID] = true
	}
	if len(pools) != 1 {
		t.Errorf("the tasks name the pools %v", slices.Collect(maps.Keys(pools)))
	}
}
