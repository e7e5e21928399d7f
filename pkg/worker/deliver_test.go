// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/runners"
	"github.com/platform-ai/platform/pkg/worker/spool"
)

// office is an API server with what a container task needs. It can be closed to what workers
// send, and stores each event once by its key.
type office struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	// answer replaces the answer to a post to a path, if it returns a status code.
	answer func(path string) int
	keys   []string
	types  []v1alpha1.EventType
	log    strings.Builder
	files  map[string]string
	tokens map[string]bool
}

func newOffice(t *testing.T, command ...string) *office {
	o := &office{t: t, files: map[string]string{}, tokens: map[string]bool{}}
	const task = "/apis/core.platform.ai/v1alpha1/namespaces/ns/tasks/t"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+task, func(w http.ResponseWriter, _ *http.Request) {
		reply(t, w, http.StatusOK, &v1alpha1.Task{
			TypeMeta:   metav1.TypeMeta{APIVersion: "core.platform.ai/v1alpha1", Kind: "Task"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "uid"},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: command},
		})
	})
	mux.HandleFunc("POST "+task+"/{path...}", o.post)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

func (o *office) post(w http.ResponseWriter, r *http.Request) {
	path := r.PathValue("path")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		o.t.Error(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens[r.Header.Get("Authorization")] = true
	if o.answer != nil {
		if code := o.answer(path); code != 0 {
			reply(o.t, w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: http.StatusText(code)})
			return
		}
	}
	switch path {
	case "events":
		var list v1alpha1.ExecutionEventList
		if json.Unmarshal(body, &list) != nil || list.Items == nil {
			list.Items = make([]v1alpha1.ExecutionEvent, 1)
			if err := json.Unmarshal(body, &list.Items[0]); err != nil {
				o.t.Error(err)
			}
		}
		for _, e := range list.Items {
			if !slices.Contains(o.keys, e.DedupKey) {
				o.keys, o.types = append(o.keys, e.DedupKey), append(o.types, e.Type)
			}
		}
		reply(o.t, w, http.StatusCreated, &list)
	case "log":
		o.log.Write(body)
		w.WriteHeader(http.StatusNoContent)
	default:
		o.files[path] = string(body)
		w.WriteHeader(http.StatusNoContent)
	}
}

// home is a run's folder, and the environment of its workers.
type home struct {
	dir string
	env map[string]string
}

