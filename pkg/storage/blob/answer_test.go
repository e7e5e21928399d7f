// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Answers are kept once each, byte for byte, count in the namespace, are neither files nor calls, and go with their owner.
func TestAnswers(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	limits := blob.Limits{Files: 1, Bytes: 1, NamespaceBytes: 4000}
	answer := []byte("{\"a\": \"\x00\xff\"}\n")
	limited(t, dir, limits, clock.RealClock{}, func(s *blob.Store) {
		for _, id := range []string{"b/1", "empty", "b/1"} {
			content := answer
			if id == "empty" {
				content = nil
			}
			if err := s.KeepAnswer(ctx, "ns", "u", id, content); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.KeepAnswer(ctx, "ns", "u", "b/1", []byte("another")); err != nil {
			t.Errorf("an answer that is kept already: %v", err)
		}
		if err := s.KeepAnswer(ctx, "ns", "other", "a", make([]byte, 4000)); !errors.Is(err, quota.ErrLimit) || !strings.Contains(err.Error(), "namespace ns") {
			t.Errorf("more than the namespace may have: %v", err)
		}
		for _, owner := range []types.UID{"", "a\x00b"} {
			if err := s.KeepAnswer(ctx, "ns", owner, "a", nil); !errors.Is(err, blob.ErrName) {
				t.Errorf("owner %q: %v", owner, err)
			}
		}
		if err := s.KeepAnswer(ctx, "ns", "u", "", nil); !errors.Is(err, blob.ErrName) {
			t.Errorf("without an id: %v", err)
		}
	})
	limited(t, dir, limits, clock.RealClock{}, func(s *blob.Store) {
		got, ok, err := s.Answer(ctx, "u", "b/1")
		if err != nil || !ok || !bytes.Equal(got, answer) {
			t.Errorf("answer: %q, %v, %v", got, ok, err)
		}
		if got, ok, err := s.Answer(ctx, "u", "empty"); err != nil || !ok || len(got) > 0 {
			t.Errorf("empty answer: %q, %v, %v", got, ok, err)
		}
		for _, of := range [][2]string{{"u", "b"}, {"u", ""}, {"other", "b/1"}, {"", "b/1"}} {
			if got, ok, err := s.Answer(ctx, types.UID(of[0]), of[1]); err != nil || ok {
				t.Errorf("answer %q: %q, %v", of, got, err)
			}
		}
		files, err := s.Files(ctx, "u")
		calls, errCalls := s.Calls(ctx, "u")
		if err := errors.Join(err, errCalls); err != nil || len(files)+len(calls) > 0 {
			t.Errorf("files %v, calls %q, %v", files, calls, err)
		}
		if got := held(t, s); got != int64(len(answer)) {
			t.Errorf("%d bytes count", got)
		}
		if err := s.Delete(ctx, "u"); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Answer(ctx, "u", "b/1"); err != nil || ok || held(t, s) > 0 {
			t.Errorf("the answer of a deleted owner: %v, %v", ok, err)
		}
	})
	limited(t, dir, blob.Limits{}, clock.RealClock{}, func(s *blob.Store) {
		if err := s.KeepAnswer(ctx, "ns", "u", "full", make([]byte, blob.MaxAnswerBytes)); err != nil {
			t.Fatal(err)
		}
		err := s.KeepAnswer(ctx, "ns", "u", "late", []byte("x"))
		limit, is := errors.AsType[*quota.LimitError](err)
		if !is || limit.Of != quota.OfTask || limit.Used != blob.MaxAnswerBytes || limit.Asked != 1 || limit.Most != blob.MaxAnswerBytes {
			t.Errorf("more than an owner may have: %v", err)
		}
		if err := s.KeepCall(ctx, "ns", "u", "call", []byte("x")); err != nil { // which has room of its own
			t.Error(err)
		}
		if calls, err := s.Calls(ctx, "u"); err != nil || len(calls) != 1 {
			t.Errorf("calls: %q, %v", calls, err)
		}
	})
}

// held returns the total of the namespace ns, as the error of an answer that has no room says.
func held(t *testing.T, s *blob.Store) int64 {
	t.Helper()
	limit, ok := errors.AsType[*quota.LimitError](s.KeepAnswer(t.Context(), "ns", "asks", "a", make([]byte, 5000)))
	if !ok || limit.Of != quota.OfNamespace("ns") {
		t.Fatalf("asked for 5000: %v", limit)
	}
	return limit.Used
}
