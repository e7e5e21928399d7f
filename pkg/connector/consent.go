// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
)

// nameDigits is how many hexadecimal digits of a digest are in a name.
const nameDigits = 12

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// SubjectDigest returns the SHA-256 of issuer, NUL and subject, each without surrounding space, as 64 hexadecimal digits. The label
// v1alpha1.LabelConnectionSubject has the first 32.
func SubjectDigest(issuer, subject string) string {
	return digest(strings.TrimSpace(issuer) + "\x00" + strings.TrimSpace(subject))
}

// Name returns the name of a person's connection to a provider: the provider's name and 12 digits of the person's digest, at most 63
// characters. A provider's name that is cut is followed by 12 digits of its own digest, so that two of them do not share connections.
func Name(provider, issuer, subject string) string {
	if longest := validation.LabelValueMaxLength - nameDigits - 1; len(provider) > longest {
		own := "-" + digest(provider)[:nameDigits]
		provider = strings.TrimRight(provider[:longest-len(own)], "-.") + own
	}
	return provider + "-" + SubjectDigest(issuer, subject)[:nameDigits]
}

// AuthorityDigest returns a digest of what a consent authorizes besides scopes: which client, and where codes and tokens are sent. It is
// 64 hexadecimal digits. Fields that are left out count as their defaults. Scopes are compared by Covers; a new secret of the client,
// other tools and another display name need no consent.
func AuthorityDigest(p *v1alpha1.ConnectorProvider) string {
	o := &p.Spec.OAuth
	authority := struct {
		Issuer         string                                 `json:"issuer"`
		AuthorizeURL   string                                 `json:"authorizeURL"`
		TokenURL       string                                 `json:"tokenURL"`
		RevocationURL  string                                 `json:"revocationURL"`
		ClientID       string                                 `json:"clientID"`
		Authentication v1alpha1.ConnectorClientAuthentication `json:"clientAuthentication"`
		PKCE           bool                                   `json:"pkce"`
		Additional     map[string]string                      `json:"additionalAuthorizeParameters,omitempty"`
	}{
		o.Issuer, o.AuthorizeURL, o.TokenURL, o.RevocationURL, o.ClientID, o.ClientAuthentication,
		o.PKCE == nil || *o.PKCE, o.AdditionalAuthorizeParameters,
	}
	if authority.Authentication == "" {
		authority.Authentication = v1alpha1.ClientSecretBasic
	}
	return digestOf(authority)
}

// ToolDigest returns a digest of the definition of a tool. It is 64 hexadecimal digits. Fields that are left out count as their defaults.
func ToolDigest(t *v1alpha1.ConnectorTool) string {
	t = t.DeepCopy()
	if h := t.HTTP; h != nil {
		h.Method = cmp.Or(h.Method, v1alpha1.ToolPost)
	}
	return digestOf(t)
}

// InjectionDigest returns a digest of how tokens are sent to tools of providers: as Bearer in the header Authorization (RFC 6750). It is 64
// hexadecimal digits.
func InjectionDigest() string {
	return digestOf(map[string]string{"header": "Authorization", "prefix": "Bearer "})
}

// digestOf returns a digest of the canonical JSON of a value that can be encoded.
func digestOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // a value of this package that cannot be encoded
		panic(err)
	}
	if form, err := canonical.Form(raw); err == nil {
		raw = form
	}
	return digest(string(raw))
}

// Required returns the scopes that a connection of a mode needs, sorted. No mode is readOnly.
func Required(p *v1alpha1.ConnectorProvider, mode v1alpha1.ConnectionMode) []string {
	scopes := slices.Clone(p.Spec.OAuth.Scopes.Read)
	if mode == v1alpha1.ConnectionReadWrite {
		scopes = append(scopes, p.Spec.OAuth.Scopes.Write...)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// Covers reports whether each required scope was granted. A scope is its text: what a wider one includes at a provider is not known here,
// so a provider that answers with the wider one alone must be given that one alone.
func Covers(granted, required []string) bool {
	return !slices.ContainsFunc(required, func(scope string) bool { return !slices.Contains(granted, scope) })
}

// ParseScopes returns the scopes in a text, which spaces or commas separate, sorted and each once. What cannot be a scope is left out.
func ParseScopes(s string) []string {
	scopes := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	scopes = slices.DeleteFunc(scopes, func(scope string) bool { return !isScope(scope) })
	slices.Sort(scopes)
	return slices.Compact(scopes)
}
