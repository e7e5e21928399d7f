// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// remember stores a memory, and a session in which something was said, both with the same word.
func remember(t *testing.T, s *standalone.Server, ns, word string) {
	t.Helper()
	ctx, c := t.Context(), s.Core(t)
	kit.Must[*v1alpha1.Session](t)(c.Sessions(ns).Create(ctx, &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "talk"}}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.SessionTranscript](t)(c.Sessions(ns).AppendMessages(ctx, "talk", &v1alpha1.SessionTranscript{
		Items: []v1alpha1.SessionMessage{{Role: v1alpha1.RoleUser, Content: "we said " + word}},
	}, metav1.CreateOptions{}))
	for i, session := range []string{"", "talk"} {
		kit.Must[*v1alpha1.Memory](t)(c.Memories(ns).Create(ctx, &v1alpha1.Memory{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i)}, Spec: v1alpha1.MemorySpec{Content: "we know " + word, SessionName: session, Tags: []string{"t"}},
		}, metav1.CreateOptions{}))
	}
}

// found returns how many memories and how many messages a search finds.
func found(t *testing.T, s *standalone.Server, ns, word string) [2]int {
	t.Helper()
	ctx, c := t.Context(), s.Core(t)
	memories := kit.Must[*v1alpha1.MemorySearch](t)(c.MemorySearches(ns).Create(ctx, &v1alpha1.MemorySearch{Spec: v1alpha1.MemorySearchSpec{Query: word}}, metav1.CreateOptions{}))
	messages := kit.Must[*v1alpha1.TranscriptSearch](t)(c.TranscriptSearches(ns).Create(ctx, &v1alpha1.TranscriptSearch{Spec: v1alpha1.TranscriptSearchSpec{Query: word}}, metav1.CreateOptions{}))
	return [2]int{len(memories.Status.Items), len(messages.Status.Items)}
}

// A restored store is searched like the one that was backed up.
func TestSearchesOfARestoredStore(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	remember(t, s, "default", "heliotrope")
	uid := kit.Must[*v1alpha1.Memory](t)(s.Core(t).Memories("default").Get(t.Context(), "m1", metav1.GetOptions{})).Status.SessionUID
	file, dir := filepath.Join(t.TempDir(), "x.tar"), t.TempDir()
	if out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "backup", file); code != 0 {
		t.Fatalf("backup: exit code %d\n%s%s", code, out, errs)
	}
	if err := os.CopyFS(filepath.Join(dir, "pki"), os.DirFS(filepath.Join(s.DataDir, "pki"))); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := restored(t, file, dir); code != 0 {
		t.Fatalf("restore: exit code %d\n%s%s", code, out, errs)
	}
	again := standalone.Start(t, func(o *standalone.Options) { o.DataDir = dir })
	if got := found(t, again, "default", "heliotrope"); got != [2]int{2, 1} {
		t.Errorf("the restored store finds %v memories and messages", got)
	}
	if m := kit.Must[*v1alpha1.Memory](t)(again.Core(t).Memories("default").Get(t.Context(), "m1", metav1.GetOptions{})); uid == "" || m.Status.SessionUID != uid {
		t.Errorf("the memory is of session %q, was of %q", m.Status.SessionUID, uid)
	}
	// The index is still written together with what it indexes.
	if err := again.Core(t).Memories("default").Delete(t.Context(), "m0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := again.Core(t).Sessions("default").Delete(t.Context(), "talk", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := found(t, again, "default", "heliotrope"); got != [2]int{1, 0} {
		t.Errorf("after deletions: %v memories and messages", got)
	}
}

// A deleted namespace leaves no rows of its memories and messages in the store.
func TestNamespaceLeavesNoIndex(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, namespaces := t.Context(), s.Kubernetes(t).CoreV1().Namespaces()
	kit.Must[*corev1.Namespace](t)(namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{}))
	remember(t, s, "team", "heliotrope")
	remember(t, s, "default", "heliotrope")
	if err := namespaces.Delete(ctx, "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "end of the namespace", func() bool {
		_, err := namespaces.Get(ctx, "team", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	s.Stop(t)
	e, err := local.Open(ctx, local.Options{Dir: filepath.Join(s.DataDir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	it, err := e.NewIter([]byte("i"), []byte("j"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}()
	others := 0
	for ok := it.First(); ok; ok = it.Next() {
		if bytes.HasPrefix(it.Key()[2:], []byte("team\x00")) {
			t.Errorf("row %q is left", it.Key())
		} else {
			others++
		}
	}
	if others == 0 {
		t.Error("the rows of the other namespace are gone, too")
	}
}
