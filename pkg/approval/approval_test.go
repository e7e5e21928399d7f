// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/event"
)

func TestID(t *testing.T) {
	id := ID("ns", "task", "u", "exec", "a", "")
	if len(id) != 64 || strings.ToLower(id) != id {
		t.Errorf("id %q", id)
	}
	seen := map[string]string{id: "first"}
	for name, other := range map[string]string{
		"shifted":      ID("nst", "ask", "u", "exec", "a", ""),
		"spec":         ID("ns", "task", "u", "exec", "a", "b"),
		"other uid":    ID("ns", "task", "v", "exec", "a", ""),
		"other digest": ID("ns", "task", "u", "exec", "b", ""),
		"framing":      ID("ns", "task", "u", "exec1:a", "", ""),
	} {
		if was, ok := seen[other]; ok {
			t.Errorf("%s has the id of %s", name, was)
		}
		seen[other] = name
	}
}

// SHA-256 of {"a":1}.
func TestDigest(t *testing.T) {
	if d, err := Digest([]byte(`{"a":1.0}`)); err != nil || d != "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862" {
		t.Errorf("%s %v", d, err)
	}
	if d, err := Digest([]byte(`{"a":1,"a":2}`)); !errors.Is(err, canonical.ErrNone) {
		t.Errorf("%q %v", d, err)
	}
}

func TestPreview(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3d", 9)
	for name, tc := range map[string]struct{ in, has string }{
		"small":     {`{ "path": "/tmp/x", "n": 1 }`, `{"path":"/tmp/x","n":1}`},
		"secret":    {`{"command":"push","token":"` + secret + `"}`, `[REDACTED]`},
		"not json":  {`{"a": ` + secret, `[REDACTED]`},
		"not utf-8": {"\"\xff\"", `"`},
		"long text": {`{"body":"` + strings.Repeat("word ", 10_000) + `","to":"x"}`, `"to":"x"`},
		"long list": {`[` + strings.Repeat(`"some words",`, 20_000) + `1]`, `"truncated":true`},
		"escapes":   {`["` + strings.Repeat(`\u0001`, 50_000) + `","` + strings.Repeat(`\"`, 9_000) + `"]`, ""},
		"html":      {`{"html":"<b>&</b>"}`, `<b>&</b>`},
	} {
		got := Preview([]byte(tc.in))
		if !json.Valid(got) || len(got) > MaxPreviewBytes || !utf8.Valid(got) {
			t.Errorf("%s: %d bytes: %.100s", name, len(got), got)
		}
		if !strings.Contains(string(got), tc.has) || strings.Contains(string(got), secret) {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// stream is a task's stream. It sets the fields of events that the server sets.
type stream struct {
	seq    int64
	events []*v1alpha1.ExecutionEvent
}

func (s *stream) add(e *v1alpha1.ExecutionEvent) *v1alpha1.ExecutionEvent {
	s.seq++
	e.Namespace, e.TaskName, e.Seq = "ns", "t", s.seq
	e.Name, e.ResourceVersion = event.Name("t", s.seq), strconv.FormatInt(100+s.seq, 10)
	e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "core.platform.ai/v1alpha1", Kind: "Task", Name: "t", UID: "u"}}
	e.CreatedAt = metav1.NewMicroTime(time.Unix(1000+s.seq, 0).UTC())
	e.CreationTimestamp = metav1.NewTime(time.Unix(1000+s.seq, 0).UTC())
	s.events = append(s.events, e)
	return e
}

func spec(tool string) v1alpha1.ApprovalSpec {
	return v1alpha1.ApprovalSpec{
		TaskName: "t", TaskUID: "u", RootTaskUID: "u", RequestedBy: "alice", Action: "delete it", RiskSummary: "it is gone",
		Severity: v1alpha1.SeverityWarning, TargetTool: tool, ToolCallID: "call-1",
		TargetArgsDigest: strings.Repeat("ab", 32), TargetArgsPreview: &apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)},
		Timeout: "10m", ExpiresAt: &metav1.MicroTime{Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)},
		Binding: &v1alpha1.ApprovalBinding{TaskAttempt: 2},
	}
}

func idOf(tool string) string { return ID("ns", "t", "u", tool, strings.Repeat("ab", 32), "") }

