// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

func putMessages(t *testing.T, s *coretest.Server, session string, texts ...string) {
	t.Helper()
	body := &v1alpha1.SessionTranscript{}
	for _, text := range texts {
		role, content, _ := strings.Cut(text, ": ")
		body.Items = append(body.Items, v1alpha1.SessionMessage{Role: v1alpha1.MessageRole(role), Content: content})
	}
	if _, err := s.CreateNamed(s.User(), "sessions/transcript", session, body); err != nil {
		t.Fatal(err)
	}
}

func findMessages(t *testing.T, s *coretest.Server, spec v1alpha1.TranscriptSearchSpec) string {
	t.Helper()
	out, err := s.Create(s.User(), "transcriptsearches", &v1alpha1.TranscriptSearch{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range out.(*v1alpha1.TranscriptSearch).Status.Items {
		rows = append(rows, fmt.Sprintf("%s/%d", m.SessionName, m.MessageID))
	}
	return strings.Join(rows, " ")
}

// A worker searches the sessions that its Agent lets it recall, never those of gateways but its own.
func TestTranscriptSearchOfWorkers(t *testing.T) {
	s := start(t)
	for name, kind := range map[string]string{"mine": "task", "other": "task", "outside": "gateway"} {
		s.MustApply("sessions", withHead("kind: Session\nspec: {sessionType: "+kind+"}", name))
		putMessages(t, s.Server, name, "user: an invoice of "+name)
	}
	s.MustApply("agents", withHead("kind: Agent\nspec: {}", "open"))
	s.MustApply("agents", withHead("kind: Agent\nspec: {memory: {recall: Agent}}", "own"))
	s.MustApply("agents", withHead("kind: Agent\nspec: {memory: {recall: Session}}", "closed"))
	for _, tc := range []struct{ agent, session, search, exclude, want string }{
		{"open", "mine", "", "", "mine other"},
		{"open", "mine", "", "mine", "other"},
		{"open", "mine", "other", "", "other"},
		{"open", "mine", "mine", "", "mine"},
		{"open", "mine", "outside", "", ""},
		{"open", "mine", "gone", "", ""},
		{"open", "", "", "", "mine other"},
		{"open", "outside", "", "", "mine other outside"},
		{"own", "mine", "", "", "mine"},
		{"own", "mine", "other", "", "forbidden"},
		{"closed", "mine", "", "", "mine"},
		{"closed", "mine", "other", "", "forbidden"},
		{"closed", "", "", "", ""},
	} {
		spec := "{type: ai, prompt: p, agentRef: {name: " + tc.agent + "}"
		if tc.session != "" {
			spec += ", sessionRef: {name: " + tc.session + "}"
		}
		task := s.mustTask("t", spec+"}")
		out, err := s.Create(s.worker(task), "transcriptsearches", &v1alpha1.TranscriptSearch{Spec: v1alpha1.TranscriptSearchSpec{
			Query: "invoice", SessionName: tc.search, ExcludeSessionName: tc.exclude,
		}})
		got := outcome(err)
		if err == nil {
			var names []string
			for _, m := range out.(*v1alpha1.TranscriptSearch).Status.Items {
				names = append(names, m.SessionName)
			}
			slices.Sort(names)
			got = strings.Join(names, " ")
		}
		if got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
		s.Remove("tasks", "t")
	}
}

// A search finds messages by their words, session and role; those of a deleted session are gone from the index.
func TestTranscriptSearch(t *testing.T) {
	dir := t.TempDir()
	s := coretest.StartIn(t, dir)
	for _, name := range []string{"a", "b"} {
		s.MustApply("sessions", "apiVersion: core.platform.ai/v1alpha1\nkind: Session\nmetadata: {name: "+name+"}\nspec: {sessionType: task}")
	}
	putMessages(t, s, "a", "user: where is the invoice", "assistant: the invoice is in the archive, 東京 office")
	putMessages(t, s, "b", "user: pay the invoices of may")
	check := func(spec v1alpha1.TranscriptSearchSpec, want string) {
		t.Helper()
		if got := findMessages(t, s, spec); got != want {
			t.Errorf("%+v: %q, want %q", spec, got, want)
		}
	}
	check(v1alpha1.TranscriptSearchSpec{Query: "archive"}, "a/2")
	check(v1alpha1.TranscriptSearchSpec{Query: "東京"}, "a/2")
	check(v1alpha1.TranscriptSearchSpec{Query: "invoice", SessionName: "b"}, "b/1")
	check(v1alpha1.TranscriptSearchSpec{Query: "invoice", ExcludeSessionName: "a"}, "b/1")
	check(v1alpha1.TranscriptSearchSpec{Query: "invoice", Roles: []v1alpha1.MessageRole{"assistant"}}, "a/2")
	check(v1alpha1.TranscriptSearchSpec{Query: "invoice archive", Limit: 1}, "a/2")
	out, err := s.Create(s.User(), "transcriptsearches", &v1alpha1.TranscriptSearch{Spec: v1alpha1.TranscriptSearchSpec{Query: "archive", MaxSnippetLength: 20}})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.(*v1alpha1.TranscriptSearch).Status.Items[0].Snippet; len([]rune(got)) != 20 || !strings.Contains(got, "archive") {
		t.Errorf("snippet %q", got)
	}
	for _, bad := range []v1alpha1.TranscriptSearchSpec{{}, {Query: "x", Limit: -1}, {Query: "x", MaxSnippetLength: -1}, {Query: "x", Roles: []v1alpha1.MessageRole{"nobody"}}} {
		if _, err := s.Create(s.User(), "transcriptsearches", &v1alpha1.TranscriptSearch{Spec: bad}); !apierrors.IsBadRequest(err) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	// A transcript that an older server stored is found after a restart.
	old := s.MustApply("sessions", "apiVersion: core.platform.ai/v1alpha1\nkind: Session\nmetadata: {name: old}\nspec: {sessionType: task}").(*v1alpha1.Session)
	var messages []v1alpha1.SessionMessage
	for i := range 450 {
		messages = append(messages, v1alpha1.SessionMessage{Role: "user", Content: fmt.Sprintf("relic%d of earlier days", i)})
	}
	if _, err := s.Said.Append(t.Context(), old.UID, 0, messages); err != nil {
		t.Fatal(err)
	}
	check(v1alpha1.TranscriptSearchSpec{Query: "relic7"}, "")
	if err := s.Said.Catch(t.Context(), transcript.Session{Namespace: "default", Name: "old", UID: old.UID}); err != nil {
		t.Fatal(err)
	}
	check(v1alpha1.TranscriptSearchSpec{Query: "relic7"}, "old/8")
	check(v1alpha1.TranscriptSearchSpec{Query: "relic449"}, "old/450")
	putMessages(t, s, "old", "user: brandnew")
	check(v1alpha1.TranscriptSearchSpec{Query: "brandnew"}, "old/451")
	for _, name := range []string{"a", "b", "old"} {
		s.Remove("sessions", name)
	}
	check(v1alpha1.TranscriptSearchSpec{Query: "invoice relic7 brandnew"}, "")
	if n := s.Rows(t, 'i'); n != 0 {
		t.Errorf("%d rows of the index are left", n)
	}
}
