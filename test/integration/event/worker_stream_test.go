// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A stream that a worker opened ends with its run, and like a watch it sends nothing that comes later. Streams of people continue.
func TestWorkersStreamsEndWithTheirRun(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		t := s.t
		kit.Must[*unstructured.Unstructured](t)(s.In(t, sessions).Create(t.Context(), session("s"), metav1.CreateOptions{}))
		own := s.task("own", "s")
		s.task("next", "s")
		// This is more than the role of workers grants, so that the worker can open a stream at all.
		s.Server.Token(t, "default", v1alpha1.ServiceAccountAIWorker, "view")
		s.Server.PublishRun(t, "default", "own")
		token := kit.Must[*authenticationv1.TokenRequest](t)(s.Kubernetes(t).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), v1alpha1.ServiceAccountAIWorker,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "core.platform.ai/v1alpha1", Kind: "Task", Name: "own", UID: own.GetUID(),
			}}}, metav1.CreateOptions{}))
		c := rest.AnonymousClientConfig(s.Admin)
		c.BearerToken = token.Status.Token
		worker := &streams{Server: s.Server, t: t, client: kit.Must[*http.Client](t)(rest.HTTPClientFor(c))}
		t.Cleanup(worker.client.CloseIdleConnections)

		events := kit.Must[watch.Interface](t)(kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(c)).CoreV1alpha1().ExecutionEvents("default").
			Watch(t.Context(), metav1.ListOptions{FieldSelector: "taskName=own", AllowWatchBookmarks: true}))
		defer events.Stop()
		people, conversation, trace := s.open(sessionsPath+"/s/stream"), worker.open(sessionsPath+"/s/stream"), worker.open(standalone.TasksPath+"/own/stream")
		s.add("own", v1alpha1.EventWorkerStarted)
		for _, open := range []*stream{people, conversation, trace} {
			open.want("1 WorkerStarted")
		}
		first := <-events.ResultChan()
		for first.Type == watch.Bookmark {
			first = <-events.ResultChan()
		}
		if e, ok := first.Object.(*v1alpha1.ExecutionEvent); !ok || e.Type != v1alpha1.EventWorkerStarted {
			t.Errorf("the native watch gets %+v", first)
		}
		s.Server.PublishRun(t, "default", "own") // the next attempt
		s.add("next", v1alpha1.EventModelMessage)
		s.add("own", v1alpha1.EventModelMessage)
		people.want("2 ModelMessage", "3 ModelMessage")
		for _, open := range []*stream{conversation, trace} {
			if got := open.next(); !strings.HasPrefix(got, `1 error {"code":403,`) || !strings.Contains(got, "the run of the caller's credential is over") {
				t.Errorf("the worker gets %q", got)
			}
			open.want("EOF")
		}
		// A bookmark of the watch says up to which revision it would have sent events.
		all := kit.Must[*v1alpha1.ExecutionEventList](t)(s.Core(t).ExecutionEvents("default").
			List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=own"}))
		last := revision(t, &all.Items[len(all.Items)-1])
		for passed := false; !passed; {
			e := <-events.ResultChan()
			b, ok := e.Object.(*v1alpha1.ExecutionEvent)
			if !ok || e.Type != watch.Bookmark {
				t.Fatalf("the native watch gets %s %+v after its run", e.Type, e.Object)
			}
			passed = revision(t, b) >= last
		}
	}, standalone.ManyBookmarks)
}

func revision(t *testing.T, o metav1.Object) int {
	t.Helper()
	n, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
