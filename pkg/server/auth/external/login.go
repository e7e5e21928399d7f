// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/egress"
)

// Login lets people in browsers get a token of the OpenID provider: the authorization code flow (OpenID Connect Core,
// section 3.1) with PKCE (RFC 7636). The token is checked afterwards like every other.
type Login struct {
	provider   *issuer
	id, secret string // of the client; a public client has no secret
	scopes     string
	exchanges  chan struct{} // holds one element for each exchange with the provider

	mu    sync.Mutex // guards all below
	known *endpoints
	err   error     // of the last attempt to read them
	tried time.Time // when that was
}

// maxExchanges is how many codes are exchanged at the same time: anybody can present one.
const maxExchanges = 8

// ErrBusy is the error of Finish while too many codes are being exchanged.
var ErrBusy = errors.New("too many people log in at the same time")

// Attempt is a login that was begun. The browser that began it keeps it, sealed, so nothing is kept here.
type Attempt struct {
	// State comes back from the provider, and Nonce in its ID token. Verifier shows the provider who asked for the code.
	State, Nonce, Verifier string
	// Redirect is where the provider sends the browser.
	Redirect string
}

// Login returns the login of the provider; nil if none is configured.
func (s *Service) Login(o Options) (*Login, error) {
	if s.oidc == nil || o.OIDC.ClientID == "" {
		return nil, nil //nolint:nilnil // see above
	}
	l := &Login{provider: s.oidc, id: o.OIDC.ClientID, scopes: strings.Join(o.OIDC.Scopes, " "), exchanges: make(chan struct{}, maxExchanges)}
	if file := o.OIDC.ClientSecretFile; file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
		if l.secret = strings.TrimSpace(string(data)); l.secret == "" {
			return nil, fmt.Errorf("--oidc-client-secret-file: %s is empty", file)
		}
	}
	return l, nil
}

// endpoints are the parts of the provider's metadata that a login needs.
type endpoints struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
}

// endpoints returns the metadata. They are read as rarely as keys are, because anybody can begin a login.
func (l *Login) endpoints(ctx context.Context) (*endpoints, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.provider.clock.Now()
	if age := now.Sub(l.tried); !l.tried.IsZero() && (age < pauseBetween || l.err == nil && age < refreshAfter) {
		return l.known, l.err
	}
	l.known, l.err = l.fetch(context.WithoutCancel(ctx)) // others wait for it, too
	l.tried = now
	return l.known, l.err
}

func (l *Login) fetch(ctx context.Context) (*endpoints, error) {
	var e endpoints
	if err := l.provider.keys.get(ctx, strings.TrimSuffix(l.provider.name, "/")+"/.well-known/openid-configuration", &e); err != nil {
		return nil, err
	}
	if e.Issuer != l.provider.name {
		return nil, fmt.Errorf("the metadata are those of issuer %q", e.Issuer)
	}
	if e.Authorization == "" || e.Token == "" {
		return nil, errors.New("the metadata have no authorization_endpoint or no token_endpoint")
	}
	authorization, _, _ := strings.Cut(e.Authorization, "?") // these may have a query (RFC 6749, section 3)
	token, _, _ := strings.Cut(e.Token, "?")
	if err := errors.Join(egress.CheckSecure("authorization_endpoint", authorization), egress.CheckSecure("token_endpoint", token)); err != nil {
		return nil, err
	}
	return &e, nil
}

// Begin begins a login. It returns the address of the provider to which the browser goes.
func (l *Login) Begin(ctx context.Context, redirect string) (*Attempt, string, error) {
	e, err := l.endpoints(ctx)
	if err != nil {
		return nil, "", err
	}
	u, err := url.Parse(e.Authorization)
	if err != nil {
		return nil, "", err
	}
	a := &Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Redirect: redirect}
	challenge := sha256.Sum256([]byte(a.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": l.id, "redirect_uri": redirect, "scope": l.scopes, "state": a.State, "nonce": a.Nonce,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return a, u.String(), nil
}

// Finish exchanges what the provider sent back, and returns the tokens of which one may be accepted here: the ID token,
// whose audience is the client, and the access token.
func (l *Login) Finish(ctx context.Context, a *Attempt, answer url.Values) ([]string, error) {
	switch iss := answer.Get("iss"); { // RFC 9207: an answer of another provider
	case iss != "" && iss != l.provider.name:
		return nil, fmt.Errorf("the answer is one of issuer %q", iss)
	case answer.Get("error") != "":
		return nil, fmt.Errorf("the provider refused: %q", answer.Get("error"))
	case answer.Get("code") == "":
		return nil, errors.New("the answer has no code")
	}
	select {
	case l.exchanges <- struct{}{}:
		defer func() { <-l.exchanges }()
	default:
		return nil, ErrBusy
	}
	e, err := l.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	tokens, err := l.exchange(ctx, e, a, answer.Get("code"))
	if err != nil {
		return nil, err
	}
	if err := checkNonce(tokens.ID, a.Nonce); err != nil {
		return nil, err
	}
	return []string{tokens.ID, tokens.Access}, nil
}

// granted is what the token endpoint answers.
type granted struct {
	ID     string `json:"id_token"`
	Access string `json:"access_token"`
	Error  string `json:"error"`
}

func (l *Login) exchange(ctx context.Context, e *endpoints, a *Attempt, code string) (*granted, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.Redirect}, "code_verifier": {a.Verifier}}
	basic := l.secret != "" && (len(e.Methods) == 0 || slices.Contains(e.Methods, "client_secret_basic"))
	if !basic {
		form.Set("client_id", l.id)
		if l.secret != "" {
			form.Set("client_secret", l.secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if basic {
		req.SetBasicAuth(url.QueryEscape(l.id), url.QueryEscape(l.secret))
	}
	resp, err := l.provider.keys.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err != nil {
		return nil, err
	}
	var g granted
	if err := json.Unmarshal(data, &g); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider did not accept the code: %s %q", resp.Status, g.Error)
	}
	return &g, nil
}

// checkNonce makes sure that an ID token was made for this login. The token came from the provider itself.
func checkNonce(token, nonce string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errors.New("the provider sent no ID token: the scopes must include openid")
	}
	var c struct {
		Nonce string `json:"nonce"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil || c.Nonce != nonce {
		return errors.New("the ID token was made for another login")
	}
	return nil
}
