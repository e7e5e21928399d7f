// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/test/kit"
)

// TestForksAreToldLater: the events of a fork that find no room on the disk are stored once there is room, and each of them once.
func TestForksAreToldLater(t *testing.T) {
	const mib = 1 << 20
	disk, c := localtest.NewDisk(), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	disk.SetSpace(1024*mib, 1000*mib)
	e, err := local.Open(t.Context(), local.Options{Dir: localtest.Dir, FS: disk.FS(), Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.Open(t.Context(), e, eventlog.Options{Clock: c, PurgeInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	f := Forks{Log: log, Later: later.New(c)}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	task := func(name string) *v1alpha1.Task {
		return &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	}
	source, made := task("source"), task("made")
	events := func(of *v1alpha1.Task) (list []v1alpha1.EventType) {
		page, err := log.TaskPage(t.Context(), stored.Stream(of), 0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			list = append(list, e.Type)
		}
		return list
	}
	disk.SetSpace(1024*mib, mib)
	c.Step(3 * time.Second) // the store measures the space
	for range 2 {           // a request that was repeated
		f.tell(t.Context(), &told{source, made, 7})
	}
	if got := fmt.Sprint(events(source), events(made)); got != "[] []" {
		t.Fatalf("stored on a full disk: %s", got)
	}
	disk.SetSpace(1024*mib, 1000*mib)
	kit.Await(t, "the events are stored", func() bool {
		c.Step(3 * time.Second)
		return fmt.Sprint(events(source), events(made)) == "[TaskForkRequested TaskForkCreated] [TaskForkCreated]"
	})
}
