// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func (s *server) mustSession(name, kind string) *v1alpha1.Session {
	s.t.Helper()
	return s.MustApply("sessions", "apiVersion: core.platform.ai/v1alpha1\nkind: Session\nmetadata: {name: "+name+"}\nspec: {sessionType: "+kind+"}\n").(*v1alpha1.Session)
}

func (s *server) session(name string) *v1alpha1.Session {
	s.t.Helper()
	obj, err := s.Storage["sessions"].(rest.Getter).Get(s.User(), name, &metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return obj.(*v1alpha1.Session)
}

// say appends messages, given as JSON, and returns the status code and the answer.
func (s *server) say(ctx context.Context, session, query, items string) (int, string) {
	s.t.Helper()
	w := s.Call(ctx, "sessions/transcript", session, "", "POST "+query, []byte(`{"items":[`+items+`]}`))
	return w.Code, w.Body.String()
}

// read returns the transcript as "1:content 2:content continue=2".
func (s *server) read(ctx context.Context, session, query string) string {
	s.t.Helper()
	w := s.Call(ctx, "sessions/transcript", session, "", "GET "+query, nil)
	if w.Code != http.StatusOK {
		return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
	}
	var page v1alpha1.SessionTranscript
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, m := range page.Items {
		out = append(out, fmt.Sprintf("%d:%s", m.Order, m.Content))
	}
	if page.Continue != "" {
		out = append(out, "continue="+page.Continue)
	}
	return strings.Join(out, " ")
}

func TestTranscript(t *testing.T) {
	s := start(t)
	s.mustSession("s", "task")
	if got := s.Call(s.User(), "sessions/transcript", "s", "", "GET ", nil).Body.String(); !strings.Contains(got, `"items":[]`) || !strings.Contains(got, `"kind":"SessionTranscript"`) {
		t.Errorf("empty: %s", got)
	}
	code, body := s.say(s.User(), "s", "", `{"id":"a","role":"user","content":"one","order":99},{"id":"b","role":"assistant","content":"my key is ghp_abcdefghijklmnopqrstuvwxyz0123456789"}`)
	if code != http.StatusCreated || strings.Contains(body, "ghp_") || !strings.Contains(body, `"messageCount":2`) || !strings.Contains(body, `"order":1`) {
		t.Errorf("append: %d %s", code, body)
	}
	if st := s.session("s").Status; st.MessageCount != 2 || st.UpdatedAt == nil {
		t.Errorf("status: %+v", st)
	}
	if code, body = s.say(s.User(), "s", "?dryRun=All", `{"role":"user","content":"x"}`); code != http.StatusCreated {
		t.Errorf("dry run: %d %s", code, body)
	}
	for i := range 5 {
		if code, body = s.say(s.User(), "s", "", fmt.Sprintf(`{"id":"c%d","role":"user","content":"c%d"}`, i, i)); code != http.StatusCreated {
			t.Fatalf("append: %d %s", code, body)
		}
	}
	if code, body = s.say(s.User(), "s", "", `{"id":"c1","role":"user","content":"c1"}`); code != http.StatusCreated || !strings.Contains(body, `"order":4`) {
		t.Errorf("append again: %d %s", code, body)
	}
	if code, body = s.say(s.User(), "s", "", `{"id":"c1","role":"user","content":"other"}`); code != http.StatusConflict {
		t.Errorf("append of another with the same id: %d %s", code, body)
	}
	for query, want := range map[string]string{
		"?limit=1":              "1:one continue=1",
		"?limit=2&after=2":      "3:c0 4:c1 continue=4",
		"?limit=2&continue=6":   "7:c4",
		"?after=3&through=c2":   "4:c1 5:c2",
		"?newest=2":             "6:c3 7:c4",
		"?newest=2&through=c1":  "3:c0 4:c1",
		"?through=ghost":        `404 messages.core.platform.ai "ghost" not found`,
		"?limit=501":            `400 limit: "501": must be a number from 1 to 500`,
		"?newest=0&after=x":     `400 newest: "0": must be a number from 1 to 500; after: "x": must be a number`,
		"?newest=1&limit=1":     "400 newest: cannot be used together with limit",
		"?after=1&continue=1":   "400 continue: cannot be used together with after",
		"?newest=1&continue=1s": `400 continue: "1s"`,
	} {
		if got := s.read(s.User(), "s", query); got != want && (len(want) < 4 || want[3] != ' ' || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestTranscriptIsValidated(t *testing.T) {
	s := start(t)
	s.mustSession("s", "task")
	for items, want := range map[string]string{
		``:                               "items: Required value",
		`{"content":"x"}`:                "items[0].role: Required value",
		`{"role":"robot","content":"x"}`: `items[0].role: Unsupported value: "robot"`,
		`{"role":"user","content":"x"},{"role":"user"}`:                                      "items[1].content: Required value: a message of role user needs it",
		`{"role":"assistant"}`:                                                               "items[0].content: Required value",
		`{"role":"tool","content":"x"}`:                                                      "items[0].toolCallID: Required value",
		`{"role":"user","content":"x","toolCallID":"c"}`:                                     "items[0].toolCallID: Forbidden",
		`{"role":"user","content":"x","toolCalls":[{}]}`:                                     "items[0].toolCalls: Forbidden",
		`{"role":"assistant","toolCalls":[{"id":"c"}]}`:                                      "items[0].toolCalls[0].name: Required value",
		`{"role":"user","content":"x","id":"a\nb"}`:                                          "items[0].id: Invalid value",
		`{"role":"user","content":"x","metadata":{"k":"` + strings.Repeat("v", 5000) + `"}}`: "items[0].metadata: Invalid value",
		`{"role":"user","content":"` + strings.Repeat("x", 1<<20+1) + `"}`:                   "items[0].content: Invalid value: must be at most 1048576 bytes",
	} {
		if code, body := s.say(s.User(), "s", "", items); code != http.StatusUnprocessableEntity || !strings.Contains(body, want) {
			t.Errorf("%.80s: %d %.300s, want %s", items, code, body, want)
		}
	}
	for body, want := range map[string]int{
		`{"items":[{"role":"user","content":"x","colour":1}]}`:        http.StatusBadRequest,
		`{"kind":"Session","apiVersion":"core.platform.ai/v1alpha1"}`: http.StatusBadRequest,
		`no JSON`: http.StatusBadRequest,
		`{"items":[{"role":"user","id":"ghp_abcdefghijklmnopqrstuvwxyz0123456789","content":"x"}]}`: http.StatusBadRequest,
		strings.Repeat(" ", 15<<20+1): http.StatusRequestEntityTooLarge,
	} {
		if w := s.Call(s.User(), "sessions/transcript", "s", "", "POST ?fieldValidation=Strict", []byte(body)); w.Code != want {
			t.Errorf("%.60s: %d %s", body, w.Code, w.Body)
		}
	}
	if got := s.read(s.User(), "s", ""); got != "" {
		t.Errorf("something was stored: %s", got)
	}
}

func TestTranscriptOfAChatIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	for kind, want := range map[string]bool{"chat": true, "task": false} {
		s.mustSession(kind, kind)
		for i := range 12 {
			item := fmt.Sprintf(`{"role":"user","content":"%d %s"}`, i, strings.Repeat("lorem ipsum ", 5000))
			if code, body := s.say(s.User(), kind, "", item); code != http.StatusCreated {
				t.Fatalf("%d %s", code, body)
			}
		}
		var page v1alpha1.SessionTranscript
		if err := json.Unmarshal(s.Call(s.User(), "sessions/transcript", kind, "", "GET ", nil).Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		if page.Truncated != want || page.Items[0].Order != 1 || page.Items[len(page.Items)-1].Order != 12 || int64(len(page.Items)) != page.MessageCount ||
			int64(s.session(kind).Status.MessageCount) != page.MessageCount {
			t.Errorf("%s: %d messages of %d, truncated %v", kind, len(page.Items), page.MessageCount, page.Truncated)
		}
	}
}

func TestWorkersReadTheirOwnSession(t *testing.T) {
	s := start(t)
	s.mustSession("s", "task")
	s.mustSession("other", "task")
	if code, body := s.say(s.User(), "s", "", `{"role":"user","content":"hello"}`); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	a := s.mustTask("a", `{type: container, sessionRef: {name: s}}`)
	b := s.mustTask("b", `{type: container}`)
	again, elsewhere := a.DeepCopy(), a.DeepCopy()
	again.UID, elsewhere.Namespace = "before", "elsewhere"
	if got := s.read(s.worker(a), "s", ""); got != "1:hello" {
		t.Errorf("its own: %s", got)
	}
	refused := func(who *v1alpha1.Task, session string) {
		t.Helper()
		if got := s.read(s.worker(who), session, ""); !strings.HasPrefix(got, "403 ") {
			t.Errorf("%s/%s %s reads %s: %s", who.Namespace, who.Name, who.UID, session, got)
		}
	}
	refused(a, "other")
	refused(b, "s")
	refused(again, "s")
	refused(elsewhere, "s")
	if code, body := s.say(s.worker(a), "s", "", `{"role":"user","content":"x"}`); code != http.StatusForbidden {
		t.Errorf("a worker appends: %d %s", code, body)
	}
	s.SetPhase("a", v1alpha1.TaskSucceeded)
	refused(a, "s")
	if w := s.Call(s.User(), "sessions/transcript", "s", "more", "GET ", nil); w.Code != http.StatusNotFound {
		t.Errorf("below: %d", w.Code)
	}
}

func TestBusySessionsAreNotDeleted(t *testing.T) {
	s := start(t)
	sess := s.mustSession("s", "task")
	a := s.mustTask("a", `{type: container, sessionRef: {name: s}}`)
	b := s.mustTask("b", `{type: container, sessionRef: {name: s}}`)
	if code, body := s.say(s.User(), "s", "", `{"role":"user","content":"hello"}`); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	status := func(st v1alpha1.SessionStatus) {
		t.Helper()
		if _, err := s.Update(s.User(), "sessions/status", "s", func(o runtime.Object) { o.(*v1alpha1.Session).Status = st }); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(why string) {
		t.Helper()
		_, _, err := s.Storage["sessions"].(rest.GracefulDeleter).Delete(coretest.WithPath(s.User(), "sessions"), "s", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), why) {
			t.Errorf("delete: %v, want %q", err, why)
		}
		_, err = s.Storage["sessions"].(rest.CollectionDeleter).DeleteCollection(coretest.WithPath(s.User(), "sessions"), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &internalversion.ListOptions{})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), why) {
			t.Errorf("deletecollection: %v, want %q", err, why)
		}
	}
	status(v1alpha1.SessionStatus{ActiveTask: "a", ActiveTaskUID: a.UID, WaitingTasks: []string{"b"}, WaitingCount: 1})
	refused("the session is busy: task a holds it")
	s.SetPhase("a", v1alpha1.TaskFailed)
	refused("the session is busy: task b waits for it")
	s.SetPhase("b", v1alpha1.TaskCancelled)
	status(v1alpha1.SessionStatus{ActiveTask: "b", ActiveTaskUID: "another", WaitingTasks: []string{"gone", b.Name}, WaitingCount: 2})
	s.Remove("sessions", "s")
	if info, err := s.Said.Info(t.Context(), sess.UID); err != nil || info.Messages != 0 {
		t.Errorf("its transcript stays: %+v, %v", info, err)
	}
}

// Transcripts of sessions that no longer exist are deleted when the server starts.
func TestTranscriptsOfGoneSessionsAreSwept(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir)
	sess := s.mustSession("s", "task")
	for _, uid := range []types.UID{"gone", sess.UID} {
		if _, err := s.Said.Append(t.Context(), uid, 0, []v1alpha1.SessionMessage{{Role: v1alpha1.RoleUser, Content: "hello"}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s = startIn(t, dir)
	for { // until the test's own time limit
		info, err := s.Said.Info(t.Context(), "gone")
		if err != nil {
			t.Fatal(err)
		}
		if info.Messages == 0 {
			break
		}
	}
	if got := s.read(s.User(), "s", ""); got != "1:hello" {
		t.Errorf("the other: %s", got)
	}
}
