// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executionevent

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Selectable fields, besides metadata.name and metadata.namespace.
const (
	fieldTask     = "taskName"
	fieldSession  = "sessionName"
	fieldRoot     = "rootTask"
	fieldType     = "type"
	fieldSeverity = "severity"
)

// Leftover reports whether a task belongs to a tree whose root is gone while
// another task has the root's name.
type Leftover func(task types.UID) bool

// query translates selectors into a query that uses the indexes of the log
// where possible, and otherwise matches each event. A root is the task that
// has the name: what an earlier one left over is not selected.
func query(namespace string, o *internalversion.ListOptions, leftover Leftover) eventlog.Query {
	q := eventlog.Query{Namespace: namespace}
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		narrow(&q, o.FieldSelector)
	}
	byField, byLabel := o.FieldSelector, o.LabelSelector
	if byField != nil && exact(byField) {
		byField = nil
	}
	if byLabel != nil && byLabel.Empty() {
		byLabel = nil
	}
	if byField != nil || byLabel != nil {
		q.Match = func(e *v1alpha1.ExecutionEvent) bool {
			return (byField == nil || byField.Matches(fieldsOf(e))) && (byLabel == nil || byLabel.Matches(labels.Set(e.Labels)))
		}
	}
	if match := q.Match; q.Root != "" {
		q.Match = func(e *v1alpha1.ExecutionEvent) bool {
			// A root has its own name, so only delegated tasks are looked up.
			if e.TaskName != e.RootTask && slices.ContainsFunc(e.OwnerReferences, func(o metav1.OwnerReference) bool { return leftover(o.UID) }) {
				return false
			}
			return match == nil || match(e)
		}
	}
	return q
}

// narrow sets in q each field for which the selector requires one value.
func narrow(q *eventlog.Query, s fields.Selector) {
	for _, f := range []struct {
		path string
		take func(string)
	}{
		{"metadata.name", func(v string) { q.Name = v }},
		{"metadata.namespace", func(v string) {
			if q.Namespace == "" {
				q.Namespace = v
			}
		}},
		{fieldTask, func(v string) { q.Task = v }},
		{fieldSession, func(v string) { q.Session = v }},
		{fieldRoot, func(v string) { q.Root = v }},
		{fieldType, func(v string) { q.Types = []v1alpha1.EventType{v1alpha1.EventType(v)} }},
		{fieldSeverity, func(v string) { q.Severity = []v1alpha1.EventSeverity{v1alpha1.EventSeverity(v)} }},
	} {
		if v, ok := s.RequiresExactMatch(f.path); ok && v != "" {
			f.take(v)
		}
	}
}

// exact reports whether narrow covers the whole selector: each field occurs
// once, requires one nonempty value, and is not metadata.namespace, which is
// left to Match.
func exact(s fields.Selector) bool {
	seen := map[string]bool{}
	for _, r := range s.Requirements() {
		if v, ok := s.RequiresExactMatch(r.Field); !ok || v == "" || r.Field == "metadata.namespace" || seen[r.Field] {
			return false
		}
		seen[r.Field] = true
	}
	return true
}

func fieldsOf(e *v1alpha1.ExecutionEvent) fields.Set {
	return fields.Set{
		"metadata.name":      e.Name,
		"metadata.namespace": e.Namespace,
		fieldTask:            e.TaskName,
		fieldSession:         e.SessionName,
		fieldRoot:            e.RootTask,
		fieldType:            string(e.Type),
		fieldSeverity:        string(e.Severity),
	}
}
