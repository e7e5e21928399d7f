// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// TestOutageDoesNotStretchTheTrace: the model answers while the server is away, so the server receives the end of the
// request late. The trace shows how long the request took by the worker's clock.
func TestOutageDoesNotStretchTheTrace(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	parsed := kit.Must[*script.Script](t)(script.Parse([]byte("models: [scripted-1]\nturns:\n- name: answer\n  match: {turn: 1}\n  reply: {text: Done.}\n")))
	asked, stopped := make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	answers := script.New(parsed, io.Discard)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask()
		select {
		case <-stopped:
		case <-r.Context().Done():
		}
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(model.Close)
	worker := kit.Bin(t, "platform-worker")
	var dir string
	now := &quickclock.Ahead{}
	p := &standalone.Platform{T: t, Server: standalone.Start(t, func(o *standalone.Options) { o.Clock, o.Controllers, o.WorkerBinary, dir = now, nil, worker, o.DataDir }, standalone.OnAPort(t))}
	c, ctx := p.API(), t.Context()
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(ctx, key, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Provider](t)(c.Providers("default").Create(ctx, &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: model.URL + "/v1", DefaultModel: "scripted-1",
		SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Task](t)(c.Tasks("default").Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "answer", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}},
	}}, metav1.CreateOptions{}))
	<-asked
	p.Stop(t)
	close(stopped)
	kit.Await(t, "the end of the work", func() bool { // the worker has recorded the end of its work
		ends, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*", "spool", "end.json"))
		return len(ends) == 1
	})
	now.By.Store(int64(10 * time.Minute)) // the end is received later than any busy machine works on the request
	p.StartAgain(t)
	c = p.API()
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)

	started, ended := p.EventsOf("t", v1alpha1.EventModelRequestStarted), p.EventsOf("t", v1alpha1.EventModelRequestCompleted)
	if len(started) != 1 || len(ended) != 1 || started[0].ElapsedMicros == nil || ended[0].ElapsedMicros == nil || started[0].Attempt != 1 || ended[0].Attempt != 1 {
		t.Fatalf("%+v, %+v", started, ended)
	}
	took := time.Duration(*ended[0].ElapsedMicros-*started[0].ElapsedMicros) * time.Microsecond
	received := ended[0].CreatedAt.Sub(started[0].CreatedAt.Time)
	if took <= 0 || took >= received {
		t.Fatalf("it took %v by the worker's clock, and %v by the receipts", took, received)
	}
	tr := kit.Must[*v1alpha1.TaskTrace](t)(c.Tasks("default").GetTrace(ctx, "t", metav1.GetOptions{}))
	if r := tr.ModelRequests[0]; len(tr.ModelRequests) != 1 || r.EndedAt == nil || r.EndedAt.Sub(r.StartedAt.Time) != took {
		t.Errorf("the request took %v: %+v", took, r)
	}
	for _, s := range tr.CriticalPath {
		if s.Kind == v1alpha1.TraceKindModel && s.DurationMs > took.Milliseconds() {
			t.Errorf("on the path the request takes %d ms instead of %v", s.DurationMs, took)
		}
	}
}
