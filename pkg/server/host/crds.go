// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io"
	"net/http"
)

// crdPath is where clients look for custom resource definitions.
const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// Handlers serve paths outside the API groups that this host has.
func (h *Host) Handlers() map[string]http.Handler {
	return map[string]http.Handler{crdPath: http.HandlerFunc(noCRDs)}
}

// noCRDs answers that there are no custom resource definitions. kubectl asks for them to find out who validates a kind
// that cannot be patched, such as Chat, and gives up if it gets no answer.
func noCRDs(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "this server has no custom resource definitions", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
}
