// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Selectable fields, besides metadata.name and metadata.namespace.
const (
	fieldTask    = "spec.taskName"
	fieldTaskUID = "spec.taskUID"
	fieldRoot    = "spec.rootTask"
	fieldRootUID = "spec.rootTaskUID"
	fieldTool    = "spec.targetTool"
	fieldDigest  = "spec.targetArgsDigest"
	fieldState   = "status.state"

	// These have the names that they have in all kinds.
	fieldTaskName = "taskName"
	fieldRootTask = "rootTask"
)

// selection holds the selectors of a list or a watch.
type selection struct {
	namespace string
	name      string // of the only approval, if a selector requires one name
	task      string // of the only task, if a selector requires one
	fields    fields.Selector
	labels    labels.Selector
	// asked is the part of fields that the request of an approval decides: all but its state.
	asked fields.Selector
	// leftover reports whether a task belongs to a tree whose root is gone while another task has the root's name. It
	// is nil unless a selector requires a root.
	leftover func(types.UID) bool
	// rootUID returns the root of a task whose request an older server stored. It is nil unless a selector requires the
	// UID of a root.
	rootUID func(types.UID) types.UID
}

func (v *view) newSelection(namespace string, o *internalversion.ListOptions) *selection {
	s := &selection{namespace: namespace, fields: o.FieldSelector, labels: o.LabelSelector}
	if s.fields == nil {
		s.fields = fields.Everything()
	}
	if s.labels == nil {
		s.labels = labels.Everything()
	}
	s.asked = stateless(s.fields)
	s.name, _ = s.fields.RequiresExactMatch("metadata.name")
	for _, name := range []string{fieldTask, fieldTaskName} {
		if task, ok := s.fields.RequiresExactMatch(name); ok {
			s.task = task
		}
	}
	if one, ok := s.fields.RequiresExactMatch("metadata.namespace"); ok && s.namespace == "" {
		s.namespace = one
	}
	for _, name := range []string{fieldRoot, fieldRootTask} {
		if root, ok := s.fields.RequiresExactMatch(name); ok && root != "" {
			s.leftover = v.tasks.IsLeftover
		}
	}
	if root, ok := s.fields.RequiresExactMatch(fieldRootUID); ok && root != "" {
		s.rootUID = v.tasks.RootUID
	}
	return s
}

// all reports whether the selection includes everything.
func (s *selection) all() bool { return s.fields.Empty() && s.labels.Empty() }

// stateless returns a selector without what it requires of the state.
func stateless(all fields.Selector) fields.Selector {
	rest, err := all.Transform(func(field, value string) (string, string, error) {
		if field == fieldState {
			return "", "", nil
		}
		return field, value, nil
	})
	if err != nil { // the func returns none
		return fields.Everything()
	}
	return rest
}

// mayTake reports whether an approval can be selected in some state. It needs nothing but the request.
func (s *selection) mayTake(a *v1alpha1.Approval) bool { return s.matches(a, s.asked) }

func (s *selection) takes(a *v1alpha1.Approval) bool { return s.matches(a, s.fields) }

func (s *selection) matches(a *v1alpha1.Approval, selected fields.Selector) bool {
	if a == nil || s.leftover != nil && a.Spec.TaskName != a.Spec.RootTask && s.leftover(a.Spec.TaskUID) {
		return false
	}
	root := a.Spec.RootTaskUID
	if root == "" && s.rootUID != nil {
		root = s.rootUID(a.Spec.TaskUID)
	}
	return s.labels.Matches(labels.Set(a.Labels)) && (selected.Empty() || selected.Matches(fields.Set{
		"metadata.name":      a.Name,
		"metadata.namespace": a.Namespace,
		fieldTask:            a.Spec.TaskName,
		fieldTaskUID:         string(a.Spec.TaskUID),
		fieldRoot:            a.Spec.RootTask,
		fieldTaskName:        a.Spec.TaskName,
		fieldRootTask:        a.Spec.RootTask,
		fieldRootUID:         string(root),
		fieldTool:            a.Spec.TargetTool,
		fieldDigest:          a.Spec.TargetArgsDigest,
		fieldState:           string(a.Status.State),
	}))
}

// query returns the part of the log that can contain the selected approvals.
func (v *view) query(ctx context.Context, s *selection) (eventlog.Query, error) {
	q := eventlog.Query{Namespace: s.namespace, Task: s.task}
	if s.name == "" || s.task != "" || s.namespace == "" {
		return q, nil
	}
	task, err := v.find(ctx, s.namespace, s.name)
	q.Task = task // empty if unknown, which selects the whole namespace
	return q, err
}
