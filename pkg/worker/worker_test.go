// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/container"
	"github.com/platform-ai/platform/pkg/worker/runners"
	"github.com/platform-ai/platform/test/quickclock"
)

const (
	token       = "token-0123456789"
	providerKey = "provider-key-0123456789"
)

func environment(change map[string]string) func(string) string {
	env := map[string]string{
		runspec.EnvTaskName: "t", runspec.EnvTaskNamespace: "ns", runspec.EnvTaskUID: "uid", runspec.EnvAttempt: "2",
		runspec.EnvControllerURL: "https://127.0.0.1:1", runspec.EnvWorkDir: "/tmp", runspec.EnvCredentials: runspec.CredentialsStdin,
		"PATH": os.Getenv("PATH"),
	}
	maps.Copy(env, change)
	return func(name string) string { return env[name] }
}

func credentials() *bytes.Reader {
	raw, err := json.Marshal(runspec.Credentials{Token: token, ProviderKeys: map[string]string{"n/p": providerKey}})
	if err != nil {
		panic(err)
	}
	return bytes.NewReader(raw)
}

// newTestWorker is a worker whose outboxes are not started: what it records stays in the
// queues. Its requests are not sent.
func newTestWorker(t *testing.T, change func(*Config)) *worker {
	t.Helper()
	c, err := LoadConfig(environment(nil), credentials())
	if err != nil {
		t.Fatal(err)
	}
	c.WorkDir, c.TempDir, c.ArtifactsDir = t.TempDir(), t.TempDir(), t.TempDir()
	if change != nil {
		change(c)
	}
	w := newWorker(c, &client.API{}, clock.RealClock{})
	w.runners = runners.All()
	w.post = func(context.Context, string, []byte, ...string) error { return errors.New("nobody is there") }
	return w
}

func queued(w *worker) []string {
	var out []string
	for _, e := range w.events.out.queue {
		out = append(out, fmt.Sprintf("%s %s", e.Type, e.Content.Raw))
	}
	return out
}

// logged returns the log as it is when the output has paused.
func logged(w *worker) string {
	w.log.windowed()
	w.log.windowed()
	return strings.Join(w.log.out.queue, "")
}

