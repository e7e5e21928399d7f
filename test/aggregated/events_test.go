// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/worker/client"
)

// BenchmarkEventsOfOneWorker measures how many events a second one producer appends with the client of workers, 500 in a
// request, which is what an outbox sends under load: straight to the server, and through kube-apiserver.
func BenchmarkEventsOfOneWorker(b *testing.B) {
	const namespace, perRequest = "rate", 500
	s := Start(b)
	s.namespace(namespace)
	account := s.account(namespace, "producer")
	s.c.Kubectl(b, "--namespace", namespace, "create", "role", "producer", "--verb=create", "--resource=tasks.core.platform.ai/events")
	s.c.Kubectl(b, "--namespace", namespace, "create", "rolebinding", "producer", "--role=producer", "--serviceaccount="+namespace+":producer")
	s.awaitAllowed(namespace, "system:serviceaccount:"+namespace+":producer", "create", "events")
	platform, err := versioned.NewForConfig(s.Config())
	if err != nil {
		b.Fatal(err)
	}
	for name, to := range map[string]*rest.Config{"direct": s.direct(account), "through kube-apiserver": account} {
		b.Run(name, func(b *testing.B) {
			t := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
			t, err := platform.CoreV1alpha1().Tasks(namespace).Create(b.Context(), t, metav1.CreateOptions{})
			if err != nil {
				b.Fatal(err)
			}
			ca := to.CAFile
			if ca == "" {
				ca = s.c.CAFile
			}
			api, err := client.New(client.Config{ServerURL: to.Host, CAFile: ca, Token: to.BearerToken}, clock.RealClock{})
			if err != nil {
				b.Fatal(err)
			}
			sent := 0
			for b.Loop() {
				list := &v1alpha1.ExecutionEventList{}
				for range perRequest {
					sent++
					e := event.New(v1alpha1.EventToolCallCompleted, v1alpha1.SeverityInfo, fmt.Sprint(sent), fmt.Sprintf("call %d of tool read_file", sent),
						map[string]any{"tool": "read_file", "call": sent, "bytes": 1234, "path": "src/main.go"})
					list.Items = append(list.Items, *e)
				}
				if err := api.CoreV1alpha1().Tasks(namespace).AppendEvents(b.Context(), t.Name, list); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
