// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A byte of the store's largest table is flipped while the server is down. The objects in that place cannot be read, and their errors say
// what is damaged and what to do. All others can, and so can events; writes and watches go on.
func TestFlippedByteOfATable(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	const objects = 100
	maps := s.Kubernetes(t).CoreV1().ConfigMaps("default")
	for i := range objects {
		random := make([]byte, 16<<10)
		_, _ = rand.Read(random)
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%02d", i)}, Data: map[string]string{"random": hex.EncodeToString(random)}}
		if _, err := maps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, worker := s.RESTTask(t, "a")
	worker.Post("/internal/v1/events/default/task/a", `{"type":"ModelMessage","contentText":"hello"}`).Want(t, http.StatusCreated)
	s.Restart(t) // this writes tables of the log
	s.Stop(t)
	table := flipLargest(t, filepath.Join(s.DataDir, "store"))
	s.StartAgain(t)

	maps = s.Kubernetes(t).CoreV1().ConfigMaps("default")
	damaged := 0
	for i := range objects {
		_, err := maps.Get(t.Context(), fmt.Sprintf("m%02d", i), metav1.GetOptions{})
		if err == nil {
			continue
		}
		damaged++
		unreadable(t, "get", table, err)
	}
	if damaged == 0 || damaged > 4 {
		t.Errorf("%d of %d objects cannot be read", damaged, objects)
	}
	_, err := maps.List(t.Context(), metav1.ListOptions{})
	unreadable(t, "list", table, err)
	w, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != watch.Error {
		t.Errorf("the watch from the present state began with %s", e.Type)
	} else {
		unreadable(t, "watch", table, apierrors.FromObject(e.Object))
	}
	newer := kit.Must[*corev1.ConfigMap](t)(maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}))
	live := kit.Must[watch.Interface](t)(maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: newer.ResourceVersion}))
	defer live.Stop()
	if err := maps.Delete(t.Context(), "new", metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if e := <-live.ResultChan(); e.Type != watch.Deleted {
		t.Errorf("a watch of what comes saw %s: %v", e.Type, e.Object)
	}
	if code, body := host.Get(t, s.Config(), standalone.TasksPath+"/a/events", ""); code != http.StatusOK || !strings.Contains(body, `"hello"`) {
		t.Errorf("events: %d %s", code, body)
	}
	s.AwaitReadyz(t)
}

// unreadable checks the error about what lies in a damaged table.
func unreadable(t *testing.T, verb, table string, err error) {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Code != http.StatusInternalServerError {
		t.Errorf("%s: %v", verb, err)
		return
	}
	for _, want := range []string{table, "with keys from", "wrong checksum", "restore"} {
		if !strings.Contains(status.ErrStatus.Message, want) {
			t.Errorf("%s: the message lacks %q: %s", verb, want, status.ErrStatus.Message)
		}
	}
}

// flipLargest changes a byte of the largest table in a folder and returns its name.
func flipLargest(t *testing.T, dir string) string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	var path string
	var content []byte
	for _, table := range tables {
		if c := kit.Must[[]byte](t)(os.ReadFile(table)); len(c) > len(content) {
			path, content = table, c
		}
	}
	if len(content) < 1<<20 {
		t.Fatalf("the largest table has %d bytes", len(content))
	}
	content[len(content)/2] ^= 0xff
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(path)
}
