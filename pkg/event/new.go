// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// New makes an event with structured content, a map of plain values. key is the de-duplication key, with
// which a repeated append returns the first event; it may be empty.
func New(t v1alpha1.EventType, s v1alpha1.EventSeverity, key, summary string, content map[string]any) *v1alpha1.ExecutionEvent {
	e := &v1alpha1.ExecutionEvent{Type: t, Severity: s, DedupKey: key, Summary: summary}
	if len(content) > 0 {
		// Names, numbers and booleans are always encodable.
		if raw, err := json.Marshal(content); err == nil {
			e.Content = &apiextensionsv1.JSON{Raw: raw}
		}
	}
	return e
}
