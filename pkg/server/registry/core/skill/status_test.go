// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		name    string
		content v1alpha1.SkillContent
		phase   v1alpha1.SkillPhase
		warning bool
	}{
		{"good", v1alpha1.SkillContent{Inline: "x", Files: map[string]string{"a/b..c.md": "y"}}, v1alpha1.SkillReady, false},
		{"empty", v1alpha1.SkillContent{Inline: " \n"}, v1alpha1.SkillError, false},
		{"parent", v1alpha1.SkillContent{Inline: "x", Files: map[string]string{"a/../../b": "y"}}, v1alpha1.SkillError, false},
		{"absolute", v1alpha1.SkillContent{Inline: "x", Files: map[string]string{"/etc/x": "y"}}, v1alpha1.SkillError, false},
		{"backslash", v1alpha1.SkillContent{Inline: "x", Files: map[string]string{`..\x`: "y"}}, v1alpha1.SkillError, false},
		{"long", v1alpha1.SkillContent{Inline: strings.Repeat("x", warnBytes+1)}, v1alpha1.SkillReady, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &v1alpha1.Skill{Spec: v1alpha1.SkillSpec{Content: tc.content}}
			status(s)
			ready := tc.phase == v1alpha1.SkillReady
			if s.Status.Phase != tc.phase || meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady) != ready ||
				meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionContentSizeWarning) != tc.warning || !strings.HasPrefix(s.Status.ContentHash, "sha256:") {
				t.Errorf("status = %+v", s.Status)
			}
		})
	}
}

func TestHash(t *testing.T) {
	contents := []v1alpha1.SkillContent{
		{Inline: "ab"},
		{Inline: "a", Files: map[string]string{"b": ""}},
		{Inline: "a", Files: map[string]string{"": "b"}},
		{Inline: "a", Files: map[string]string{"b": "c", "d": "e"}},
		{Inline: "a", Files: map[string]string{"b": "cd", "": "e"}},
	}
	seen := map[string]int{}
	for i, c := range contents {
		h := hash(c)
		if j, ok := seen[h]; ok {
			t.Errorf("contents %d and %d have one hash", i, j)
		}
		seen[h] = i
		if again := hash(*c.DeepCopy()); again != h {
			t.Errorf("content %d has two hashes", i)
		}
	}
}
