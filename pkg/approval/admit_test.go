// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

func TestAdmit(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	owner := Owner{Namespace: "ns", Task: "t", UID: "u", RequestedBy: "alice"}
	for _, tc := range []struct {
		name, field string
		change      func(members map[string]any)
	}{
		{"good", "", func(map[string]any) {}},
		{"other members are kept", "", func(m map[string]any) { m["more"] = 1 }},
		{"id under its other name", "", func(m map[string]any) { m["id"] = m["approvalID"]; delete(m, "approvalID") }},
		{"no uid", "", func(m map[string]any) { delete(m, "taskUID") }},
		{"no end", "", func(m map[string]any) { delete(m, "timeout"); delete(m, "expiresAt") }},
		{"a little late", "", func(m map[string]any) { m["expiresAt"] = "2026-01-02T03:03:30Z" }},
		{"no id", "content.approvalID", func(m map[string]any) { delete(m, "approvalID") }},
		{"short id", "content.approvalID", func(m map[string]any) { m["approvalID"] = "abc" }},
		{"another call", "content.approvalID", func(m map[string]any) { m["approvalID"] = idOf("two") }},
		{"another task", "content.taskUID", func(m map[string]any) { m["taskUID"] = "v" }},
		{"no tool", "content.targetTool", func(m map[string]any) { delete(m, "targetTool") }},
		{"other tool", "content.approvalID", func(m map[string]any) { m["targetTool"] = "two" }},
		{"upper digest", "content.targetArgsDigest", func(m map[string]any) { m["targetArgsDigest"] = strings.Repeat("AB", 32) }},
		{"other arguments", "content.approvalID", func(m map[string]any) { m["targetArgsDigest"] = strings.Repeat("cd", 32) }},
		{"bad spec digest", "content.targetSpecDigest", func(m map[string]any) { m["targetSpecDigest"] = "x" }},
		{"long text", "content.action", func(m map[string]any) { m["action"] = strings.Repeat("ä", 1025) }},
		{"long risk", "content.riskSummary", func(m map[string]any) { m["riskSummary"] = strings.Repeat("x", 1025) }},
		{"long preview", "content.targetArgsPreview", func(m map[string]any) { m["targetArgsPreview"] = strings.Repeat("x", 9000) }},
		{"too much", "content", func(m map[string]any) { m["more"] = strings.Repeat("x", 40_000) }},
		{"past", "content.expiresAt", func(m map[string]any) { m["expiresAt"] = "2026-01-02T03:02:05Z" }},
		{"no time", "content.expiresAt", func(m map[string]any) { m["expiresAt"] = "tomorrow" }},
		{"no duration", "content.timeout", func(m map[string]any) { m["timeout"] = "-1m" }},
		{"wrong type", "content.action", func(m map[string]any) { m["action"] = 1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sp := spec("one")
			sp.RequestedBy = "mallory"
			sp.ExpiresAt.Time = now.Add(time.Minute)
			e := RequestEvent("ns", sp)
			e.DedupKey, e.ToolName = "mine", ""
			var m map[string]any
			if err := json.Unmarshal(e.Content.Raw, &m); err != nil {
				t.Fatal(err)
			}
			tc.change(m)
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			e.Content = &apiextensionsv1.JSON{Raw: raw}
			_, err = Admit(e, owner, now)
			if tc.field != "" {
				var f *event.FieldError
				if !errors.As(err, &f) || f.Field != tc.field {
					t.Errorf("got %v, want an error of %s", err, tc.field)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var p payload
			if err := json.Unmarshal(e.Content.Raw, &p); err != nil {
				t.Fatal(err)
			}
			if e.DedupKey != RequestKey(idOf("one")) || e.ToolName != "one" || p.RequestedBy != "alice" || p.TaskUID != "u" || p.ApprovalID != idOf("one") || p.ID != "" {
				t.Errorf("admitted: %+v, %+v", e, p)
			}
		})
	}
}

func TestAdmitTimeout(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sp := spec("one")
	sp.ExpiresAt = nil
	e := RequestEvent("ns", sp)
	if _, err := Admit(e, Owner{Namespace: "ns", Task: "t", UID: "u"}, now); err != nil {
		t.Fatal(err)
	}
	e.Namespace, e.TaskName = "ns", "t"
	if got := Fold([]*v1alpha1.ExecutionEvent{e}); len(got) != 1 || !got[0].Spec.ExpiresAt.Time.Equal(now.Add(10*time.Minute)) {
		t.Errorf("%+v", got)
	}
}

func TestAdmitDecisionsAndOutcomes(t *testing.T) {
	owner := Owner{Namespace: "ns", Task: "t", UID: "u"}
	id := idOf("one")
	bare := func(typ v1alpha1.EventType, content string) *v1alpha1.ExecutionEvent {
		return &v1alpha1.ExecutionEvent{Type: typ, DedupKey: "mine", Content: &apiextensionsv1.JSON{Raw: []byte(content)}}
	}
	e := bare(v1alpha1.EventApprovalExpired, `{"approvalID":"`+id+`"}`)
	if _, err := Admit(e, owner, time.Time{}); err != nil || e.DedupKey != DecisionKey(id) || e.ToolCallID != id || string(e.Content.Raw) != `{"approvalID":"`+id+`","decision":"expired","taskUID":"u"}` {
		t.Errorf("%+v %s %v", e, e.Content.Raw, err)
	}
	e = bare(v1alpha1.EventApprovalExecutionUpdated, `{"approvalID":"`+id+`","executionOutcome":"unknown"}`)
	if _, err := Admit(e, owner, time.Time{}); err != nil || e.DedupKey != OutcomeKey(id, v1alpha1.ApprovalUnknown) {
		t.Errorf("%+v %v", e, err)
	}
	for _, bad := range []*v1alpha1.ExecutionEvent{
		{Type: v1alpha1.EventApprovalApproved},
		bare(v1alpha1.EventApprovalApproved, `[]`), bare(v1alpha1.EventApprovalApproved, `null`), bare(v1alpha1.EventApprovalApproved, `{}`),
		bare(v1alpha1.EventApprovalExecutionUpdated, `{"approvalID":"`+id+`"}`),
		bare(v1alpha1.EventApprovalDeclined, `{"approvalID":"`+id+`","taskUID":"v"}`),
	} {
		if _, err := Admit(bad, owner, time.Time{}); !errors.Is(err, event.ErrInvalid) {
			t.Errorf("%s: %v", bad.Type, err)
		}
	}
	other := bare(v1alpha1.EventToolCallStarted, `{"approvalID":"x"}`)
	if _, err := Admit(other, owner, time.Time{}); err != nil || other.DedupKey != "mine" {
		t.Errorf("%+v %v", other, err)
	}
}

// TestProgramFailureIsAFailure: a call is complete when its program has ended, but an approved call whose program failed has
// not succeeded.
func TestProgramFailureIsAFailure(t *testing.T) {
	e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallCompleted, Content: &apiextensionsv1.JSON{Raw: []byte(`{"approvalID":"` + idOf("one") + `","programFailure":"the program ended with exit code 3"}`)}}
	o, err := Admit(e, Owner{UID: "u"}, time.Time{})
	if err != nil || o == nil {
		t.Fatal(o, err)
	}
	if p, _ := parse(o); p.Outcome != v1alpha1.ApprovalFailed || p.Reason != "the program ended with exit code 3" {
		t.Errorf("%+v", p)
	}
}

// TestCriticalStaysCritical: an approval keeps the highest risk, which no severity of events has.
func TestCriticalStaysCritical(t *testing.T) {
	sp := spec("one")
	sp.Severity = v1alpha1.SeverityCritical
	e := RequestEvent("ns", sp)
	e.Namespace, e.TaskName = "ns", "t"
	if got := Fold([]*v1alpha1.ExecutionEvent{e}); len(got) != 1 || got[0].Spec.Severity != v1alpha1.SeverityCritical || e.Severity != v1alpha1.SeverityError {
		t.Errorf("event of severity %s, %+v", e.Severity, got)
	}
}

// TestAdmitKnowsWhatIsUnknown: the outcome of an approved call that may have been carried out is unknown, and not failed.
func TestAdmitKnowsWhatIsUnknown(t *testing.T) {
	content := `{"approvalID":"` + idOf("one") + `","errorType":"` + OutcomeUnknown + `"}`
	e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallFailed, Summary: "it may have happened", Content: &apiextensionsv1.JSON{Raw: []byte(content)}}
	o, err := Admit(e, Owner{UID: "u"}, time.Time{})
	if err != nil || o == nil {
		t.Fatal(err)
	}
	if p, _ := parse(o); p.Outcome != v1alpha1.ApprovalUnknown || p.Reason != "it may have happened" {
		t.Errorf("%+v", p)
	}
}

func TestAdmitAddsOutcomes(t *testing.T) {
	id := idOf("one")
	for typ, want := range map[v1alpha1.EventType]string{
		v1alpha1.EventToolCallStarted:   "running ",
		v1alpha1.EventToolCallCompleted: "succeeded ",
		v1alpha1.EventToolCallFailed:    "failed no disk",
		v1alpha1.EventModelMessage:      "",
	} {
		e := &v1alpha1.ExecutionEvent{Type: typ, Summary: "no disk", Content: &apiextensionsv1.JSON{Raw: []byte(`{"approvalID":"` + id + `"}`)}}
		got := ""
		o, err := Admit(e, Owner{UID: "u"}, time.Time{})
		if err != nil {
			t.Errorf("%s: %v", typ, err)
		}
		if o != nil {
			p, ok := parse(o)
			if !ok || p.ApprovalID != id {
				t.Errorf("%s: %+v", typ, o)
			}
			got = string(p.Outcome) + " " + p.Reason
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", typ, diff)
		}
		e.Content.Raw = []byte(`{"approvalID":"x"}`)
		if o, err := Admit(e, Owner{UID: "u"}, time.Time{}); err != nil || o != nil {
			t.Errorf("%s of no approval: %+v", typ, o)
		}
	}
}
