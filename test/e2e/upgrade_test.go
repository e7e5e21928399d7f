// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	corev1alpha1 "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// TestUpgrade: with a standby, a rolling update replaces the servers by those of another version, the waiting one first. A standby that
// waits is ready, and the Service goes to the one that serves. What was written before, meanwhile and afterwards is there, and the
// longest pause between two writes is printed.
func TestUpgrade(t *testing.T) {
	p := newTeam(t)
	t.Cleanup(func() {
		p.MustShell(t, "kubectl apply -k testdata/cluster >/dev/null && kubectl -n "+system+" rollout status --timeout=300s statefulset/platform-apiserver")
		p.awaitServer(t)
	})
	rollout := "kubectl -n " + system + " rollout status --timeout=300s statefulset/platform-apiserver"
	p.MustShell(t, "kubectl apply -k testdata/standby && "+rollout)
	if serves := p.serving(t); serves != "platform-apiserver-0" {
		t.Fatalf("%s serves", serves)
	}
	client, err := versioned.NewForConfig(p.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	w := &writer{memories: client.CoreV1alpha1().Memories(p.namespace)}
	writing.Go(func() { w.write(ctx) })
	written := func() {
		t.Helper()
		before := w.count.Load()
		kit.Await(t, "another write is acknowledged", func() bool { return w.count.Load() > before })
	}
	written()
	p.MustShell(t, "kubectl -n "+system+` patch statefulset platform-apiserver -p '{"spec":{"template":{"metadata":{"annotations":{"test.platform.ai/version":"next"}}}}}'`)
	t.Log(p.MustShell(t, rollout))
	written()
	if serves := p.serving(t); serves != "platform-apiserver-1" {
		t.Errorf("%s serves after its replacement, and the other one was there", serves)
	}
	stop()
	writing.Wait()
	list, err := w.memories.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, m := range list.Items {
		stored[m.Name] = true
	}
	for _, name := range w.acknowledged {
		if !stored[name] {
			t.Errorf("%s was acknowledged and is not there", name)
		}
	}
	if versions := p.MustShell(t, "kubectl -n "+system+` get pods -l app.kubernetes.io/name=platform-apiserver -o jsonpath='{.items[*].metadata.annotations.test\.platform\.ai/version}'`); versions != "next next" {
		t.Errorf("versions: %q", versions)
	}
	t.Logf("%d writes, the longest pause between two is %.2f s", len(w.acknowledged), w.pause.Seconds())
}

// serving returns the Pods that the Service selects.
func (p team) serving(t *testing.T) string {
	t.Helper()
	return p.MustShell(t, "kubectl -n "+system+" get pods -l app.kubernetes.io/name=platform-apiserver,platform.ai/serving=true -o jsonpath='{.items[*].metadata.name}'")
}

// writer creates one object after the other, and each until it is there.
type writer struct {
	memories     corev1alpha1.MemoryInterface
	acknowledged []string
	count        atomic.Int64  // of what is acknowledged
	pause        time.Duration // the longest between two acknowledgements
}

func (w *writer) write(ctx context.Context) {
	last := time.Now()
	for n := 0; ctx.Err() == nil; {
		m := &v1alpha1.Memory{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m-%d", n)}, Spec: v1alpha1.MemorySpec{Content: "x"}}
		attempt, end := context.WithTimeout(ctx, 5*time.Second) // an answer may never come from a server that has gone
		_, err := w.memories.Create(attempt, m, metav1.CreateOptions{})
		end()
		if err != nil && !apierrors.IsAlreadyExists(err) {
			time.Sleep(10 * time.Millisecond) // refused, as long as nobody serves
			continue
		}
		w.acknowledged = append(w.acknowledged, m.Name)
		now := time.Now()
		w.pause, last = max(w.pause, now.Sub(last)), now
		w.count.Add(1)
		n++
	}
}
