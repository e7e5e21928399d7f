// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
)

// TestInformers: informers of client-go see each event of a run once, in
// order, and the task in each of its phases, across a restart of the server.
func TestInformers(t *testing.T) { everywhere(t, informers) }

func informers(t *testing.T, p place) {
	client, err := versioned.NewForConfig(p.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	informer := func(resource string, of runtime.Object) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(cache.NewListWatchFromClient(client.CoreV1alpha1().RESTClient(), resource, p.Namespace(), fields.Everything()), of, 0, nil)
	}
	var (
		mu     sync.Mutex // guards the rest
		seqs   []int64
		phases []v1alpha1.TaskPhase
	)
	over, succeeded := make(chan struct{}), make(chan struct{})
	events := informer("executionevents", &v1alpha1.ExecutionEvent{})
	tasks := informer("tasks", &v1alpha1.Task{})
	_, err = events.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		e, ok := o.(*v1alpha1.ExecutionEvent)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		seqs = append(seqs, e.Seq)
		if e.Type == v1alpha1.EventTaskSucceeded {
			close(over)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tasks.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) {
		task, ok := o.(*v1alpha1.Task)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if n := len(phases); n == 0 || phases[n-1] != task.Status.Phase {
			phases = append(phases, task.Status.Phase)
			if task.Status.Phase == v1alpha1.TaskSucceeded {
				close(succeeded)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	go events.RunWithContext(t.Context()) // ends with the test
	go tasks.RunWithContext(t.Context())
	cache.WaitForCacheSync(t.Context().Done(), events.HasSynced, tasks.HasSynced)

	command(t, p, "seen", "for i in $(seq 20); do echo line $i; sleep 0.5; done", nil)
	awaitEvent(t, p, "seen", v1alpha1.EventWorkerStarted)
	p.RestartServer(t)
	<-over
	<-succeeded
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(phases, v1alpha1.TaskRunning) {
		t.Errorf("phases %v", phases)
	}
	for i, seq := range seqs {
		if seq != int64(i+1) {
			t.Fatalf("event %d has seq %d: %v", i, seq, seqs)
		}
	}
}

// TestCommand: the platform's own command does what a person needs, and its
// exit codes distinguish how tasks ended.
func TestCommand(t *testing.T) {
	t.Parallel()
	everywhere(t, commandLine)
}

func commandLine(t *testing.T, p place) {
	command(t, p, "good", "echo fine", nil)
	command(t, p, "bad", "exit 9", nil)
	command(t, p, "ugly", "sleep 600", nil)
	awaitEvent(t, p, "ugly", v1alpha1.EventWorkerStarted)
	cancelTask(t, p, "ugly")
	for name, want := range map[string]int{"good": 0, "bad": 2, "ugly": 3} {
		if r := p.Shell(t, "platform task watch "+name); r.Code != want {
			t.Errorf("platform task watch %s: exit %d, want %d: %s", name, r.Code, want, r.Output)
		}
	}
	for line, want := range map[string]string{
		"platform task list": "good", "platform task trace good": "good", "kubectl platform task get bad": "Failed",
	} {
		if got := p.MustShell(t, line); !strings.Contains(got, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// TestFork: a run is continued from one of its events, by kubectl and by the command.
func TestFork(t *testing.T) {
	t.Parallel()
	everywhere(t, forks)
}

func forks(t *testing.T, p place) {
	applyTeam(t, p, startModel(t, p, scripts+"demo.yaml"))
	p.MustShell(t, "kubectl apply -f ../../artifacts/demo/task.yaml")
	ended(t, p, "primes")
	fork := p.MustShell(t, "kubectl create --raw "+native(p, "tasks/primes/fork")+` -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"TaskFork","spec":{"prompt":"And again, with prime numbers."}}'`)
	var got v1alpha1.TaskFork
	if err := json.Unmarshal([]byte(fork), &got); err != nil || got.Status.NewTaskName == "" {
		t.Fatalf("%v: %s", err, fork)
	}
	task, _, _ := ended(t, p, got.Status.NewTaskName)
	if task.Status.Phase != v1alpha1.TaskSucceeded || task.Annotations[v1alpha1.AnnotationForkSourceTask] != "primes" {
		t.Errorf("%s %q, annotations %v", task.Status.Phase, task.Status.Message, task.Annotations)
	}
	if out := p.MustShell(t, "platform task fork primes --after 1"); !strings.Contains(out, "primes") {
		t.Errorf("platform task fork: %s", out)
	}
}

// TestREST: clients without Kubernetes, with tokens of ServiceAccounts.
func TestREST(t *testing.T) {
	t.Parallel()
	everywhere(t, restPaths)
}

func restPaths(t *testing.T, p place) {
	viewer, editor, nobody := asAccount(t, p, "watcher", "platform-viewer"), asAccount(t, p, "runner", "platform-editor"), asAccount(t, p, "nobody", "")
	body := `{"metadata":{"name":"posted"},"spec":{"type":"container","image":"` + p.Image() + `","command":["sh","-c"],"args":["echo from REST"]}}`
	for _, tc := range []struct {
		who  restClient
		name string
		want int
	}{{nobody, "nobody", http.StatusForbidden}, {viewer, "a viewer", http.StatusForbidden}, {editor, "an editor", http.StatusCreated}} {
		if code, text := tc.who.do(http.MethodPost, "/api/v1/tasks", body); code != tc.want {
			t.Errorf("%s creates: %d %s", tc.name, code, text)
		}
	}
	if code, _ := nobody.do(http.MethodGet, "/api/v1/tasks", ""); code != http.StatusForbidden {
		t.Errorf("nobody lists: %d", code)
	}
	stranger := viewer
	stranger.token = "nonsense"
	if code, text := stranger.do(http.MethodGet, "/api/v1/tasks", ""); code != http.StatusUnauthorized || !strings.HasPrefix(text, `{"error":{"code":401`) {
		t.Errorf("a bad token: %d %s", code, text)
	}
	resp := viewer.open(http.MethodGet, "/api/v1/tasks/posted/stream", "")
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("stream: %s", resp.Status)
	}
	seq, complete := 0, false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !complete {
		line := lines.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok && id != fmt.Sprint(seq) {
			if seq++; id != fmt.Sprint(seq) {
				t.Fatalf("id %s after %d", id, seq-1)
			}
		}
		complete = line == "event: stream_complete"
	}
	if !complete || seq < 4 {
		t.Errorf("the stream ended after event %d: %v", seq, lines.Err())
	}
	if code, text := viewer.do(http.MethodGet, "/api/v1/tasks/posted/result", ""); code != http.StatusOK || !strings.Contains(text, "from REST") {
		t.Errorf("result: %d %s", code, text)
	}
	if code, text := viewer.do(http.MethodGet, "/api/v1/auth/whoami", ""); code != http.StatusOK || !strings.Contains(text, "system:serviceaccount:"+p.Namespace()+":watcher") {
		t.Errorf("whoami: %d %s", code, text)
	}
}
