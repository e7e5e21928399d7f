// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"net/http"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// posted is an event or a list of events.
type posted struct {
	v1alpha1.ExecutionEvent `json:",inline"`

	Items []v1alpha1.ExecutionEvent `json:"items"`
}

// decodePosted decodes the usual body of a request in one pass: JSON of this version, without strict checks. It returns
// nil for every other body and for one with a mistake, which resource.DecodeBody decodes or refuses; that reads the whole
// body once more, to find out the kind.
func decodePosted(req *http.Request, data []byte) runtime.Object {
	if media, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";"); media != "" && strings.TrimSpace(media) != runtime.ContentTypeJSON {
		return nil
	}
	if strings.Contains(req.URL.RawQuery, "fieldValidation") {
		return nil
	}
	var p posted
	if !utf8.Valid(data) || json.UnmarshalCaseSensitivePreserveInts(data, &p) != nil {
		return nil
	}
	if p.APIVersion != "" && p.APIVersion != v1alpha1.SchemeGroupVersion.String() {
		return nil
	}
	switch p.Kind {
	case "", "ExecutionEvent":
		return &p.ExecutionEvent
	case "ExecutionEventList":
		return &v1alpha1.ExecutionEventList{
			TypeMeta: p.TypeMeta,
			ListMeta: metav1.ListMeta{ResourceVersion: p.ResourceVersion},
			Items:    p.Items,
		}
	}
	return nil
}