func TestLoadConfig(t *testing.T) {
	c, err := LoadConfig(environment(map[string]string{runspec.EnvWebFetchAllow: "localhost:80", runspec.EnvCodeMemoryKB: "1024"}), credentials())
	if err != nil || c.Attempt != 2 || c.Credentials.ProviderKeys["n/p"] != providerKey || c.FetchAllow[0] != "localhost:80" || c.CodeLimits.MemoryBytes != 1<<20 {
		t.Errorf("%+v, %v", c, err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(`{"token":"`+token+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := LoadConfig(environment(map[string]string{runspec.EnvCredentials: file}), nil); err != nil || c.Credentials.Token != token {
		t.Errorf("%v", err)
	}
	limited := environment(map[string]string{runspec.EnvCredentials: file, runspec.EnvSecretHosts: `{"providers":{"n/p":{"rule":"api.openai.com","set":true}}}`})
	if c, err := LoadConfig(limited, nil); err != nil || c.Credentials.Hosts.Providers["n/p"] != (egress.Hosts{Rule: "api.openai.com", Set: true}) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := LoadConfig(environment(map[string]string{runspec.EnvCredentials: file, runspec.EnvSecretHosts: "{"}), nil); !errors.Is(err, ErrUsage) {
		t.Errorf("hosts that cannot be read: %v", err)
	}
	for name, value := range map[string]string{
		runspec.EnvTaskName: "", runspec.EnvTaskUID: "", runspec.EnvControllerURL: "", runspec.EnvWorkDir: "", runspec.EnvAttempt: "0",
		runspec.EnvCredentials: "/no/such/file", runspec.EnvWebFetchAllow: "nonsense", runspec.EnvCodeCPUSeconds: "-1",
	} {
		if _, err := LoadConfig(environment(map[string]string{name: value}), credentials()); !errors.Is(err, ErrUsage) {
			t.Errorf("%s=%q: %v", name, value, err)
		}
	}
	if _, err := LoadConfig(environment(nil), strings.NewReader(`{"token": "`+token)); !errors.Is(err, ErrUsage) || strings.Contains(err.Error(), token) {
		t.Errorf("got %v", err)
	}
	if _, err := LoadConfig(environment(nil), strings.NewReader(`{}`)); !errors.Is(err, ErrUsage) {
		t.Errorf("no token: %v", err)
	}
}

// TestMisconfiguredWorkerSaysWhy runs the real entry point.
func TestMisconfiguredWorkerSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination")
	code := Main(t.Context(), environment(map[string]string{runspec.EnvAttempt: "", runspec.EnvTerminationLog: path}), credentials(), runners.All())
	var got runspec.Termination
	raw, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(raw, &got) != nil {
		t.Fatalf("%s, %v", raw, err)
	}
	if code != runspec.ExitUsage || got.Reason != v1alpha1.ReasonWorkerMisconfigured || got.ExitCode != code || !strings.Contains(got.Message, runspec.EnvAttempt) {
		t.Errorf("%d %+v", code, got)
	}
}

// TestRecorder: keys in order, no credential, and a line in the log for each event.
func TestRecorder(t *testing.T) {
	w := newTestWorker(t, nil)
	w.events.Record(event.New(v1alpha1.EventWorkerStarted, v1alpha1.SeverityInfo, "", "begun with "+token, map[string]any{"n": providerKey}))
	e := event.New(v1alpha1.EventModelMessage, v1alpha1.SeverityInfo, "", "", map[string]any{"iteration": 1})
	e.ContentText = "my key is " + providerKey + "\nand password=hunter2222"
	w.events.Record(e)
	var keys []string
	last := int64(-1)
	for _, e := range w.events.out.queue {
		keys = append(keys, e.DedupKey)
		if e.Attempt != 2 || e.ElapsedMicros == nil || *e.ElapsedMicros < last {
			t.Errorf("attempt %d, time %v after %d", e.Attempt, e.ElapsedMicros, last)
			continue
		}
		last = *e.ElapsedMicros
	}
	if diff := cmp.Diff([]string{"uid/2/1", "uid/2/2"}, keys); diff != "" {
		t.Error(diff)
	}
	raw, err := json.Marshal(w.events.out.queue)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(raw), logged(w)} {
		if strings.Contains(text, token) || strings.Contains(text, providerKey) || strings.Contains(text, "hunter2222") || !strings.Contains(text, "[REDACTED]") {
			t.Errorf("got %s", text)
		}
	}
	if log := logged(w); strings.Count(log, "\n") != 2 || !strings.Contains(log, "WorkerStarted: begun with") {
		t.Errorf("got %s", log)
	}
}

func TestLogLines(t *testing.T) {
	w := newTestWorker(t, nil)
	for _, piece := range []string{"one\ntw", "o with " + token[:8], token[8:] + "\n\n", "bad \xff\n", strings.Repeat("x", maxLine+5), "\nend"} {
		if n, err := w.log.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Error(n, err)
		}
	}
	if w.log.windowed(); len(w.log.out.queue) > 1 { // the long line settles what came before it
		t.Errorf("%d pieces were queued while lines came", len(w.log.out.queue))
	}
	want := "one\ntwo with [REDACTED]\n\nbad \uFFFD\n" + strings.Repeat("x", maxLine+5) + "\n"
	if diff := cmp.Diff(want, logged(w)); diff != "" {
		t.Error(diff)
	}
}

