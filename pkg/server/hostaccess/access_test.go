// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostaccess

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// TestCallKey: a call has one key however often it is made, and one that differs in any part, or of another server, has another one.
func TestCallKey(t *testing.T) {
	seen := map[string]bool{}
	a, b := New(Options{Key: []byte("key"), Clock: clock.RealClock{}}), New(Options{Key: []byte("other"), Clock: clock.RealClock{}})
	key := func(a *Access, parts ...any) string {
		k, err := a.CallKey(parts...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, k := range []string{
		key(a, types.UID("a"), 1, "c", "t"), key(a, types.UID("b"), 1, "c", "t"), key(a, types.UID("a"), 2, "c", "t"), key(a, types.UID("a"), 1, "d", "t"),
		key(a, types.UID("a"), 1, "ct", ""), key(a, types.UID("a"), 1, "c", "t", ""), key(b, types.UID("a"), 1, "c", "t"),
	} {
		if seen[k] || len(k) != 32 {
			t.Errorf("%q", k)
		}
		seen[k] = true
	}
	if !seen[key(a, types.UID("a"), 1, "c", "t")] {
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