func newHome(t *testing.T, o *office) *home {
	h := &home{dir: t.TempDir()}
	for _, name := range []string{"work", "artifacts"} {
		if err := os.Mkdir(filepath.Join(h.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.env = map[string]string{
		runspec.EnvControllerURL: o.URL, runspec.EnvHostCommands: "true", runspec.EnvWorkDir: filepath.Join(h.dir, "work"),
		runspec.EnvArtifactsDir: filepath.Join(h.dir, "artifacts"), runspec.EnvSpoolDir: h.spool(), runspec.EnvTerminationLog: filepath.Join(h.dir, "termination"),
	}
	return h
}

func (h *home) spool() string { return filepath.Join(h.dir, "spool") }

func (h *home) termination() string {
	b, _ := os.ReadFile(filepath.Join(h.dir, "termination"))
	return string(b)
}

// deliver runs a worker that delivers what is left, with a token of its own.
func (h *home) deliver(t *testing.T) int {
	t.Helper()
	h.env[runspec.EnvDeliver] = "true"
	return mainWith(t.Context(), environment(h.env), strings.NewReader(`{"token":"another-token"}`), runners.All(), &hasty{})
}

// all returns everything that the server has.
func (o *office) all() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	files := map[string]string{"types": fmt.Sprint(o.types)}
	maps.Copy(files, o.files)
	return files
}

// hasty is a clock on which the pauses between attempts take no time, and a worker that was asked to stop has none left to deliver.
type hasty struct{ noWait }

func (c *hasty) AfterFunc(d time.Duration, f func()) clock.Timer {
	if d == stopPatience || d == 2*stopPatience {
		d = 0
	}
	return c.noWait.AfterFunc(d, f)
}

// work runs a worker with the credentials that an executor gives.
func (h *home) work(ctx context.Context) int {
	return mainWith(ctx, environment(h.env), credentials(), runners.All(), &hasty{})
}

const completed = "[WorkerStarted ArtifactUploadCompleted ResultSubmitted WorkerCompleted]"

// TestStoppedBeforeDelivery: a worker that is asked to stop while the server is unavailable
// leaves everything in the spool, without secrets, and another worker delivers it once.
func TestStoppedBeforeDelivery(t *testing.T) {
	o := newOffice(t, "sh", "-c", `printf made >"$PLATFORM_ARTIFACTS_DIR/a.txt"; echo worked; echo `+providerKey)
	h := newHome(t, o)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.answer = func(path string) int {
		if path == "artifacts/a.txt" {
			stop() // the work is over
		}
		return http.StatusServiceUnavailable
	}
	if code := h.work(ctx); code != runspec.ExitUnavailable || !strings.Contains(h.termination(), v1alpha1.ReasonResultNotSubmitted) {
		t.Errorf("exit %d: %s", code, h.termination())
	}
	if got := o.all(); len(got) != 1 || !spool.Undelivered(h.spool()) {
		t.Fatalf("the server has %v", got)
	}
	noSecretBelow(t, h.dir)

	o.mu.Lock()
	o.answer = nil
	o.mu.Unlock()
	if code := h.deliver(t); code != runspec.ExitSucceeded || !strings.Contains(h.termination(), v1alpha1.ReasonCompleted) || spool.Undelivered(h.spool()) {
		t.Errorf("exit %d: %s", code, h.termination())
	}
	want := map[string]string{"types": completed, "result": "worked\n[REDACTED]\n", "artifacts/a.txt": "made"}
	if diff := cmp.Diff(want, o.all()); diff != "" {
		t.Error(diff)
	}
	if log := o.log.String(); strings.Count(log, "worked\n") != 1 || strings.Contains(log, providerKey) {
		t.Errorf("log: %s", log)
	}
	if !o.tokens["Bearer another-token"] {
		t.Errorf("tokens: %v", o.tokens)
	}
}

// TestDeliveryTime: a worker whose work is over when it is asked to stop goes on delivering if it was given time for that. A
// worker whose work is not over stops.
func TestDeliveryTime(t *testing.T) {
	for _, tt := range []struct {
		name, command string
		code          int
		ended         bool
	}{
		{"work done", "echo worked", runspec.ExitSucceeded, false},
		{"work failed", "echo worked; exit 3", runspec.ExitFailed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOffice(t, "sh", "-c", tt.command)
			h := newHome(t, o)
			h.env[runspec.EnvDeliveryTime] = "5m"
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			o.answer = func(path string) int {
				if path != "result" || ctx.Err() != nil {
					return 0
				}
				stop() // the first try is answered while the worker is asked to stop
				return http.StatusServiceUnavailable
			}
			code := h.work(ctx)
			if code != tt.code || spool.Undelivered(h.spool()) || strings.Contains(h.termination(), `"ended":true`) != tt.ended {
				t.Errorf("exit %d: %s", code, h.termination())
			}
			if got := o.all(); got["result"] != "worked\n" {
				t.Errorf("the server has %v", got)
			}
		})
	}
	t.Run("still working", func(t *testing.T) {
		o := newOffice(t, "sh", "-c", "echo begun; exec sleep 600")
		h := newHome(t, o)
		h.env[runspec.EnvDeliveryTime] = "5m"
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		o.answer = func(path string) int {
			if path == "log" {
				stop()
			}
			if ctx.Err() != nil {
				return http.StatusServiceUnavailable
			}
			return 0
		}
		if code := h.work(ctx); code == runspec.ExitSucceeded || strings.Contains(h.termination(), `"ended"`) || !strings.Contains(h.termination(), v1alpha1.ReasonWorkerStopped) {
			t.Errorf("exit %d: %s", code, h.termination())
		}
	})
}

// TestDeliveredAgain: a delivery that was interrupted at any point can be repeated without
// changing anything.
func TestDeliveredAgain(t *testing.T) {
	o := newOffice(t, "sh", "-c", `printf made >"$PLATFORM_ARTIFACTS_DIR/a.txt"; echo worked`)
	h := newHome(t, o)
	if code := h.work(t.Context()); code != runspec.ExitSucceeded || spool.Undelivered(h.spool()) {
		t.Fatalf("exit %d: %s", code, h.termination())
	}
	before := o.all()
	if before["types"] != completed {
		t.Errorf("events: %s", before["types"])
	}
	if err := os.Remove(filepath.Join(h.spool(), "delivered")); err != nil {
		t.Fatal(err)
	}
	if code := h.deliver(t); code != runspec.ExitSucceeded || spool.Undelivered(h.spool()) {
		t.Errorf("exit %d: %s", code, h.termination())
	}
	if diff := cmp.Diff(before, o.all()); diff != "" {
		t.Error(diff)
	}
}

// TestKilledWorkersEventsArrive: what a worker that was killed during its work left is
// delivered, and the executor still decides how the run ended.
func TestKilledWorkersEventsArrive(t *testing.T) {
	o := newOffice(t)
	h := newHome(t, o)
	s, err := spool.Open(h.spool())
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := s.Events.Append([]byte(`{"type":"WorkerStarted","dedupKey":"uid/2/1"}`))
	_, err2 := s.Log.Append([]byte("a line\n"))
	if err1 != nil || err2 != nil || s.Close() != nil {
		t.Fatal(err1, err2)
	}
	if code := h.deliver(t); code != runspec.ExitUnavailable || h.termination() != "" || spool.Undelivered(h.spool()) {
		t.Errorf("exit %d: %s", code, h.termination())
	}
	if got := o.all(); got["types"] != "[WorkerStarted]" || o.log.String() != "a line\n" || len(got) != 1 {
		t.Errorf("%v, log %s", got, o.log.String())
	}
}

// TestRefusals: a run does not fail if the server permanently refuses events, log or artifacts.
// It fails if the server refuses the result.
func TestRefusals(t *testing.T) {
	for refused, want := range map[string]int{"events": 0, "log": 0, "artifacts/a.txt": 0, "result": runspec.ExitUnavailable} {
		t.Run(refused, func(t *testing.T) {
			o := newOffice(t, "sh", "-c", `printf made >"$PLATFORM_ARTIFACTS_DIR/a.txt"; echo worked`)
			h := newHome(t, o)
			o.answer = func(path string) int {
				if path == refused {
					return http.StatusRequestEntityTooLarge
				}
				return 0
			}
			if code := h.work(t.Context()); code != want || spool.Undelivered(h.spool()) {
				t.Errorf("exit %d: %s", code, h.termination())
			}
		})
	}
}

// TestFullDiskFailsNoRun: a run works, without the safety of a spool, if the spool cannot be created.
func TestFullDiskFailsNoRun(t *testing.T) {
	o := newOffice(t, "sh", "-c", "echo worked")
	h := newHome(t, o)
	h.env[runspec.EnvSpoolDir] = "/proc/self/nothing"
	if code := h.work(t.Context()); code != runspec.ExitSucceeded || o.all()["result"] != "worked\n" {
		t.Errorf("exit %d: %s, %v", code, h.termination(), o.all())
	}
}

// TestNoCredentials: a worker whose parent died before it gave credentials reports that it did nothing.
func TestNoCredentials(t *testing.T) {
	h := newHome(t, newOffice(t))
	if code := Main(t.Context(), environment(h.env), strings.NewReader(""), runners.All()); code != runspec.ExitUnavailable || !strings.Contains(h.termination(), v1alpha1.ReasonNotBegun) {
		t.Errorf("exit %d: %s", code, h.termination())
	}
}

func noSecretBelow(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, secret := range []string{token, providerKey} {
			if strings.Contains(string(raw), secret) {
				t.Errorf("%s holds a secret", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
