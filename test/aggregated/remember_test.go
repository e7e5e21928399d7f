// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/worker"
)

// counter counts requests for Pods and for Jobs.
type counter struct {
	next       http.RoundTripper
	pods, jobs atomic.Int32
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.Contains(r.URL.Path, "/pods/"):
		c.pods.Add(1)
	case strings.Contains(r.URL.Path, "/jobs/"):
		c.jobs.Add(1)
	}
	return c.next.RoundTrip(r)
}

// The server asks the host once for a Pod and its Job, however many requests come. It asks for the Pod again when its
// knowledge that the Pod is active has become too old.
func TestWorkersAreRemembered(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "remembered")
	o := w.task(t, "a", "")
	j, p := w.job(t, "a-1", "a", o)
	w.publish(t, o, v1alpha1.TaskRunning, j.Name, j.UID, p)

	asked := &counter{}
	config := s.Config()
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		asked.next = rt
		return asked
	})
	host := must(kubernetes.NewForConfig(config))(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	f := must(worker.New(worker.Options{
		Pods: host.CoreV1(), Jobs: host.BatchV1(), Serializer: scheme.Codecs, Clock: clock,
		Task: func(ctx context.Context, namespace, name string) (*v1alpha1.Task, error) {
			return w.platform.CoreV1alpha1().Tasks(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}))(t)
	caller := &user.DefaultInfo{Name: serviceaccount.MakeUsername(w.namespace, v1alpha1.ServiceAccountAIWorker), Extra: map[string][]string{
		serviceaccount.PodNameKey: {p.Name}, serviceaccount.PodUIDKey: {string(p.UID)},
	}}
	handler := f.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, _ := request.UserFrom(r.Context())
		if got := u.GetExtra()[v1alpha1.ExtraTaskUID]; len(got) != 1 || got[0] != string(o.UID) || len(caller.Extra) != 2 {
			t.Errorf("the user is %v, was %v", u, caller)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	ask := func() int {
		info := &request.RequestInfo{IsResourceRequest: true, APIGroup: v1alpha1.GroupName, Verb: "list", Resource: "tasks", Namespace: w.namespace}
		ctx := request.WithRequestInfo(request.WithUser(t.Context(), caller), info)
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		return rec.Code
	}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if code := ask(); code != http.StatusTeapot {
				t.Errorf("got %d", code)
			}
		})
	}
	wg.Wait()
	expect := func(code int, pods, jobs int32) {
		t.Helper()
		if got := ask(); got != code || asked.pods.Load() != pods || asked.jobs.Load() != jobs {
			t.Errorf("got %d after %d requests for Pods and %d for Jobs; want %d, %d, %d", got, asked.pods.Load(), asked.jobs.Load(), code, pods, jobs)
		}
	}
	expect(http.StatusTeapot, 1, 1)
	clock.SetTime(time.Unix(30, 0))
	expect(http.StatusTeapot, 2, 1)
	w.end(t, p)
	expect(http.StatusTeapot, 2, 1)
	clock.SetTime(time.Unix(60, 0))
	expect(http.StatusForbidden, 3, 1)
	w.publish(t, o, v1alpha1.TaskRunning, "a-2", "")
	clock.SetTime(time.Unix(59, 0))
	expect(http.StatusForbidden, 3, 1) // the status is never cached
}
