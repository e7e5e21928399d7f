// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
)

// cut shortens the payloads that are over their limit and notes their original sizes. If a producer cut a
// payload and noted that itself, its note is kept.
func (r *report) cut(e *v1alpha1.ExecutionEvent) {
	t := v1alpha1.EventTruncation{}
	if e.Truncation != nil {
		t = *e.Truncation
	}
	if n := chars(e.Summary, MaxSummaryChars); n > 0 {
		e.Summary = shorten(e.Summary, MaxSummaryChars)
		t.SummaryTruncated, t.SummaryOriginalChars = true, max(n, t.SummaryOriginalChars)
		r.Truncated = true
	}
	if n := chars(e.ContentText, MaxContentTextChars); n > 0 {
		e.ContentText = shorten(e.ContentText, MaxContentTextChars)
		t.ContentTextTruncated, t.ContentTextOriginalChars = true, max(n, t.ContentTextOriginalChars)
		r.Truncated = true
	}
	if e.Content != nil && len(e.Content.Raw) > MaxContentBytes {
		n := int64(len(e.Content.Raw))
		e.Content = preview(e.Content.Raw)
		t.ContentJSONTruncated, t.ContentJSONOriginalBytes = true, max(n, t.ContentJSONOriginalBytes)
		r.Truncated = true
	}
	t.SummaryOriginalChars = max(t.SummaryOriginalChars, 0)
	t.ContentTextOriginalChars = max(t.ContentTextOriginalChars, 0)
	t.ContentJSONOriginalBytes = max(t.ContentJSONOriginalBytes, 0)
	e.Truncation = nil
	if t != (v1alpha1.EventTruncation{}) {
		e.Truncation = &t
	}
}

// chars returns the number of characters of s if it is over limit, otherwise 0.
func chars(s string, limit int) int64 {
	if len(s) <= limit {
		return 0
	}
	if n := utf8.RuneCountInString(s); n > limit {
		return int64(n)
	}
	return 0
}

const ellipsis = "…"

// shorten cuts s, which is over limit characters, to at most limit characters with an ellipsis at the end.
// A cut can make a new match for redaction, such as half a URL. The result is one that redaction would not
// change.
func shorten(s string, limit int) string {
	keep := limit - 1
	for range 4 {
		s = prefix(s, keep) + ellipsis
		clean, changed := redact.Text(s)
		if !changed {
			return s
		}
		s = strings.TrimSuffix(clean, ellipsis)
		if utf8.RuneCountInString(s) <= keep {
			if again, changed := redact.Text(s + ellipsis); !changed {
				return again
			}
		}
		keep = max(keep-len(redact.Marker)-1, 0)
	}
	return redact.Marker + ellipsis
}

// prefix returns the first n characters of s, or s if it has fewer.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// preview returns the replacement of content that is too large. Its text can hold half of a member, so it
// is redacted once more as text.
func preview(raw []byte) *apiextensionsv1.JSON {
	text, _ := redact.Text(prefix(string(raw[:min(len(raw), 4*previewChars)]), previewChars))
	text = shorten(strings.ToValidUTF8(text, ""), min(previewChars, utf8.RuneCountInString(text)))
	out, err := json.Marshal(struct {
		Truncated     bool   `json:"truncated"`
		Preview       string `json:"preview"`
		OriginalBytes int    `json:"originalBytes"`
	}{true, text, len(raw)})
	if err != nil { // three scalars always marshal
		return nil
	}
	return &apiextensionsv1.JSON{Raw: out}
}
