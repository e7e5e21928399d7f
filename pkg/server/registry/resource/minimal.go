// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// minimal is the preference of a client that does not read what was stored (RFC 7240).
const minimal = "return=minimal"

// PrefersMinimal reports whether the client asked for the minimal answer with the header Prefer.
func PrefersMinimal(req *http.Request) bool {
	for _, header := range req.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			if strings.EqualFold(strings.ReplaceAll(preference, " ", ""), minimal) {
				return true
			}
		}
	}
	return false
}

// AnswerMinimal answers that a write succeeded, without the objects that were stored.
func AnswerMinimal(w http.ResponseWriter, code int) {
	w.Header().Set("Preference-Applied", minimal)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":%d}`, code) // a client that left is no error
}