// TestUploadTries checks that the result is tried at least 5 times, with 2, 4, 8 and 16 s
// between the tries, and again until the worker's token has expired.
func TestUploadTries(t *testing.T) {
	const s = time.Second
	down := status(http.StatusServiceUnavailable)
	for name, tt := range map[string]struct {
		fail  func(try int) error
		tries int
		waits []time.Duration
		ok    bool
	}{
		"at once":          {func(int) error { return nil }, 1, nil, true},
		"third time":       {func(n int) error { return map[bool]error{true: errors.New("refused")}[n < 3] }, 3, []time.Duration{2 * s, 4 * s}, true},
		"after long":       {func(n int) error { return map[bool]error{true: down}[n < 8] }, 8, []time.Duration{2 * s, 4 * s, 8 * s, 16 * s, 16 * s, 16 * s, 16 * s}, true},
		"token expired":    {func(n int) error { return map[bool]error{true: down, false: client.ErrToken}[n < 3] }, 3, []time.Duration{2 * s, 4 * s}, false},
		"refused for good": {func(int) error { return status(http.StatusForbidden) }, 1, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorker(t, nil)
			c := quickclock.New()
			w.clock = c
			tries := 0
			w.post = func(_ context.Context, contentType string, body []byte, path ...string) error {
				tries++
				if contentType != "application/octet-stream" || string(body) != "the result, [REDACTED]" || path[0] != "result" {
					t.Errorf("%s %s %v", contentType, body, path)
				}
				return tt.fail(tries)
			}
			err := w.submitResult(t.Context(), fitResult("the result, "+providerKey, w.secret))
			if tries != tt.tries || (err == nil) != tt.ok || !cmp.Equal(tt.waits, c.Waits()) {
				t.Errorf("%v after %d tries and %v", err, tries, c.Waits())
			}
			if submitted := len(queued(w)) == 1; submitted != tt.ok {
				t.Errorf("events %v", queued(w))
			}
		})
	}
}

