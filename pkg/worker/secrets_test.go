// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// lines is a Secret as kubectl makes it of a file: it has several lines, ends with one, and looks like nothing special.
const lines = "the first line of it\nopen-sesame and more words\n  the third, indented\nshort\n"

// TestOwnSecretsStay: what a run was given does not leave it, however its programs repeat it.
func TestOwnSecretsStay(t *testing.T) {
	t.Parallel()
	single := "correct/horse+battery \"staple\""
	encoded := base64.StdEncoding.EncodeToString([]byte(lines))
	output := strings.Join([]string{
		"$ cat file", lines, "$ env", "KEY=" + single, "in a sentence: open-sesame and more words, it says", fmt.Sprintf("%q", lines), url.QueryEscape(single), url.PathEscape(lines),
		encoded[:76], encoded[76:], base64.RawURLEncoding.EncodeToString([]byte("key:" + single)), hex.EncodeToString([]byte(single)), `{"a":"correct\/horse+battery \u0022staple\u0022"}`, "done", "",
	}, "\n")
	w := newTestWorker(t, func(c *Config) { c.Credentials.Env = map[string]string{"FILE": lines, "KEY": single} })

	result := conclude(runner.Result{Text: output}, nil, w.secret).Result
	w.events.Record(event.New(v1alpha1.EventToolCallCompleted, v1alpha1.SeverityInfo, "", output, map[string]any{"output": output, single: []string{lines}}))
	for from := 0; from < len(output); from += 7 {
		if _, err := w.log.Write([]byte(output[from:min(from+7, len(output))])); err != nil {
			t.Fatal(err)
		}
	}
	said := map[string]string{"result": result, "log": logged(w), "events": strings.Join(queued(w), "\n") + w.events.out.queue[0].Summary}
	for where, text := range said {
		if !strings.Contains(text, "done") || !strings.Contains(text, "in a sentence") {
			t.Errorf("the %s lacks what is not secret: %s", where, text)
		}
		for _, part := range []string{
			"first line", "sesame", "more words", "third", "horse", "staple", encoded[:20], encoded[40:60], encoded[len(encoded)-12:], "Y29ycmVjdC9ob3Jz", "636f7272656374", "%22staple", "first+line",
		} {
			if strings.Contains(text, part) {
				t.Errorf("the %s shows %q: %s", where, part, text)
			}
		}
	}
}

// TestLongLines: a value does not show where a line of the log is broken.
func TestLongLines(t *testing.T) {
	t.Parallel()
	const value = "пароль-от-дома-и-сада"
	w := newTestWorker(t, func(c *Config) { c.Credentials.Env = map[string]string{"KEY": value} })
	for before := maxLine - len(value) - 2; before <= maxLine+1; before++ {
		_, _ = w.log.Write([]byte(strings.Repeat("x", before) + value + strings.Repeat("y", 20) + "\n"))
	}
	if log := logged(w); strings.Contains(log, "роль") || strings.Contains(log, "дом") || strings.Contains(log, "сад") || !strings.Contains(log, "xy") && !strings.Contains(log, "x[REDACTED]y") {
		t.Errorf("the log shows %d bytes, with a part of the value", len(log))
	}
}

// TestShownSecrets: a run says which of its values it cannot remove.
func TestShownSecrets(t *testing.T) {
	t.Parallel()
	w := newTestWorker(t, func(c *Config) {
		c.Credentials.Env = map[string]string{"PIN": "1234", "STAGE": "production", "KEY": "swordfish", "EMPTY": "\n"}
	})
	task := theTask()
	e := w.started(task, w.given(task))
	w.events.Record(e)
	if got := string(e.Content.Raw); e.Severity != v1alpha1.SeverityWarning || !strings.Contains(e.Summary, "the variable PIN, the variable STAGE") || !strings.Contains(got, `"unhidden":["the variable PIN","the variable STAGE"]`) {
		t.Errorf("%s: %s %s", e.Severity, e.Summary, got)
	}
	quiet := newTestWorker(t, nil)
	if e := quiet.started(task, quiet.given(task)); e.Severity != v1alpha1.SeverityInfo || strings.Contains(string(e.Content.Raw), "unhidden") {
		t.Errorf("%s: %s", e.Severity, e.Content.Raw)
	}
}

// TestSecretsInArtifactNames: an artifact whose name has a secret gets another name, also from a worker that has no secrets.
func TestSecretsInArtifactNames(t *testing.T) {
	t.Parallel()
	const value = "open-sesame"
	w := newTestWorker(t, func(c *Config) { c.Credentials.Env = map[string]string{"KEY": value} })
	for _, name := range []string{"a-" + value + ".txt", "b.txt", value + "/c", hex.EncodeToString([]byte(value))} {
		path := filepath.Join(w.config.ArtifactsDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	end := conclude(runner.Result{}, nil, w.secret)
	end.Artifacts = shownNames(w.config.ArtifactsDir, w.secret)
	later := newTestWorker(t, func(c *Config) { c.ArtifactsDir, c.Deliver = w.config.ArtifactsDir, true })
	for what, w := range map[string]*worker{"at once": w, "later": later} {
		var names []string
		w.post = func(_ context.Context, _ string, _ []byte, path ...string) error {
			if len(names) == 3 {
				return status(http.StatusForbidden)
			}
			names = append(names, path[len(path)-1])
			return nil
		}
		if end, _ := w.submit(t.Context(), end); end.Termination.Reason != v1alpha1.ReasonCompleted {
			t.Errorf("%s: %+v", what, end)
		}
		if got := strings.Join(names, " "); got != "[REDACTED] a-[REDACTED].txt b.txt" {
			t.Errorf("%s: names %s", what, got)
		}
		if events := strings.Join(queued(w), "\n"); strings.Contains(events, value) || strings.Contains(events, "6f70656e") || !strings.Contains(events, "[REDACTED]_c") {
			t.Errorf("%s: %s", what, events)
		}
	}
}
