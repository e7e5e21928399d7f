// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Calls are kept once each, up to their bound, count in the namespace, and go with their owner.
func TestCalls(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	limited(t, dir, blob.Limits{NamespaceBytes: 4000}, clock.RealClock{}, func(s *blob.Store) {
		for _, id := range []string{"b", "a", "b"} {
			if err := s.KeepCall(ctx, "ns", "u", id, []byte("call "+id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.KeepCall(ctx, "ns", "other", "a", make([]byte, 4000)); !errors.Is(err, quota.ErrLimit) {
			t.Errorf("more than the namespace may have: %v", err)
		}
		if err := s.KeepCall(ctx, "ns", "u", "", nil); !errors.Is(err, blob.ErrName) {
			t.Errorf("without an id: %v", err)
		}
	})
	limited(t, dir, blob.Limits{NamespaceBytes: 4000}, clock.RealClock{}, func(s *blob.Store) {
		if calls, err := s.Calls(ctx, "u"); err != nil || fmt.Sprintf("%s", calls) != "[call a call b]" {
			t.Errorf("calls: %s, %v", calls, err)
		}
		if files, err := s.Files(ctx, "u"); err != nil || len(files) > 0 {
			t.Errorf("files: %v, %v", files, err)
		}
		if got := used(t, s, "ns"); got != int64(len("call a"+"call b")) {
			t.Errorf("%d bytes count", got)
		}
		if err := s.Delete(ctx, "u"); err != nil {
			t.Fatal(err)
		}
		if calls, err := s.Calls(ctx, "u"); err != nil || len(calls) > 0 || used(t, s, "ns") > 0 {
			t.Errorf("calls of a deleted owner: %s, %v", calls, err)
		}
	})
	limited(t, dir, blob.Limits{}, clock.RealClock{}, func(s *blob.Store) {
		if err := s.KeepCall(ctx, "ns", "u", "full", make([]byte, blob.MaxCallBytes)); err != nil {
			t.Fatal(err)
		}
		if err := s.KeepCall(ctx, "ns", "u", "late", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if calls, err := s.Calls(ctx, "u"); err != nil || len(calls) != 1 || len(calls[0]) != blob.MaxCallBytes {
			t.Errorf("%d calls, %v", len(calls), err)
		}
	})
}
