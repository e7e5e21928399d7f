// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/url"

	"github.com/platform-ai/platform/pkg/console"
)

const (
	// connectorsPath is where the callback of package connection sends the browser of a person who comes back from a provider.
	connectorsPath = "/settings/connectors"
	// connectorsView is the view of the console that ends the consent.
	connectorsView = console.Path + "settings/connectors"
)

// connectors sends a browser on to the view of connectors with the query that it came with. The fragment, which has the completion token,
// never reaches a server: a browser keeps it when it follows a redirect whose address has none (RFC 9110, section 10.2.2).
func connectors(w http.ResponseWriter, r *http.Request) {
	console.Protect(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page of the console can only be read: use GET", http.StatusMethodNotAllowed)
		return
	}
	http.Redirect(w, r, (&url.URL{Path: connectorsView, RawQuery: r.URL.RawQuery}).String(), http.StatusSeeOther)
}
