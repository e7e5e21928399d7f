// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// secret has the form of a token.
const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// A memory has no secrets, also none in a copy of the manifest, and only the server writes its status.
func TestMemory(t *testing.T) {
	s := coretest.Start(t)
	m := s.MustApply("memories", `apiVersion: core.platform.ai/v1alpha1
kind: Memory
metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"content":"use `+secret+`"}}'}}
spec: {content: "use `+secret+`", tags: ["`+secret+`"], source: "`+secret+`"}
status: {recalledCount: 7, origin: {taskName: x, taskUID: z}}`).(*v1alpha1.Memory)
	if text := runtime.EncodeOrDie(s.Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), m); strings.Contains(text, secret) {
		t.Errorf("a secret was stored: %s", text)
	}
	if !strings.HasPrefix(m.Name, "mem-") || m.Status.RecalledCount != 0 || m.Status.Origin != nil || m.Status.UpdatedAt == nil {
		t.Errorf("%s: %+v", m.Name, m.Status)
	}
	_, err := s.Update(s.User(), "memories/status", m.Name, func(o runtime.Object) { o.(*v1alpha1.Memory).Status.RecalledCount = 9 })
	if !apierrors.IsInvalid(err) {
		t.Errorf("write of the status: %v", err)
	}
	for _, c := range []struct {
		sub               string
		disabled, deleted bool
		ok                bool
	}{
		{"disable", true, false, true},
		{"disable", true, false, true},
		{"enable", false, false, true},
		{"disable", true, false, true},
		{"discard", true, true, true},
		{"enable", true, true, false},
		{"disable", true, true, false},
		{"restore", true, false, true},
		{"enable", false, false, true},
	} {
		out, err := s.CreateNamed(s.User(), "memories/"+c.sub, m.Name, &v1alpha1.MemoryChange{})
		if !c.ok {
			if !apierrors.IsConflict(err) {
				t.Errorf("%s: %v", c.sub, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := out.(*v1alpha1.Memory).Status; got.Disabled != c.disabled || got.Deleted != c.deleted {
			t.Errorf("after %s: %+v", c.sub, got)
		}
	}
}
