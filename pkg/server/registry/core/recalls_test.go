// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// A memory of a session is recalled in that session. One without a recorded UID, as older servers stored all of them,
// is recalled unless it was for an earlier session of the same name.
func TestRecallsOfASession(t *testing.T) {
	const before, began, after = 100, 200, 300 // seconds
	at := func(seconds int64) *metav1.Time { return &metav1.Time{Time: time.Unix(seconds, 0)} }
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}}
	session := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "talk", UID: "now", CreationTimestamp: *at(began)}}
	for name, c := range map[string]struct {
		named    string
		uid      types.UID
		written  int64
		recalled *metav1.Time
		want     bool
	}{
		"recorded":                             {"talk", "now", before, at(before), true},
		"of an earlier session":                {"talk", "then", after, nil, false},
		"of another session":                   {"other", "", after, nil, false},
		"old, written in the session":          {"talk", "", after, nil, true},
		"old, written as the session began":    {"talk", "", began, nil, true},
		"old, never recalled":                  {"talk", "", before, nil, true},
		"old, recalled by an earlier session":  {"talk", "", before, at(before + 1), false},
		"old, recalled in this session":        {"talk", "", before, at(began), true},
		"old, written and recalled in session": {"talk", "", began, at(after), true},
	} {
		m := &v1alpha1.Memory{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", CreationTimestamp: *at(c.written)}}
		m.Spec.SessionName, m.Status.SessionUID, m.Status.LastRecalledAt = c.named, c.uid, c.recalled
		if got := guard.Recalls(v1alpha1.MemoryScopeSession, task, session, m); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if !guard.Recalls(v1alpha1.MemoryScopeAgent, task, session, m) || !guard.Recalls(v1alpha1.MemoryScopeNamespace, task, nil, m) {
			t.Errorf("%s: a wider scope does not recall it", name)
		}
		if guard.Recalls(v1alpha1.MemoryScopeSession, task, nil, m) {
			t.Errorf("%s: recalled without a session", name)
		}
	}
}
