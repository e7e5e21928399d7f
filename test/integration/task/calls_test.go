// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller"
	"github.com/platform-ai/platform/pkg/controller/executor/process"
	taskcontroller "github.com/platform-ai/platform/pkg/controller/task"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// calls are the requests of the controllers, without their watches.
type calls struct {
	mu         sync.Mutex
	made       []string
	reconciles map[types.UID]bool // those that sent them
}

// apiPrefix is the part of a path before the resource.
var apiPrefix = regexp.MustCompile(`^/apis?/([a-z0-9.]+/)?v[^/]+/namespaces/[^/]+/`)

// counted counts requests on their way to the next transport.
type counted struct {
	calls *calls
	next  http.RoundTripper
}

// RoundTrip counts and sends a request.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	call := r.Method + " " + apiPrefix.ReplaceAllString(r.URL.Path, "")
	// The controller of Providers reads the same Secret at unpredictable times. The worker's account and its role are read
	// again after some seconds.
	others := strings.HasPrefix(call, "GET secrets/") || strings.HasPrefix(call, "PATCH providers/") ||
		strings.HasPrefix(call, "GET serviceaccounts/") || strings.HasPrefix(call, "GET rolebindings/")
	if r.URL.Query().Get("watch") == "" && r.URL.Query().Get("resourceVersion") == "" && !others {
		if f := r.URL.Query().Get("fieldSelector"); f != "" {
			terms := strings.Split(f, ",") // client-go writes them in any order
			slices.Sort(terms)
			call += " " + strings.Join(terms, ",")
		}
		c.calls.mu.Lock()
		c.calls.made = append(c.calls.made, call)
		if id := runtimecontroller.ReconcileIDFromContext(r.Context()); id != "" {
			c.calls.reconciles[id] = true
		}
		c.calls.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

// take returns the requests since it was last called, and how many reconciles sent them.
func (c *calls) take() (made []string, reconciles int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, reconciles = c.made, len(c.reconciles)
	c.made, c.reconciles = nil, map[types.UID]bool{}
	return made, reconciles
}

// reconciles is how often the controller of tasks has reconciled, in this process.
func reconciles(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == "task" {
					n += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}

// wantStart and wantEnd are the requests of the controllers until a run is recorded as started, and at its end, without
// reads of Secrets and of what is read only now and then.
var (
	wantStart = []string{
		"PATCH tasks/t/status", // Running, with the attempt and the finalizer
		"POST serviceaccounts/platform-ai-worker/token",
		"POST tasks/t/events",
		"POST tasks/t/events",
		"PATCH tasks/t/status", // JobCreated
	}
	// All reads are concurrent; the event and the status follow in this order.
	wantEnd = []string{
		"GET approvals spec.taskName=t",
		"GET executionevents taskName=t,type=ModelRequestCompleted",
		"GET executionevents taskName=t,type=ModelRequestFailed",
		"GET executionevents taskName=t,type=ModelRequestStarted",
		"GET tasks/t",
		"GET tasks/t/result",
		"PATCH tasks/t/status",
		"POST tasks/t/events",
	}
)

// TestCallsOfAPlainTask pins which requests the controllers send for a task of type ai without an Agent, and how often
// they reconcile it. It does not run in parallel with other tests, because they share the counter of reconciles.
func TestCallsOfAPlainTask(t *testing.T) { //nolint:paralleltest // see above
	c := &calls{reconciles: map[types.UID]bool{}}
	goOn := filepath.Join(t.TempDir(), "go")
	script := "while [ ! -e " + goOn + " ]; do sleep 0.01; done\n"
	p := standalone.NewPlatform(t, script, func(o *standalone.Options) {
		worker, dir := o.WorkerBinary, o.Path("runs")
		o.Controllers = func(ctx context.Context, cfg *rest.Config) error {
			e, err := process.Open(ctx, process.Options{Dir: dir, Command: []string{worker}, ControllerURL: cfg.Host, CAFile: filepath.Join(dir, "unused")})
			if err != nil {
				return err
			}
			defer func() { _ = e.Close() }()
			cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return &counted{calls: c, next: rt}
			})
			return controller.Run(ctx, cfg, controller.Options{Tasks: taskcontroller.Options{Executor: e, LocalRuns: true, MaxRunning: 10}})
		}
	})
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	if _, err := p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), key, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}
	if _, err := p.API().Providers("default").Create(t.Context(), provider, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ai := func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt = v1alpha1.TaskTypeAI, nil, "Say it."
		s.AI = &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}}
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Run("warm", ai) // makes the worker's account
	p.AwaitPhase("warm", v1alpha1.TaskSucceeded)
	if err := os.Remove(goOn); err != nil {
		t.Fatal(err)
	}
	c.take()
	before := reconciles(t)
	p.Run("t", ai)
	p.Await("t", func(k *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(k.Status.Conditions, v1alpha1.ConditionJobCreated)
	})
	start, starting := c.take()
	begun := reconciles(t)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)
	end, ending := c.take()
	ended := reconciles(t)
	t.Logf("%d reconciles until the run is recorded, with %d requests:\n  %s", begun-before, len(start), strings.Join(start, "\n  "))
	t.Logf("%d reconciles after that, with %d requests:\n  %s", ended-begun, len(end), strings.Join(end, "\n  "))
	if n := len(end); n < 2 || end[n-2] != "POST tasks/t/events" || end[n-1] != "PATCH tasks/t/status" {
		t.Errorf("the terminal event is not followed by the status alone: %v", end)
	}
	slices.Sort(end) // some are concurrent
	if d := cmp.Diff(wantStart, start); d != "" {
		t.Errorf("requests until the run is recorded (-want +got):\n%s", d)
	}
	if d := cmp.Diff(wantEnd, end); d != "" {
		t.Errorf("requests at the end (-want +got):\n%s", d)
	}
	if starting != 2 || ending != 1 {
		t.Errorf("%d reconciles sent the requests of the start and %d those of the end, want 2 and 1", starting, ending)
	}
	// Each patch causes one more reconcile, which sends no requests. Those of the previous task and of this one's end may or may
	// not be counted.
	if n := ended - before; n > 8 {
		t.Errorf("%d reconciles of the task, want 8 at most", n)
	}
}
