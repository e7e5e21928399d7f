// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

const (
	codingTasks = 200
	// codingKills is how often the server is killed, and a worker or an agent between two of these four times as often.
	codingKills = 8
	// codingSlots is how many tasks run at once, and so how many requests are open.
	codingSlots = 6
)

// countingVendor answers each request with a number of tokens that it gives only once, and remembers which task had it.
type countingVendor struct {
	mu    sync.Mutex
	last  int64
	given map[string]map[int64]bool
}

var asker = regexp.MustCompile(`of the task (coding-\d+)`)

func (v *countingVendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	who := asker.FindSubmatch(body)
	if err != nil || who == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	v.mu.Lock()
	v.last++
	n, task := v.last, string(who[1])
	if v.given[task] == nil {
		v.given[task] = map[int64]bool{}
	}
	v.given[task][n] = true
	v.mu.Unlock()
	pause(r.Context(), time.Duration(rand.IntN(60))*time.Millisecond)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}`, n, n+1)
}

// TestCodingAgentUsageKilled: the requests of 200 coding agents to their models are counted as the vendor counted them, each once, while
// the server, workers and agents are killed. What is open at a kill is a gap of its task, and no request is missing without one.
func TestCodingAgentUsageKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	v := &countingVendor{given: map[string]map[int64]bool{}}
	vendor := httptest.NewServer(v)
	t.Cleanup(vendor.Close)
	s := kit.StartServer(t, t.TempDir(), "--agent-runtime", "codex="+kit.Bin(t, "scriptedagent"), "--max-running-tasks", strconv.Itoa(codingSlots))
	c := newChatClient(t, s.Kubeconfig)
	c.answers(t, vendor.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	api := c.api.CoreV1alpha1()
	if _, err := api.Agents("default").Create(ctx, &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "coder"}, Spec: v1alpha1.AgentSpec{
		Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}, Model: &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range codingTasks {
		name := fmt.Sprintf("coding-%d", i)
		if _, err := api.Tasks("default").Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAgent, AgentRef: &v1alpha1.NamespacedReference{Name: "coder"},
			Prompt:      strings.Repeat("do: ask question of the task "+name+"\n", 1+i%3) + "do: say done",
			RetryPolicy: &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: new(v1alpha1.Duration("10ms"))},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	raw, workers, agents := newClient(t, s.Kubeconfig), 0, 0
	for round := range codingKills {
		// a share of the tasks has ended before each round
		if _, err := awaitEnd(ctx, raw, names[round*len(names)/codingKills]); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			pause(ctx, time.Duration(random.IntN(200))*time.Millisecond)
			if killWorker(s.DataDir, random) {
				workers++
			}
			pause(ctx, time.Duration(random.IntN(200))*time.Millisecond)
			if killAgent(s.DataDir, random) {
				agents++
			}
		}
		s.Kill()
		s.Restart(t)
	}
	outcomes := map[string]int{}
	for _, name := range names {
		task, err := awaitEnd(ctx, raw, name)
		if err == nil {
			err = errors.Join(checkEvents(ctx, raw, task), checkRest(task))
		}
		if err != nil {
			t.Errorf("task %s: %v", name, err)
			continue
		}
		outcomes[fmt.Sprintf("%s (%s)", task.Status.Phase, task.Status.Message)]++
	}
	for what, n := range outcomes {
		t.Logf("%3d %s", n, what)
	}
	counted, gaps := v.compare(t, ctx, c)
	t.Logf("%d workers and %d agents were killed; %d requests were counted exactly, and %d have a gap", workers, agents, counted, gaps)
	if workers+agents == 0 {
		t.Error("nothing was killed but the server")
	}
	if most := codingKills*codingSlots + workers + agents; gaps > most {
		t.Errorf("%d gaps; at most %d requests were open when something was killed", gaps, most)
	}
}

// compare checks what is recorded of each task against what the vendor gave it.
func (v *countingVendor) compare(t *testing.T, ctx context.Context, c *chatClient) (counted, gaps int) {
	t.Helper()
	list, err := c.api.CoreV1alpha1().UsageMeasurements("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	gap := map[string]int{}
	for i := range list.Items {
		m := &list.Items[i]
		switch in, task := m.Status.InputTokens, m.Spec.TaskName; {
		case in == nil:
			gap[task]++
			gaps++
		case !v.given[task][*in]:
			t.Errorf("%s: %d tokens are recorded twice, or were never given to it", task, *in)
		default:
			delete(v.given[task], *in)
			counted++
		}
	}
	for task, left := range v.given {
		if len(left) > gap[task] {
			t.Errorf("%s: the vendor answered %d requests that are not recorded, and %d have a gap", task, len(left), gap[task])
		}
	}
	return counted, gaps
}

// killAgent kills the program of a worker that is alive, if there is one.
func killAgent(dir string, random *rand.Rand) bool {
	paths, _ := filepath.Glob(filepath.Join(dir, "runs", "*", "*", "run.json"))
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths {
		rec, err := readRun(path)
		if err != nil || rec.State != "running" || !belongs(rec.PID, rec.UID) {
			continue
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", rec.PID))
		for _, file := range threads {
			children, _ := os.ReadFile(file)
			for child := range strings.FieldsSeq(string(children)) {
				if pid, err := strconv.Atoi(child); err == nil {
					return syscall.Kill(pid, syscall.SIGKILL) == nil
				}
			}
		}
	}
	return false
}
