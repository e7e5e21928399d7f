// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Verifier returns a new code verifier (RFC 7636, section 4.1): 52 characters, 256 random bits and more.
func Verifier() string { return rand.Text() + rand.Text() }

// Challenge returns the challenge of a verifier by the method S256 (RFC 7636, section 4.2).
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Authorization is what a person is asked for.
type Authorization struct {
	// RedirectURI is where the provider sends the browser. State comes back there.
	RedirectURI, State string
	// Challenge is that of a verifier; empty without PKCE.
	Challenge string
	// Scopes may be empty. The provider then decides.
	Scopes []string
}

// AuthorizeURL returns the address where a person gives consent (RFC 6749, section 4.1.1): authorizeURL with its own query, the additional
// parameters, and those of OAuth, which replace others of their names. The error is for an authorizeURL that was not validated.
func AuthorizeURL(o *v1alpha1.ConnectorOAuth, a Authorization) (string, error) {
	u, err := url.Parse(o.AuthorizeURL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", errors.New("authorizeURL must be an absolute https URL")
	}
	query := u.Query()
	for name, value := range o.AdditionalAuthorizeParameters {
		query.Set(name, value)
	}
	query.Set("response_type", "code")
	query.Set("client_id", o.ClientID)
	query.Set("redirect_uri", a.RedirectURI)
	query.Set("state", a.State)
	if len(a.Scopes) > 0 {
		query.Set("scope", strings.Join(a.Scopes, " "))
	}
	if a.Challenge != "" {
		query.Set("code_challenge", a.Challenge)
		query.Set("code_challenge_method", "S256")
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}
