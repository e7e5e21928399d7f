// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

// TestRestored: an event that was accepted before a backup is recognised by a server that the backup was restored into: at once, 31 days later
// when its record is gone, and when the clock is set back by a day. Something else under its id is refused and counted, and makes no task. Two
// ids with equal texts make two tasks.
func TestRestored(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	event := chatadapter.Event("a", "t", "hello")
	name := x.accept(event)
	x.delivery(name, delivered)
	x.delivery(x.accept(chatadapter.Event("b", "t", "hello")), delivered)
	x = restored(t, x)
	again := func(when string, state v1alpha1.GatewayEventState) {
		t.Helper()
		if r := x.post(event); r.Code != http.StatusAccepted || r.Status != protocol.ReplyDuplicate || r.EventID != name || r.State != string(state) {
			t.Errorf("%s: %+v", when, r)
		}
		if r := x.post(chatadapter.Event("a", "t", "something else")); r.Code != http.StatusConflict {
			t.Errorf("%s, something else: %+v", when, r)
		}
	}
	again("restored", v1alpha1.GatewayEventCompleted)
	if s := x.event(name).Status; s.Duplicates != 1 || s.Mismatches != 1 {
		t.Errorf("%+v", s)
	}
	if n := x.tasks(); n != 2 {
		t.Errorf("%d tasks of two events", n)
	}
	x.clock.By.Store(int64(31 * 24 * time.Hour))
	kit.Await(t, "the record is not kept any more", func() bool {
		_, err := x.API().GatewayEvents("default").Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	again("31 days later", "")
	x.clock.By.Store(int64(30 * 24 * time.Hour))
	again("a day before that", "")
	x.clock.By.Store(int64(-24 * time.Hour))
	again("a day before the backup", "")
	x.clock.By.Store(0)
	x.delivery(x.accept(chatadapter.Event("c", "t", "hello")), delivered)
	if got := x.adapter.Said("t"); !slices.Equal(got, []string{"You said: hello", "You said: hello", "You said: hello"}) {
		t.Errorf("%q", got)
	}
}

// tasks returns how many tasks answer events.
func (x *connected) tasks() int {
	x.t.Helper()
	return len(kit.Must[*v1alpha1.TaskList](x.t)(x.Tasks().List(x.t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelGateway})).Items)
}

// restored takes a backup, stops the server, and returns one that the backup was restored into.
func restored(t *testing.T, x *connected) *connected {
	t.Helper()
	file, dir := filepath.Join(t.TempDir(), "x.tar"), t.TempDir()
	if out, errs, code := standalone.Command(t.Context(), x.Kubeconfig, "backup", file); code != 0 {
		t.Fatalf("backup: exit code %d\n%s%s", code, out, errs)
	}
	if err := os.CopyFS(filepath.Join(dir, "pki"), os.DirFS(filepath.Join(x.DataDir, "pki"))); err != nil {
		t.Fatal(err)
	}
	x.Stop(t)
	if out, err := exec.CommandContext(t.Context(), kit.Bin(t, "platform"), "restore", file, "--data-dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	y := &connected{t: t, adapter: x.adapter, clock: &quickclock.Ahead{}}
	worker := kit.Bin(t, "platform-worker")
	y.Platform = &standalone.Platform{T: t, Server: standalone.Start(t, standalone.OnAPort(t), func(o *standalone.Options) {
		o.DataDir, o.Clock, o.Controllers, o.WorkerBinary, o.Gateways.Allow = dir, y.clock, nil, worker, []string{x.adapter.Host()}
	})}
	y.awaitGateway(func(g *v1alpha1.Gateway) bool { return g.Status.Ready })
	return y
}
