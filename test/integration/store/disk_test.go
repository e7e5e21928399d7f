// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// fillWithEvents appends events that hardly compress until the server refuses one. It returns how many were stored, and the refusal.
func fillWithEvents(worker *standalone.Client, path string) (stored int, refusal host.Answer) {
	for stored < 100_000 {
		text := make([]byte, 0, 100<<10)
		for n := uint64(stored)*7919 + 1; len(text) < 60<<10; n = n*6364136223846793005 + 1442695040888963407 {
			text = fmt.Appendf(text, "%x ", n)
		}
		if refusal = worker.Post(path, `{"type":"ModelMessage","contentText":"`+string(text)+`"}`); refusal.Code != http.StatusCreated {
			break
		}
		stored++
	}
	return stored, refusal
}

// One task fills the disk of the server with its events. Requests that add to the store are then refused with the reason.
// Everything acknowledged can be read, from the same server and from one that starts on the full disk. Deleting the task
// makes room, and writes are accepted again without a restart.
func TestFullDisk(t *testing.T) {
	dir := standalone.SmallVolume(t, 64)
	s := standalone.Start(t, func(o *standalone.Options) {
		o.DataDir = dir
		o.DiskReserve.Quantity = resource.MustParse("16Mi")
	})
	_, worker := s.RESTTask(t, "a")
	stored, refusal := fillWithEvents(worker, "/internal/v1/events/default/task/a")
	refusal.Problem(t, http.StatusInsufficientStorage, "the disk of the server is full: the volume of "+dir)
	t.Logf("%d events were stored", stored)
	read := func() {
		t.Helper()
		code, body := host.Get(t, s.Config(), standalone.TasksPath+"/a/events?limit=500&type=ModelMessage", "")
		total := strings.Count(body, `"seq":`)
		for last := 0; code == http.StatusOK && strings.Count(body, `"seq":`) > 0 && total < stored; {
			last = total
			code, body = host.Get(t, s.Config(), fmt.Sprintf("%s/a/events?limit=500&type=ModelMessage&after=%d", standalone.TasksPath, last), "")
			total += strings.Count(body, `"seq":`)
		}
		if code != http.StatusOK || total < stored {
			t.Errorf("%d: %d of %d events can be read", code, total, stored)
		}
	}
	read()
	s.Restart(t)
	read()
	s.AwaitReadyz(t)
	admin := s.Kubernetes(t)
	if err := admin.CoreV1().RESTClient().Delete().AbsPath(standalone.TasksPath + "/a").Do(t.Context()).Error(); err != nil {
		t.Fatalf("delete on a full disk: %v", err)
	}
	kit.Await(t, "there is room once the task was deleted", func() bool { // the server purges in the background
		return admin.CoreV1().RESTClient().Post().AbsPath(standalone.TasksPath).SetHeader("Content-Type", "application/json").
			Body([]byte(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"b"},"spec":{"type":"container","image":"x","command":["true"]}}`)).
			Do(t.Context()).Error() == nil
	})
}

// A volume of 200 MiB takes most of that as data, with the options of a server that nobody configured: the logs that are
// written ahead take little of it at any time.
func TestSmallVolume(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	// The rest is the reserve, an eighth, and a third of the data, which is stored as base64.
	const volume, leastData, mostLogs = 200 << 20, 80 << 20, 20 << 20
	dir := standalone.SmallVolume(t, volume>>20)
	s := standalone.Start(t, func(o *standalone.Options) { o.DataDir = dir })
	maps := s.Kubernetes(t).CoreV1().ConfigMaps("default")
	stored, logs := 0, 0
	for stored < volume {
		random := make([]byte, 512<<10)
		_, _ = rand.Read(random)
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, BinaryData: map[string][]byte{"random": random}}, metav1.CreateOptions{})
		if err != nil {
			if !strings.Contains(err.Error(), "the disk of the server is full") {
				t.Fatal(err)
			}
			break
		}
		stored += len(random)
		now := 0
		for _, path := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "store", "*.log"))) {
			if info, err := os.Stat(path); err == nil { // or it was removed meanwhile
				now += int(info.Sys().(*syscall.Stat_t).Blocks * 512)
			}
		}
		logs = max(logs, now)
	}
	t.Logf("%d MiB of data were stored; the logs took up to %d MiB", stored>>20, logs>>20)
	if stored < leastData || logs == 0 || logs > mostLogs {
		t.Errorf("%d MiB of data were stored, at least %d are expected; the logs took up to %d MiB, at most %d are expected", stored>>20, leastData>>20, logs>>20, mostLogs>>20)
	}
}

// What a run writes can fill the volume beyond the reserve. Tasks can be cancelled and deleted even then, also those that
// run, and other objects with finalizers; that makes room.
func TestDeletesOnAFullVolume(t *testing.T) {
	dir := standalone.SmallVolume(t, 96)
	p := standalone.NewPlatform(t, `case $PLATFORM_TASK_NAME in
ended) echo '{"reason":"Completed","message":"done","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"; exit 0 ;;
filling) cat /dev/zero >"$PLATFORM_WORK_DIR/fill" ;;
esac
sleep 600
`, func(o *standalone.Options) {
		o.DataDir = dir
		o.DiskReserve.Quantity = resource.MustParse("16Mi")
	})
	editor, memories := p.REST(t, "default", "ed", "edit"), p.API().Memories("default")
	for _, name := range []string{"discarded", "deleted"} {
		m := &v1alpha1.Memory{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MemorySpec{Content: name}}
		if _, err := memories.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.Run("ended")
	p.AwaitPhase("ended", v1alpha1.TaskSucceeded)
	for _, name := range []string{"stopped", "running", "filling"} {
		p.Run(name)
		p.AwaitPhase(name, v1alpha1.TaskRunning)
	}
	maps := p.Kubernetes(t).CoreV1().ConfigMaps("default")
	kit.Await(t, "the volume is full", func() bool { // it is measured anew now and then
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "more-"}}, metav1.CreateOptions{})
		return err != nil && strings.Contains(err.Error(), " has 0 MiB free")
	})
	if _, err := p.Tasks().Cancel(t.Context(), "stopped", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("cancel: %v", err)
	}
	for range 2 { // a repetition changes nothing
		if _, err := memories.Discard(t.Context(), "discarded", &v1alpha1.MemoryChange{}, metav1.CreateOptions{}); err != nil {
			t.Errorf("discard: %v", err)
		}
	}
	editor.Do(http.MethodDelete, "/api/v1/memories/deleted", "").Want(t, http.StatusNoContent)
	if _, err := memories.Restore(t.Context(), "discarded", &v1alpha1.MemoryChange{}, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("restore: %v", err)
	}
	for _, name := range []string{"ended", "running", "filling"} {
		if err := p.Tasks().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete of %s: %v", name, err)
		}
	}
	for _, name := range []string{"ended", "running", "filling"} {
		kit.Await(t, "end of "+name, func() bool {
			_, err := p.Tasks().Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	p.AwaitPhase("stopped", v1alpha1.TaskCancelled)
}
