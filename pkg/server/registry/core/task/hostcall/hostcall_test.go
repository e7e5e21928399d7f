// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// TestSchemas: the server checks the arguments of each tool that it carries out against what models are told.
func TestSchemas(t *testing.T) {
	n := 0
	for _, b := range builtin.In(builtin.Runs) {
		if _, ok := operation.Find(b.Name); !ok {
			continue
		}
		n++
		if _, err := schemas().Check(b.Name, `{"unknown":1}`); err == nil {
			t.Errorf("%s takes arguments that it does not have", b.Name)
		}
	}
	if n != 11 {
		t.Errorf("%d tools", n)
	}
}

// TestSame: addresses name one repository if they differ in case of names and in .git alone.
func TestSame(t *testing.T) {
	const at = "https://git.example.com/Ada/Shop"
	for other, want := range map[string]bool{
		at: true, at + ".git": true, "https://GIT.example.com/ada/shop": true, at + "/": true,
		"http://git.example.com/Ada/Shop": false, "https://git.example.com:8443/Ada/Shop": false, "https://git.example.com/Ada/Shop2": false, "https://git.example.com/sub/Ada/Shop": false,
		"https://x@git.example.com/Ada/Shop": false, at + "?a=b": false, at + "#a": false, "https://git.example.com/Ada%2FShop/x": false, "git@git.example.com:Ada/Shop": false, "": false,
		"https://git.example.com/Ada/Shop/../Bank": false, "https://git.example.com.evil/Ada/Shop": false,
	} {
		if got := same(other, at); got != want {
			t.Errorf("%q: %t", other, got)
		}
	}
}

// TestKey: a call has one key however often it is made, and another task, attempt, id, tool or argument has another one.
func TestKey(t *testing.T) {
	s := &Calls{o: Options{Key: []byte("key")}}
	task := func(uid, job string, attempts int32) *v1alpha1.Task {
		return &v1alpha1.Task{Status: v1alpha1.TaskStatus{JobUID: types.UID(job), Attempts: attempts}, ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	}
	seen := map[string]bool{}
	for _, key := range []string{
		s.key(task("a", "j", 1), "c", "t", "{}"), s.key(task("b", "j", 1), "c", "t", "{}"), s.key(task("a", "k", 1), "c", "t", "{}"), s.key(task("a", "j", 2), "c", "t", "{}"),
		s.key(task("a", "j", 1), "d", "t", "{}"), s.key(task("a", "j", 1), "c", "u", "{}"), s.key(task("a", "j", 1), "c", "t", "{ }"), s.key(task("a", "j", 1), "ct", "", "{}"),
		(&Calls{o: Options{Key: []byte("other")}}).key(task("a", "j", 1), "c", "t", "{}"),
	} {
		if seen[key] || len(key) != 32 {
			t.Errorf("%q", key)
		}
		seen[key] = true
	}
	if !seen[s.key(task("a", "j", 1), "c", "t", "{}")] {
		t.Error("the key of a call has changed")
	}
}

// TestShares: the calls of a namespace wait for each other, and hold up nobody else. One that gives up takes no place.
func TestShares(t *testing.T) {
	s := newShares()
	var releases []func()
	take := func(ctx context.Context, namespace string) error {
		release, err := s.take(ctx, namespace)
		if err == nil {
			releases = append(releases, release)
		}
		return err
	}
	for range maxCalls {
		if err := take(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if err := take(ctx, "a"); !errors.Is(err, enough) {
		t.Errorf("one more call: %v", err)
	}
	if err := take(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	for _, release := range releases {
		release()
	}
	if len(s.of) != 0 {
		t.Errorf("%d namespaces are remembered", len(s.of))
	}
}

// TestWithout: a credential that a code host repeats is not in the answer, also where JSON writes it otherwise.
func TestWithout(t *testing.T) {
	for token, raw := range map[string]string{"abc": `{"body":"x abc y abc"}`, `a"b<c`: `{"body":"x a\"b\u003cc"}`} {
		if got := string(without([]byte(raw), token)); !strings.Contains(got, "[removed]") || strings.Contains(got, token) || strings.Contains(got, `a\"b`) {
			t.Errorf("%s", got)
		}
	}
	if got := string(without([]byte(`{"body":"x"}`), "")); got != `{"body":"x"}` {
		t.Error(got)
	}
}
