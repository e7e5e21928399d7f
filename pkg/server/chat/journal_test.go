// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/turn"
)

// TestJournalCloses: a turn that the server interrupts has no frame under way once its journal is closed, and clients were shown
// what is stored.
func TestJournalCloses(t *testing.T) {
	t.Parallel()
	e, err := local.Open(t.Context(), local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	store := turn.New(e)
	for n := range 50 { // whether the frame is under way differs
		uid := types.UID(strconv.Itoa(n))
		j := &journal{store: store, uid: uid, live: newLive(), fail: func(err error) { t.Error(err) }}
		if err := j.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.write()
		j.frame(Frame{Type: FrameStatus})
		j.close()
		j.live.close()
		if stored, err := store.Head(uid); err != nil || stored.Last != j.live.last() {
			t.Fatalf("frame %d is the last one that is stored, and %d the last one that is shown; %v", stored.Last, j.live.last(), err)
		}
	}
}