func TestFold(t *testing.T) {
	var s stream
	s.add(RequestEvent("ns", spec("one")))
	s.add(RequestEvent("ns", spec("two")))
	s.add(&v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage})
	s.add(DecisionEvent(v1alpha1.EventApprovalApproved, idOf("two"), Decision{Actor: "bob", Reason: "fine", TaskUID: "u"}))
	s.add(DecisionEvent(v1alpha1.EventApprovalDeclined, idOf("two"), Decision{Actor: "eve", TaskUID: "u"})) // too late
	s.add(DecisionEvent(v1alpha1.EventApprovalDeclined, idOf("three"), Decision{}))                         // not requested
	s.add(DecisionEvent(v1alpha1.EventApprovalDeclined, idOf("one"), Decision{TaskUID: "other"}))           // another task
	s.add(OutcomeEvent(idOf("one"), Outcome{Outcome: v1alpha1.ApprovalRunning}))                            // not approved
	s.add(OutcomeEvent(idOf("two"), Outcome{Outcome: v1alpha1.ApprovalRunning}))
	s.add(OutcomeEvent(idOf("two"), Outcome{Outcome: v1alpha1.ApprovalFailed, Reason: "no disk"}))
	s.add(OutcomeEvent(idOf("two"), Outcome{Outcome: v1alpha1.ApprovalSucceeded})) // it has ended
	for _, e := range s.events {
		if err := event.Validate(e); err != nil {
			t.Error(err)
		}
		event.Sanitize(e)
	}
	got := Fold(s.events)
	if len(got) != 2 {
		t.Fatalf("%d approvals", len(got))
	}
	for i, tool := range []string{"one", "two"} {
		if diff := cmp.Diff(spec(tool), got[i].Spec); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(v1alpha1.ApprovalStatus{State: v1alpha1.ApprovalPending, RequestedSeq: 1}, got[0].Status); diff != "" {
		t.Error(diff)
	}
	at := metav1.NewMicroTime(time.Unix(1004, 0).UTC())
	if diff := cmp.Diff(v1alpha1.ApprovalStatus{
		State: v1alpha1.ApprovalApproved, RequestedSeq: 2, DecisionSeq: 4, DecisionTime: &at, DecisionReason: "fine", DecisionActor: "bob",
		ExecutionOutcome: v1alpha1.ApprovalFailed, ExecutionReason: "no disk",
	}, got[1].Status); diff != "" {
		t.Error(diff)
	}
	m := got[1].ObjectMeta
	if m.Name != idOf("two") || m.ResourceVersion != "110" || m.Labels[v1alpha1.LabelTask] != "t" || m.OwnerReferences[0].UID != "u" || m.CreationTimestamp.Unix() != 1002 {
		t.Errorf("metadata %+v", m)
	}
	if m.UID == got[0].UID || len(m.UID) != 36 || m.UID[14] != '8' {
		t.Errorf("uids %s, %s", got[0].UID, m.UID)
	}
}

func TestRemove(t *testing.T) {
	var s stream
	var state State
	ask := s.add(RequestEvent("ns", spec("one")))
	state.Apply(ask)
	decide := s.add(DecisionEvent(v1alpha1.EventApprovalExpired, idOf("one"), Decision{Actor: "system"}))
	state.Apply(decide)
	before, after := state.Remove(ask)
	if before == nil || before.Status.State != v1alpha1.ApprovalExpired || after != nil {
		t.Errorf("before %v, after %v", before, after)
	}
	if before, after = state.Remove(decide); before != nil || after != nil || len(state.All()) != 0 {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestEventsWithoutUID(t *testing.T) {
	var s stream
	e := s.add(RequestEvent("ns", spec("one")))
	e.Content.Raw = []byte(strings.Replace(string(e.Content.Raw), `"approvalID"`, `"id"`, 1))
	e.Content.Raw = []byte(strings.Replace(string(e.Content.Raw), `"taskUID":"u",`, ``, 1))
	got := Fold(s.events)
	if len(got) != 1 || got[0].Spec.TaskUID != types.UID("u") || got[0].Name != idOf("one") {
		t.Errorf("%+v", got)
	}
}

func TestLongTexts(t *testing.T) {
	sp := spec("one")
	sp.Action = strings.Repeat("ä ", 2000)
	sp.RiskSummary = "password=hunter2hunter2 " + strings.Repeat("x ", 2000)
	var p payload
	if err := json.Unmarshal(RequestEvent("ns", sp).Content.Raw, &p); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{p.Action, p.RiskSummary} {
		if n := utf8.RuneCountInString(s); n != MaxTextChars || strings.Contains(s, "hunter2") {
			t.Errorf("%d characters: %.40s", n, s)
		}
	}
}
