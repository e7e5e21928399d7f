// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Limits; lengths are in bytes.
const (
	maxParameters      = 16
	maxParameterValue  = 512
	maxParametersTotal = 2048
	maxScope           = 256
	maxScopesTotal     = 2048
	maxHeaders         = 16
	maxHeaderName      = 128
	maxHeaderValue     = 1024
	maxHeadersTotal    = 4096
)

// credentialWords are words that make a name one of a credential. Some are two words that people write as one.
var credentialWords = set(`token accesstoken authtoken apitoken idtoken oauthtoken refreshtoken sessiontoken
	secret secrets clientsecret password passwd passphrase passcode pwd auth authentication authorization bearer jwt
	credential credentials apikey accesskey authkey privatekey secretkey session sessionid sid cookie signature sig hmac otp assertion`)

// keyWords make a credential of the word key that follows them. A sort key or a public key is none.
var keyWords = set("api access account app application auth client encryption function functions license master private secret service shared signing subscription")

// reservedParameters are the parameters that OAuth defines: RFC 6749, RFC 7009, RFC 7521, RFC 7636, RFC 8628, RFC 8693, RFC 8707, RFC 9101,
// RFC 9126, RFC 9207, RFC 9396, RFC 9449 and OpenID Connect Core 1.0, except those that only choose what a person is shown, and
// audience, which some providers require.
var reservedParameters = set(`client_id client_secret redirect_uri response_type response_mode scope state code code_challenge
	code_challenge_method code_verifier grant_type refresh_token access_token token_type expires_in username password error
	error_description error_uri token token_type_hint assertion client_assertion client_assertion_type device_code user_code
	requested_token_type subject_token subject_token_type actor_token actor_token_type issued_token_type resource request request_uri
	iss authorization_details dpop_jkt nonce id_token id_token_hint claims registration`)

func set(text string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		all[word] = true
	}
	return all
}

// words divides a name at everything but letters, and at the capitals of camel case: APIKey2 is api, key. Words are in small letters.
func words(name string) []string {
	var all []string
	word := []rune{}
	next := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			next()
			continue
		}
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			next()
		}
		word = append(word, r)
	}
	next()
	return all
}

// CredentialLike reports whether a parameter or a header with that name would hold a credential: a word of the name says so. The type
// of a credential, as in token_type, is not one.
func CredentialLike(name string) bool {
	all := words(name)
	switch n := len(all); {
	case n == 0 || all[n-1] == "type":
		return false
	case n == 1 && (all[0] == "key" || all[0] == "pass"):
		return true
	}
	for i, w := range all {
		if credentialWords[w] || w == "key" && i > 0 && keyWords[all[i-1]] {
			return true
		}
	}
	return false
}

// parameter returns a name as OAuth writes names. Servers written in some languages take client.id and client_id[] for client_id.
func parameter(name string) string { return strings.Join(words(name), "_") }

func reserved(name string) bool { return reservedParameters[parameter(name)] }

// secretless is an error that does not repeat a value, which may be a credential.
func secretless(p *field.Path, format string, args ...any) *field.Error {
	return field.Invalid(p, field.OmitValueType{}, fmt.Sprintf(format, args...))
}

// checkParameters checks the parameters that are added to the query of authorizeURL.
func checkParameters(o *v1alpha1.ConnectorOAuth, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	all := o.AdditionalAuthorizeParameters
	own := url.Values{}
	if u, err := url.Parse(o.AuthorizeURL); err == nil {
		own = u.Query()
	}
	form := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value, at := all[name], p.Key(name)
		form.Set(name, value)
		switch {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }):
			errs = append(errs, field.Invalid(at, name, "must be printable ASCII without spaces"))
		case reserved(name):
			errs = append(errs, field.Forbidden(at, "OAuth defines the parameter, and the platform sets those"))
		case CredentialLike(name):
			errs = append(errs, field.Forbidden(at, "looks like the name of a credential"))
		case own.Has(name):
			errs = append(errs, field.Forbidden(at, "is in the query of authorizeURL already"))
		case len(value) > maxParameterValue:
			errs = append(errs, secretless(at, "the value must have at most %d bytes", maxParameterValue))
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			errs = append(errs, secretless(at, "the value must be text without control characters"))
		}
	}
	if len(all) > maxParameters {
		errs = append(errs, field.TooMany(p, len(all), maxParameters))
	}
	if len(form.Encode()) > maxParametersTotal {
		errs = append(errs, secretless(p, "must have at most %d bytes together, as a query", maxParametersTotal))
	}
	return errs
}

// scopeToken matches a scope (RFC 6749, section 3.3) without a comma, which some providers put between scopes.
var scopeToken = regexp.MustCompile(`^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$`)

func isScope(s string) bool { return len(s) <= maxScope && scopeToken.MatchString(s) }

func checkScopes(s *v1alpha1.ConnectorScopes, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, list := range map[string][]string{"read": s.Read, "write": s.Write} {
		for i, scope := range list {
			if !isScope(scope) {
				errs = append(errs, field.Invalid(p.Child(name).Index(i), scope, fmt.Sprintf(
					"must be 1 to %d bytes of printable ASCII without spaces, commas, quotation marks and backslashes", maxScope)))
			}
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	if len(url.QueryEscape(strings.Join(slices.Concat(s.Read, s.Write), " "))) > maxScopesTotal {
		errs = append(errs, secretless(p, "must have at most %d bytes together, as a parameter of a query", maxScopesTotal))
	}
	return errs
}

// checkClientID allows the characters of RFC 6749, appendix A.1. A space around them is a mistake in copying.
func checkClientID(id string, p *field.Path) field.ErrorList {
	if strings.TrimSpace(id) == id && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil
	}
	return field.ErrorList{field.Invalid(p, id, "must be printable ASCII without a space around it")}
}

// reservedHeader returns why a tool cannot set a header, or "" if it can.
func reservedHeader(name string) string {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Authorization":
		return "carries the account of the person who calls"
	case "Cookie", "Set-Cookie":
		return "carries credentials"
	case "Txn-Token", "Transaction-Token", "Traceparent", "Tracestate", "Baggage":
		return "is set on each call for the task that makes it"
	case "Idempotency-Key":
		return "is set on each approved call"
	case "Host", "Content-Length", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return "belongs to a single connection or request"
	}
	switch {
	case strings.HasPrefix(name, "Proxy-"):
		return "belongs to a single connection or request"
	case CredentialLike(name):
		return "looks like the name of a credential"
	}
	return ""
}

// checkHeaders checks the headers that are sent with each call of a tool.
func checkHeaders(headers map[string]string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	total, seen := 0, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, at := headers[name], p.Key(name)
		total += len(name) + len(value)
		canonical := http.CanonicalHeaderKey(name)
		why := reservedHeader(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name) || len(name) > maxHeaderName:
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("must be the name of a header, of at most %d bytes", maxHeaderName)))
		case !httpguts.ValidHeaderFieldValue(value) || len(value) > maxHeaderValue:
			errs = append(errs, secretless(at, "must be the value of a header, of at most %d bytes", maxHeaderValue))
		case why != "":
			errs = append(errs, field.Forbidden(at, why))
		case seen[canonical]:
			errs = append(errs, field.Duplicate(at, name))
		}
		seen[canonical] = true
	}
	if len(headers) > maxHeaders {
		errs = append(errs, field.TooMany(p, len(headers), maxHeaders))
	}
	if total > maxHeadersTotal {
		errs = append(errs, secretless(p, "names and values must have at most %d bytes together", maxHeadersTotal))
	}
	return errs
}
