// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/envflag"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

// Modes of the authorization by the scopes of transaction tokens.
const (
	ModeOff     = "off"
	ModeAudit   = "audit"
	ModeEnforce = "enforce"
)

const (
	// ProfileTransactionToken is the only profile of context tokens.
	ProfileTransactionToken = "transaction-token"
	// defaultHeader is where transaction tokens are sent, unless configured otherwise.
	defaultHeader = "Txn-Token"
	// bearerHeader configures that transaction tokens are also accepted as Bearer tokens.
	bearerHeader = "Authorization:Bearer"
)

// Options configure which external callers are accepted. The zero value accepts none.
type Options struct {
	// OIDC accepts tokens of an OpenID provider, if its Issuer is set.
	OIDC OIDC
	// ContextToken accepts transaction tokens, if its Profile is set.
	ContextToken ContextToken
}

// OIDC describes an OpenID provider.
type OIDC struct {
	// Issuer is the provider's address and the required iss claim; Audience is the required audience.
	Issuer, Audience string
	// JWKSURL is where the provider's keys are. Default: as the provider's metadata says.
	JWKSURL string
	// CAFile verifies the provider's certificate. Default: the authorities of the system.
	CAFile string
	// AllowedSubjects are patterns of the sub claim, with the wildcards * and ?. Without any, nobody is accepted.
	AllowedSubjects []string
	// ClientID, if set, lets people log in to the web console at the provider, as this client; ClientSecretFile has its
	// secret, if it has one. Scopes are what is asked for.
	ClientID, ClientSecretFile string
	Scopes                     []string
	// Namespace is the namespace of all these callers.
	Namespace string
}

// ContextToken describes the issuer of transaction tokens.
type ContextToken struct {
	// Profile is empty or ProfileTransactionToken.
	Profile string
	// Issuer, Audience, JWKSURL and CAFile are as those of OIDC, but the keys are below the issuer's address at
	// .well-known/jwks.json by default.
	Issuer, Audience, JWKSURL, CAFile string
	// Headers are the headers with a token: a name, or "Authorization:Bearer".
	Headers []string
	// Mode says what the scopes of a token mean: ModeOff, ModeAudit or ModeEnforce.
	Mode string
	// Scopes are the accepted scopes of each family; see families.
	Scopes map[string]*[]string
	// Exchange configures how tasks get transaction tokens of their own. The authorities of CAFile are also those of the
	// token service.
	Exchange tokenexchange.Options
}

// AddFlags binds the options to flags, whose defaults are in environment variables of the same name.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	set := envflag.Set{FlagSet: fs}
	text, list := set.Text, set.List
	text(&o.OIDC.Issuer, "oidc-issuer", "", "issuer (https) of the OpenID provider whose tokens are accepted as Bearer tokens; needs --oidc-audience. This and all other --oidc and --context-token flags default to an environment variable, such as PLATFORM_OIDC_ISSUER")
	text(&o.OIDC.Audience, "oidc-audience", "", "audience that tokens of --oidc-issuer must name")
	list(&o.OIDC.AllowedSubjects, "oidc-allowed-subjects", nil, "subjects (claim sub) that are accepted, with the wildcards * and ?; if there are none, nobody is accepted. What they may do is up to RBAC: users oidc:NAME, groups oidc:GROUP and oidc-role:ROLE, and platform:oidc for all")
	text(&o.OIDC.Namespace, "oidc-namespace", "default", "the only namespace of callers with a token of --oidc-issuer, and of those with a transaction token that names none")
	text(&o.OIDC.JWKSURL, "oidc-jwks-url", "", "address of the provider's keys (default: as its metadata says)")
	text(&o.OIDC.CAFile, "oidc-ca-file", "", "PEM file with the authorities of the provider's certificate (default: those of the system)")
	text(&o.OIDC.ClientID, "oidc-client-id", "", "client of --oidc-issuer as which people log in to the web console; its redirect URI is https://HOST/console/provider/callback, and its ID tokens or access tokens must name --oidc-audience. If empty, the console accepts only tokens")
	text(&o.OIDC.ClientSecretFile, "oidc-client-secret-file", "", "file with the secret of --oidc-client-id; a public client has none")
	list(&o.OIDC.Scopes, "oidc-scopes", []string{"openid", "profile", "email"}, "scopes that a login to the web console asks for; openid must be one of them")
	c := &o.ContextToken
	text(&c.Profile, "context-token-profile", "", "transaction-token accepts transaction tokens; empty accepts none, and refuses requests that carry one")
	text(&c.Issuer, "context-token-issuer", "", "issuer (https) of transaction tokens")
	text(&c.Audience, "context-token-audience", "", "audience that transaction tokens must name")
	text(&c.JWKSURL, "context-token-jwks-url", "", "address of the issuer's keys (default: ISSUER/.well-known/jwks.json)")
	text(&c.CAFile, "context-token-ca-file", "", "PEM file with the authorities of the issuer's certificate (default: those of the system)")
	list(&c.Headers, "context-token-headers", []string{defaultHeader}, "headers with a transaction token; Authorization:Bearer accepts them as Bearer tokens")
	text(&c.Mode, "context-token-authz-mode", ModeOff, "what the scopes of a transaction token mean: off, nothing; audit, what they do not cover is counted and logged; enforce, it is refused (403). RBAC applies in each mode")
	c.Exchange.AddFlags(fs)
	c.Scopes = map[string]*[]string{}
	for _, f := range families() {
		c.Scopes[f] = new([]string)
		list(c.Scopes[f], "context-token-"+scopesFlag(f), []string{scopePrefix + f}, "scopes that permit "+f+"; a token needs one of them")
	}
}

