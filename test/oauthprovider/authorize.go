// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package oauthprovider

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
)

// The button that denies, on the page of a consent. The other one is named Consent.
const deny = "deny"

// page asks for a consent. It posts the decision to its own address.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<title>Consent</title>
<h1>The client {{.Get "client_id"}} asks for: {{.Get "scope"}}</h1>
<form method="post">
<button name="decision" value="consent">Consent</button>
<button name="decision" value="` + deny + `">Deny</button>
</form>
`))

// authorize shows a person what a client asks for, and sends the person back with the decision (RFC 6749, section 4.1). Everybody who opens
// the page is signed in.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_ = page.Execute(w, q) // a browser that left needs no page
		return
	}
	back, answer, err := p.consent(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.PostFormValue("decision") == deny {
		answer.Del("code")
		answer.Set("error", "access_denied")
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// consent gives a code for the query of a consent. It returns where the person is sent back to, and the query with which that is done.
func (p *Provider) consent(q url.Values) (back *url.URL, answer url.Values, err error) {
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" {
		return nil, nil, errors.New("client_id or response_type is not known")
	}
	if back, err = url.Parse(q.Get("redirect_uri")); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	given := p.give("code")
	p.codes[given] = code{q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("scope")}
	return back, url.Values{"code": {given}, "state": {q.Get("state")}, "iss": {Issuer}}, nil
}
