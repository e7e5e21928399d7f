// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/blob"
)

// broken keeps nothing.
type broken struct{ *blob.Store }

func (broken) KeepAnswer(context.Context, string, types.UID, string, []byte) error {
	return errors.New("the disk is on fire")
}

// A request that succeeded has succeeded, whether or not its response can be kept. It is not sent again.
func TestResponseNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits = blob.Limits{NamespaceBytes: 100}
	w.reopen()
	large := bytes.Repeat([]byte("y"), MaxResponseBytes+1)
	sum := sha256.Sum256(large)
	for _, tc := range []struct {
		call     string
		response []byte
		message  string
		says     []string
		before   func()
	}{
		{"large", large, "it has 262145 bytes, and at most 262144 are kept", []string{"262145 bytes", hex.EncodeToString(sum[:]), "too large"}, func() {}},
		{"no room", large[:101], "there is no room for it", []string{"101 bytes", "is not kept"}, func() {}},
		{"broken", []byte("y"), "it could not be stored", []string{"1 bytes", "is not kept"}, func() { w.o.Responses = broken{w.blobs} }},
		{"no task", []byte("y"), "the task was deleted", []string{"1 bytes", "is not kept"}, func() { w.tasks.remove("work") }},
		{"no answer", []byte("y"), "it could not be stored", []string{"1 bytes", "is not kept"}, func() { w.tasks.fail(errors.New("not now")) }},
	} {
		c := w.claim(w.reserve("work", tc.call), tc.call)
		tc.before()
		w.ok(c.Succeed(t.Context(), 200, tc.response))
		w.is(c.Effect(), v1alpha1.ToolEffectSucceeded, "the response is not kept: "+tc.message)
		_, err := w.Claim(t.Context(), c.Effect(), tc.call)
		code(t, tc.call, err, 410, append(tc.says, "not sent again")...)
		w.o.Responses = w.blobs
		w.tasks.fail(nil)
		w.tasks.set("work", "uid-work", v1alpha1.TaskRunning)
	}
	// What was kept is removed with the task.
	e := w.in(v1alpha1.ToolEffectSucceeded, "kept")
	w.ok(w.blobs.Delete(t.Context(), "uid-work"))
	_, err := w.Claim(t.Context(), e, "approval of kept")
	code(t, "removed", err, 410, "is not kept any more")
}
