// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// writeLines answers with the whole transcript as text, one JSON object per line (format=lines). The size of a
// transcript is bounded, so the answer fits into memory. The error is one that occurred before anything was written.
func (r *Resource) writeLines(w http.ResponseWriter, req *http.Request, p parent) error {
	query := wellformed.Query(req)
	if f := query.Get("format"); f != "lines" {
		return apierrors.NewBadRequest(fmt.Sprintf("format: %q: must be lines", f))
	}
	for _, other := range []string{"limit", "after", "continue", "newest", "through"} {
		if query.Get(other) != "" {
			return apierrors.NewBadRequest("format: cannot be used together with " + other)
		}
	}
	var text bytes.Buffer
	for after := int64(0); ; {
		page, err := r.transcripts.Page(req.Context(), p.Object.UID, after, maxLimit, "")
		if err != nil {
			return err
		}
		for i := range page.Messages {
			line, err := json.Marshal(&page.Messages[i])
			if err != nil {
				return fmt.Errorf("message of a transcript: %w", err)
			}
			text.Write(append(line, '\n'))
			after = page.Messages[i].Order
		}
		if !page.More {
			break
		}
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, err := w.Write(text.Bytes()); err != nil {
		klog.FromContext(req.Context()).V(2).Info("The client did not read a transcript to its end", "err", err)
	}
	return nil
}
