// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package publisher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/workspace"
)

// script makes a program of a shell script, which gets the name of the step.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func stepOf(namespace string, n int) Step {
	return Step{Task: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("t", n)}, UID: types.UID(fmt.Sprint(namespace, "-", n)), ID: "1", Name: workspace.Look, Order: map[string]string{"secret": "s"}}
}

// TestSteps: a step is begun once, its end wakes the task, its answer is given once, and another step of the task is another one.
func TestSteps(t *testing.T) {
	t.Parallel()
	p, err := New(t.Context(), script(t, `cat >/dev/null; echo run >> ../count; echo '{"seen":{"head":"'$1'"}}'`), filepath.Join(t.TempDir(), "d"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan types.NamespacedName, 10)
	p.OnEnd(func(n types.NamespacedName) { ended <- n })
	s := stepOf("n", 1)
	if _, err := p.Do(s); !errors.Is(err, ErrWorking) {
		t.Fatal(err)
	}
	if n := <-ended; n != s.Task {
		t.Errorf("%s was woken", n)
	}
	if answer, err := p.Do(s); err != nil || answer.Seen == nil || answer.Seen.Head != "look" {
		t.Errorf("%+v, %v", answer, err)
	}
	if _, err := p.Do(s); !errors.Is(err, ErrWorking) { // a new one
		t.Error(err)
	}
	<-ended
	s.ID, s.Name = "2", workspace.Push
	if _, err := p.Do(s); !errors.Is(err, ErrWorking) { // the answer of the other step is dropped
		t.Error(err)
	}
	<-ended
	if raw, err := os.ReadFile(filepath.Join(p.dir, "count")); err != nil || strings.Count(string(raw), "run") != 3 {
		t.Errorf("%s, %v", raw, err)
	}
	if err := p.Forget(s.UID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, string(s.UID))); !os.IsNotExist(err) {
		t.Error("the folder is still there")
	}
	if _, err := p.Do(Step{UID: "../x"}); err == nil {
		t.Error("a UID may lead out of the folder")
	}
}

// TestRoom: the steps of a namespace whose server hangs leave room for those of another, and end when they are forgotten.
func TestRoom(t *testing.T) {
	t.Parallel()
	p, err := New(t.Context(), script(t, `read order; case $order in *hang*) exec sleep 1000;; esac; echo '{"seen":{}}'`), filepath.Join(t.TempDir(), "d"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan types.NamespacedName, 100)
	p.OnEnd(func(n types.NamespacedName) { ended <- n })
	for n := range 3 * maxSteps {
		s := stepOf("slow", n)
		s.Order = "hang"
		if _, err := p.Do(s); !errors.Is(err, ErrWorking) {
			t.Fatal(err)
		}
	}
	if _, err := p.Do(stepOf("quick", 1)); !errors.Is(err, ErrWorking) {
		t.Fatal(err)
	}
	if n := <-ended; n.Namespace != "quick" { // without room nothing ends
		t.Errorf("%s ended", n)
	}
	for n := range 3 * maxSteps {
		if err := p.Forget(stepOf("slow", n).UID); err != nil {
			t.Error(err)
		}
	}
	for range 3 * maxSteps {
		<-ended
	}
	if len(p.ofNamespace) > 0 || len(p.room) > 0 {
		t.Errorf("%d namespaces and %d slots are left", len(p.ofNamespace), len(p.room))
	}
}
