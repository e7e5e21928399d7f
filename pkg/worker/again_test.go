// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/runspec"
)

// TestRemovedEverywhereAfter gives a run a secret that something identifies once, in an event, in its log or in its result.
// From then on it is removed from everything that the run says, where nothing identifies it. What was sent before stays.
func TestRemovedEverywhereAfter(t *testing.T) {
	for _, secret := range []string{"Tr!cky-Passphrase", "Zk4Qx7hunter2", "Passw0rd", "correct horse battery staple", "wL7<Rm2>Kd9&"} {
		says := map[string]func(*worker, string) string{
			"event": func(w *worker, text string) string {
				e := event.New(v1alpha1.EventModelMessage, v1alpha1.SeverityInfo, "", text, map[string]any{"said": []any{text}})
				e.ContentText = text
				w.events.Record(e)
				raw, err := json.Marshal(w.events.out.queue[len(w.events.out.queue)-1])
				if err != nil {
					t.Fatal(err)
				}
				var told struct {
					Summary, ContentText string
					Content              struct{ Said []string }
				}
				if err := json.Unmarshal(raw, &told); err != nil {
					t.Fatal(err)
				}
				return string(raw) + told.Summary + told.ContentText + strings.Join(told.Content.Said, "")
			},
			"log": func(w *worker, text string) string {
				logged(w)
				w.log.out.queue = nil
				if _, err := w.log.Write([]byte(text + "\n")); err != nil {
					t.Fatal(err)
				}
				return logged(w)
			},
			"result": func(w *worker, text string) (sent string) {
				w.post = func(_ context.Context, _ string, body []byte, _ ...string) error { sent = string(body); return nil }
				if err := w.submitResult(t.Context(), fitResult(text, w.secret)); err != nil {
					t.Fatal(err)
				}
				return sent
			},
			"termination": func(w *worker, text string) string {
				return string(termination(runspec.Termination{Reason: "Reason", Message: text, ExitCode: 1}, w.secret))
			},
		}
		for first, tell := range says {
			w := newTestWorker(t, nil)
			if got := says["log"](w, "it printed "+secret); !strings.Contains(got, secret) {
				t.Fatalf("%q was removed from the log before anything identified it: %s", secret, got)
			}
			tell(w, `password: "`+secret+`"`)
			for later, say := range says {
				if got := say(w, "it printed "+secret+", and again '"+secret+"'"); strings.Contains(got, secret) || !strings.Contains(got, "[REDACTED]") {
					t.Errorf("%q, identified in the %s, stays in the %s: %s", secret, first, later, got)
				}
			}
		}
	}
}

// TestTokenCutBetweenEvents: no event says the rest of a token with whose beginning the text of the event before ended.
func TestTokenCutBetweenEvents(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3dE6gH9k", 4)[:36]
	for cut := 4; cut <= len(token)-4; cut++ {
		w := newTestWorker(t, nil)
		for _, text := range []string{"it says " + token[:cut], token[cut:] + " there"} {
			e := event.New(v1alpha1.EventModelMessage, v1alpha1.SeverityInfo, "", "", nil)
			e.ContentText = text
			w.events.Record(e)
		}
		if got := w.events.out.queue[1].ContentText; strings.Contains(got, token[max(cut, len(token)-8):]) || !strings.HasSuffix(got, " there") {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
}