func TestResultSizes(t *testing.T) {
	w := newTestWorker(t, nil)
	var got []byte
	w.post = func(_ context.Context, _ string, body []byte, _ ...string) error { got = body; return nil }
	if err := w.submitResult(t.Context(), " \n"); err != nil || got != nil {
		t.Errorf("a blank result was sent: %q, %v", got, err)
	}
	if err := w.submitResult(t.Context(), fitResult(strings.Repeat("é", maxResult), w.secret)); err != nil || len(got) > maxResult || !strings.HasSuffix(string(got), "is cut here]\n") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestArtifacts(t *testing.T) {
	w := newTestWorker(t, nil)
	outside := filepath.Join(t.TempDir(), "secret")
	dir := w.config.ArtifactsDir
	for path, content := range map[string]string{"a.txt": "alpha", "sub/b.json": "{}", "large": strings.Repeat("x", maxArtifact+1), "refused": "r"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(outside, []byte("hidden"), 0o600), os.Symlink(outside, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	w.post = func(_ context.Context, contentType string, body []byte, path ...string) error {
		if path[1] == "refused" {
			return status(http.StatusForbidden)
		}
		got[strings.Join(path, "/")] = contentType + " " + string(body)
		return nil
	}
	if err := w.submitArtifacts(t.Context(), nil); err != nil {
		t.Error(err)
	}
	want := map[string]string{"artifacts/a.txt": "application/octet-stream alpha", "artifacts/sub_b.json": "application/octet-stream {}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var events []string
	for _, e := range queued(w) {
		events = append(events, strings.Fields(e)[0])
	}
	wantEvents := []string{"ArtifactUploadCompleted", "ArtifactUploadFailed", "ArtifactUploadFailed", "ArtifactUploadCompleted"}
	if diff := cmp.Diff(wantEvents, events); diff != "" {
		t.Error(diff)
	}
}

// TestArtifactsWithOneName: files in folders whose names in the API are those of other files do not overwrite them, also if another
// worker delivers.
func TestArtifactsWithOneName(t *testing.T) {
	w := newTestWorker(t, nil)
	for _, path := range []string{"a/b", "a_b", "a_b-2", "c/d/e", "c/d_e", "f"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(w.config.ArtifactsDir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.config.ArtifactsDir, path), []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	w.post = func(_ context.Context, _ string, body []byte, path ...string) error {
		got[path[1]] = string(body)
		return nil
	}
	if err := w.submitArtifacts(t.Context(), shownNames(w.config.ArtifactsDir, w.secret)); err != nil {
		t.Error(err)
	}
	want := map[string]string{"a_b": "a_b", "a_b-2": "a_b-2", "a_b-3": "a/b", "c_d_e": "c/d/e", "c_d_e-2": "c/d_e", "f": "f"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func containerTask(script string) *v1alpha1.Task {
	task := theTask()
	task.Spec = v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeContainer, Command: []string{"bash", "-c"}, Args: []string{script},
		Env: []corev1.EnvVar{{Name: "GREETING", Value: "hello"}, {Name: runspec.EnvTaskName, Value: "forged"}},
	}
	return task
}

// TestContainer runs real commands.
func TestContainer(t *testing.T) {
	t.Setenv("WORKER_SECRET", "hunter22")
	w := newTestWorker(t, func(c *Config) { c.HostCommands = true })
	d, err := container.Runner.Run(t.Context(), w.given(containerTask(`echo $GREETING $PLATFORM_TASK_NAME; pwd; env | grep -c WORKER_SECRET; echo warn >&2; echo `+providerKey)))
	if err != nil || !strings.HasPrefix(d.Text, "hello t\n"+w.config.WorkDir+"\n0\n") || strings.Contains(d.Text, "warn") || d.Content["exitCode"] != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if log := logged(w); !strings.Contains(log, "hello t\n") || !strings.Contains(log, "warn\n") || strings.Contains(log, providerKey) {
		t.Errorf("log %s", log)
	}
	for script, reason := range map[string]string{"exit 3": v1alpha1.ReasonCommandFailed, "kill -9 $$": v1alpha1.ReasonCommandFailed} {
		if _, err := container.Runner.Run(t.Context(), w.given(containerTask(script))); classify(err).Reason != reason || classify(err).Exit != runspec.ExitFailed {
			t.Errorf("%s: %v", script, err)
		}
	}
	missing := containerTask("")
	missing.Spec.Command = []string{"no-such-command-here"}
	if _, err := container.Runner.Run(t.Context(), w.given(missing)); classify(err).Reason != v1alpha1.ReasonCommandNotRun {
		t.Errorf("got %v", err)
	}
}

func TestContainerIsRefused(t *testing.T) {
	w := newTestWorker(t, nil)
	if _, err := container.Runner.Run(t.Context(), w.given(containerTask("echo no"))); classify(err).Reason != v1alpha1.ReasonHostCommandsNotAllowed || !strings.Contains(err.Error(), "--allow-host-commands") {
		t.Errorf("got %v", err)
	}
}

// TestContainerStops: the command gets SIGTERM, and what it printed until then is kept.
func TestContainerStops(t *testing.T) {
	w := newTestWorker(t, func(c *Config) { c.HostCommands = true })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := filepath.Join(w.config.WorkDir, "ready")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(ready); err == nil {
				cancel()
			}
		}
	}()
	d, err := container.Runner.Run(ctx, w.given(containerTask(`trap 'echo bye; exit 0' TERM; echo begun; touch ready; while :; do sleep 0.02; done`)))
	if classify(err).Reason != v1alpha1.ReasonWorkerStopped || d.Text != "begun\nbye\n" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestClassify(t *testing.T) {
	for err, want := range map[error]struct {
		reason string
		exit   int
	}{
		runner.Unavailable("Reason", "m"):     {"Reason", runspec.ExitUnavailable},
		status(http.StatusNotFound):           {v1alpha1.ReasonReferenceInvalid, runspec.ExitFailed},
		status(http.StatusServiceUnavailable): {v1alpha1.ReasonServerUnreachable, runspec.ExitUnavailable},
		errors.New("surprise"):                {v1alpha1.ReasonInternalError, runspec.ExitFailed},
	} {
		if f := classify(fmt.Errorf("wrapped: %w", err)); f.Reason != want.reason || f.Exit != want.exit {
			t.Errorf("%v: got %s, %d", err, f.Reason, f.Exit)
		}
	}
}

func TestTermination(t *testing.T) {
	s := &secrets{seen: redact.Seen{Known: redact.KnownOf(providerKey)}}
	for _, message := range []string{"short", strings.Repeat("é", 5000), strings.Repeat("\x01", 5000), "the key " + providerKey} {
		raw := termination(runspec.Termination{Reason: "Reason", Message: message, ExitCode: 1, Ended: true}, s)
		var got runspec.Termination
		if err := json.Unmarshal(raw, &got); err != nil || len(raw) > maxTermination || got.Reason != "Reason" || !got.Ended || got.Message == "" || strings.Contains(got.Message, providerKey) {
			t.Errorf("%d bytes, %v, %.80q", len(raw), err, got.Message)
		}
	}
	path := filepath.Join(t.TempDir(), "termination")
	for range 2 {
		if err := writeTermination(path, []byte("x")); err != nil {
			t.Error(err)
		}
	}
}
