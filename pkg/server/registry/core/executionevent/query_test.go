// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executionevent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// TestQuery: what the log has an index for narrows the query; anything else is matched event by event.
func TestQuery(t *testing.T) {
	event := &v1alpha1.ExecutionEvent{}
	event.Name, event.Namespace, event.Labels = "e", "n", map[string]string{"a": "b"}
	event.TaskName, event.SessionName, event.Type, event.Severity = "t", "s", v1alpha1.EventModelMessage, v1alpha1.SeverityInfo
	types := []v1alpha1.EventType{v1alpha1.EventModelMessage}
	for _, tc := range []struct {
		fields, labels string
		want           eventlog.Query
		matched        bool // event by event
		matches        bool
	}{
		{"", "", eventlog.Query{Namespace: "n"}, false, true},
		{"taskName=t", "", eventlog.Query{Namespace: "n", Task: "t"}, false, true},
		{"sessionName=s,type=ModelMessage", "", eventlog.Query{Namespace: "n", Session: "s", Types: types}, false, true},
		{"severity=info,metadata.name=e", "", eventlog.Query{Namespace: "n", Name: "e", Severity: []v1alpha1.EventSeverity{v1alpha1.SeverityInfo}}, false, true},
		{"taskName!=t", "", eventlog.Query{Namespace: "n"}, true, false},
		{"taskName=t,taskName!=u", "", eventlog.Query{Namespace: "n", Task: "t"}, true, true},
		{"taskName=", "", eventlog.Query{Namespace: "n"}, true, false},
		{"metadata.namespace=other", "", eventlog.Query{Namespace: "n"}, true, false},
		{"taskName=t", "a=b", eventlog.Query{Namespace: "n", Task: "t"}, true, true},
		{"", "a=c", eventlog.Query{Namespace: "n"}, true, false},
	} {
		byLabel, err := labels.Parse(tc.labels)
		if err != nil {
			t.Fatal(err)
		}
		got := query("n", &internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(tc.fields), LabelSelector: byLabel}, nil)
		if d := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(eventlog.Query{}, "Match")); d != "" {
			t.Errorf("%s %s: %s", tc.fields, tc.labels, d)
		}
		if (got.Match != nil) != tc.matched || tc.matched && got.Match(event) != tc.matches {
			t.Errorf("%s %s: matched event by event: %v, want %v and %v", tc.fields, tc.labels, got.Match != nil, tc.matched, tc.matches)
		}
	}
}
