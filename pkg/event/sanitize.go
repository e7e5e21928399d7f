// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/visible"
)

// Limits of the payloads, after redaction.
const (
	MaxSummaryChars     = 4096
	MaxContentTextChars = 32768
	MaxContentBytes     = 64 << 10
	// previewChars is how many characters of an oversized content its replacement shows.
	previewChars = 2048
)

// Report describes what Sanitize did.
type Report struct {
	Redacted  bool // a secret was removed
	Truncated bool // a payload was cut
}

// Sanitize prepares e, which Validate accepts, for storage and display. It normalises the severity, makes
// every text valid UTF-8 without secrets, makes summary one line, lifts the fields of model events out of
// content, and cuts payloads over their limit. It does not change metadata and the fields that the server
// sets.
func Sanitize(e *v1alpha1.ExecutionEvent) Report { return SanitizeAfter(e, &redact.Seen{}) }

// SanitizeAfter is Sanitize for an event of a run. It also removes the secrets that were removed from what the run
// recorded before, and adds those of this event.
func SanitizeAfter(e *v1alpha1.ExecutionEvent, seen *redact.Seen) Report {
	r := report{seen: seen}
	e.Severity = NormalizeSeverity(e.Severity)
	for _, l := range labels(e) {
		*l.value = r.line(*l.value)
		if len(*l.value) > MaxLabelBytes {
			*l.value = redact.Marker
		}
	}
	e.Summary, e.ContentText = r.line(e.Summary), r.text(e.ContentText)
	if plain := visible.Plain(e.ContentText); plain != e.ContentText {
		e.ContentText = r.text(plain)
	}
	r.content(e)
	if e.Recording != nil {
		for i := range e.Recording.Parts {
			CleanPart(&e.Recording.Parts[i], seen)
		}
		if p := e.Recording.Parameters; p != nil {
			p.Format = r.text(p.Format)
		}
	}
	e.Summary, e.ContentText = seen.Remove(e.Summary), seen.Remove(e.ContentText) // what content holds
	for _, l := range labels(e) {
		*l.value = seen.Remove(*l.value) // what the texts hold
	}
	r.dedupKey(e)
	lift(e)
	r.cut(e)
	return r.Report
}

// report collects a Report.
type report struct {
	Report

	seen *redact.Seen
}

func (r *report) text(s string) string {
	s, changed := r.seen.Text(strings.ToValidUTF8(s, string(utf8.RuneError)))
	r.Redacted = r.Redacted || changed
	return s
}

// line is text on one line. It redacts s as given, for secrets that span lines, and then as one line, because joined lines can
// read as one header.
func (r *report) line(s string) string {
	s = r.text(s)
	if line := oneLine(s); line != s {
		s = r.text(line)
	}
	return s
}

// oneLine turns line ends into spaces and removes other control characters.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		switch c {
		case '\n', '\t', '\u2028', '\u2029':
			return ' '
		}
		return c
	}, visible.Plain(s)))
}

// content redacts the structured payload and makes it compact.
func (r *report) content(e *v1alpha1.ExecutionEvent) {
	if e.Content == nil {
		return
	}
	clean, changed, err := r.seen.JSON(bytes.ToValidUTF8(e.Content.Raw, []byte(string(utf8.RuneError))))
	if err != nil || string(clean) == "null" {
		e.Content = nil // Validate refuses content that is not JSON
		return
	}
	r.Redacted = r.Redacted || changed
	e.Content = &apiextensionsv1.JSON{Raw: visible.JSON(clean)}
}

// dedupKey replaces a key that holds a secret by its digest. If it were redacted, two different keys could
// become one.
func (r *report) dedupKey(e *v1alpha1.ExecutionEvent) {
	if _, secret := r.seen.Text(e.DedupKey); secret {
		sum := sha256.Sum256([]byte(e.DedupKey))
		e.DedupKey = "sha256-" + hex.EncodeToString(sum[:])
		r.Redacted = true
	}
}
