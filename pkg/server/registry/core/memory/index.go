// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// IndexLetter is the letter of the index of memories; see package fulltext.
const IndexLetter = 'm'

// Indexed derives the rows of the index from memories. A memory is in the space of its namespace, and in a group that
// is its visibility and its scope. So a search in the scope of a session reads the rows of that scope only.
type Indexed struct{ Index *fulltext.Index }

var _ object.Index = Indexed{}

// Change returns what to write to the index when a memory is created, changed or deleted.
func (x Indexed) Change(old, now runtime.Object) func(engine.Batch) error {
	if alike(old, now) {
		return nil
	}
	before, after := x.Index.Rows(document(old)), x.Index.Rows(document(now))
	if fulltext.Same(before, after) {
		return nil
	}
	return func(b engine.Batch) error { return fulltext.Replace(b, before, after) }
}

// alike reports whether two versions of a memory have the same rows, without finding their words. A recall, which only
// counts, is such a change.
func alike(old, now runtime.Object) bool {
	a, ok := old.(*v1alpha1.Memory)
	b, too := now.(*v1alpha1.Memory)
	return ok && too && visibilityOf(a) == visibilityOf(b) && a.Status.SessionUID == b.Status.SessionUID &&
		a.CreationTimestamp.Equal(&b.CreationTimestamp) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func document(obj runtime.Object) *fulltext.Document {
	m, ok := obj.(*v1alpha1.Memory)
	if !ok {
		return nil
	}
	marks := []string{}
	for _, f := range marked(&m.Spec) {
		if f.value != "" {
			marks = append(marks, f.name+f.value)
		}
	}
	for _, tag := range m.Spec.Tags {
		marks = append(marks, markTag+tag)
	}
	return &fulltext.Document{
		Space: m.Namespace, Group: group(visibilityOf(m), m.Spec.AgentName, sessionKey(m.Spec.SessionName, m.Status.SessionUID)), Name: m.Name,
		Rank:  uint64(m.CreationTimestamp.Unix()),
		Text:  m.Spec.Content + "\n" + strings.Join(m.Spec.Tags, "\n"),
		Marks: marks,
	}
}

// mark is an exact value that a search can require.
type mark struct{ name, value string }

const (
	markTag     = "tag="
	markSession = "session="
)

// marked lists the fields of a memory that a search can require, or those of a search.
func marked(s *v1alpha1.MemorySpec) []mark {
	return []mark{{"source=", s.Source}, {markSession, s.SessionName}, {"agent=", s.AgentName}, {"task=", s.TaskName}, {"parent=", s.ParentTask}}
}

// visibility says which searches find a memory.
type visibility string

const (
	visible  visibility = "0"
	disabled visibility = "1"
	deleted  visibility = "2"
)

func visibilityOf(m *v1alpha1.Memory) visibility {
	switch {
	case m.Status.Deleted:
		return deleted
	case m.Status.Disabled:
		return disabled
	}
	return visible
}

// sessionKey identifies the session of a memory. A memory without a recorded UID has its session's name alone, which is
// also how older servers indexed all memories.
func sessionKey(name string, uid types.UID) string {
	if uid == "" {
		return name
	}
	return name + "/" + string(uid)
}

// group returns the group of memories of a visibility and a scope.
func group(v visibility, agent, session string) string {
	return string(v) + "\x01" + agent + groupEnd(session)
}

// groupEnd ends the groups of a session.
func groupEnd(session string) string { return "\x01" + session }
