// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// warnBytes is the size above which a skill takes up much of a prompt: 64 KiB are about 16,000
// tokens, an eighth of a context window of 128,000.
const warnBytes = 64 << 10

// status says what the content is worth to a run, and names its version by a hash.
func status(s *v1alpha1.Skill) {
	st := &s.Status
	st.ObservedGeneration = s.Generation
	st.ContentHash = hash(s.Spec.Content)
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonContentValid,
		Message: "the content is valid", ObservedGeneration: s.Generation,
	}
	st.Phase = v1alpha1.SkillReady
	if p := problem(s.Spec.Content); p != "" {
		st.Phase = v1alpha1.SkillError
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonValidationFailed, p
	}
	meta.SetStatusCondition(&st.Conditions, ready)
	if n := size(s.Spec.Content); n > warnBytes {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionContentSizeWarning, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonContentTooLarge,
			Message: fmt.Sprintf("the content has %d bytes; more than %d leave less room for the work", n, warnBytes), ObservedGeneration: s.Generation,
		})
	} else {
		meta.RemoveStatusCondition(&st.Conditions, v1alpha1.ConditionContentSizeWarning)
	}
}

func problem(c v1alpha1.SkillContent) string {
	if strings.TrimSpace(c.Inline) == "" {
		return "content.inline is empty"
	}
	for _, p := range slices.Sorted(maps.Keys(c.Files)) {
		if !v1alpha1.IsRelativePath(p) {
			return fmt.Sprintf("content.files: %q: must be a relative path without \".\" and \"..\" elements", p)
		}
	}
	return ""
}

// hash covers the inline text, then the files sorted by path. It includes the lengths, so that
// moving text from one part to the next changes the hash.
func hash(c v1alpha1.SkillContent) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d\n%s", len(c.Inline), c.Inline)
	for _, p := range slices.Sorted(maps.Keys(c.Files)) {
		_, _ = fmt.Fprintf(h, "%d\n%s%d\n%s", len(p), p, len(c.Files[p]), c.Files[p])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func size(c v1alpha1.SkillContent) int {
	n := len(c.Inline)
	for p, text := range c.Files {
		n += len(p) + len(text)
	}
	return n
}