// TokenHeaders returns the headers that clients may send a transaction token in. The usual one is always among them, because a
// request with it is refused where it is not accepted, and its sender must see that.
func (o *Options) TokenHeaders() []string {
	names := []string{defaultHeader}
	for _, h := range o.ContextToken.Headers {
		if name := http.CanonicalHeaderKey(h); h != bearerHeader && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Check reports options that are incomplete or contradict each other. Errors name the flag.
func (o *Options) Check() error {
	if o.OIDC.Namespace == "" {
		o.OIDC.Namespace = "default"
	}
	if msgs := validation.IsDNS1123Label(o.OIDC.Namespace); len(msgs) > 0 {
		return fmt.Errorf("--oidc-namespace: %q: %s", o.OIDC.Namespace, strings.Join(msgs, ", "))
	}
	return errors.Join(o.OIDC.check(), o.ContextToken.check())
}

func (o *OIDC) check() error {
	switch {
	case o.Issuer == "" && o.Audience == "" && o.JWKSURL == "" && o.CAFile == "" && o.ClientID == "" && o.ClientSecretFile == "" && len(o.AllowedSubjects) == 0:
		return nil
	case o.Issuer == "":
		return errors.New("--oidc-issuer is needed with the other --oidc flags")
	case o.Audience == "":
		return errors.New("--oidc-audience is needed with --oidc-issuer: without it, tokens for other services would be accepted")
	}
	if o.ClientID != "" && len(o.Scopes) == 0 {
		o.Scopes = []string{"openid", "profile", "email"}
	}
	switch {
	case o.ClientID == "" && o.ClientSecretFile != "":
		return errors.New("--oidc-client-id is needed with --oidc-client-secret-file")
	case o.ClientID != "" && !slices.Contains(o.Scopes, "openid"):
		return errors.New("--oidc-scopes must include openid")
	}
	return errors.Join(egress.CheckSecure("--oidc-issuer", o.Issuer), egress.CheckSecure("--oidc-jwks-url", o.JWKSURL))
}

// given returns the name of a setting that is not as by default, without the prefix of its flag; empty if there is none.
func (c *ContextToken) given() string {
	settings := []struct {
		name string
		set  bool
	}{
		{"issuer", c.Issuer != ""},
		{"audience", c.Audience != ""},
		{"jwks-url", c.JWKSURL != ""},
		{"ca-file", c.CAFile != ""},
		{"headers", len(c.Headers) > 0 && !slices.Equal(c.Headers, []string{defaultHeader})},
		{"authz-mode", c.Mode != "" && c.Mode != ModeOff},
		{"tts-endpoint", c.Exchange.Endpoint != ""},
	}
	for _, s := range settings {
		if s.set {
			return s.name
		}
	}
	for _, f := range families() {
		if accepted := c.Scopes[f]; accepted != nil && !slices.Equal(*accepted, []string{scopePrefix + f}) {
			return scopesFlag(f)
		}
	}
	return ""
}

// scopesFlag returns the name of the flag with the scopes of a family, without its prefix.
func scopesFlag(family string) string { return strings.ReplaceAll(family, ":", "-") + "-scopes" }

func (c *ContextToken) check() error {
	if err := c.Exchange.Check(); err != nil {
		return err
	}
	if c.Profile == "" {
		if name := c.given(); name != "" {
			return fmt.Errorf("--context-token-profile=transaction-token is needed with --context-token-%s: without it, no transaction token is accepted, and nothing is authorized by one", name)
		}
		return nil
	}
	if c.Mode == "" {
		c.Mode = ModeOff
	}
	if len(c.Headers) == 0 {
		c.Headers = []string{defaultHeader}
	}
	switch {
	case c.Profile != ProfileTransactionToken:
		return fmt.Errorf("--context-token-profile: %q: must be %s or empty", c.Profile, ProfileTransactionToken)
	case c.Issuer == "":
		return errors.New("--context-token-issuer is needed with --context-token-profile")
	case c.Audience == "":
		return errors.New("--context-token-audience is needed with --context-token-profile: without it, tokens for other services would be accepted")
	case !slices.Contains([]string{ModeOff, ModeAudit, ModeEnforce}, c.Mode):
		return fmt.Errorf("--context-token-authz-mode: %q: must be off, audit or enforce", c.Mode)
	}
	for _, h := range c.Headers {
		if h == bearerHeader {
			continue
		}
		switch name := http.CanonicalHeaderKey(h); {
		case !httpguts.ValidHeaderFieldName(h):
			return fmt.Errorf("--context-token-headers: %q: must be the name of a header, or %s", h, bearerHeader)
		case name == "Authorization" || name == "X-Api-Key" || name == "Cookie" || name == "Host" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-"):
			return fmt.Errorf("--context-token-headers: %q: has another meaning; use %s or %s", h, defaultHeader, bearerHeader)
		}
	}
	return errors.Join(egress.CheckSecure("--context-token-issuer", c.Issuer), egress.CheckSecure("--context-token-jwks-url", c.JWKSURL))
}
