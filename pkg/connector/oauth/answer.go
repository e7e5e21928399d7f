// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
)

// maxToken is the longest token that is taken, in bytes: it has to fit in a header.
const maxToken = 16 << 10

// Grant is what a provider gave. Its tokens are not printed.
type Grant struct {
	AccessToken Secret
	// RefreshToken is empty if there is none.
	RefreshToken Secret
	// TokenType is Bearer.
	TokenType string
	// Scopes are those that the provider names, sorted.
	Scopes []string
	// ScopesStated says that the provider named the scopes, even if there are none. Otherwise they are those that were asked for, or at a
	// refresh those of before.
	ScopesStated bool
	// Expires is when the access token ends; zero if the provider does not say.
	Expires time.Time
}

// members are the members of an answer, by their names.
type members map[string]json.RawMessage

// text returns a member that is a text.
func (m members) text(name string) string {
	var s string
	_ = json.Unmarshal(m[name], &s) // anything else is no text
	return s
}

// answer is what a token endpoint says (RFC 6749, section 5).
type answer struct {
	// failed says that it is an error. code is the code of the error, which may be empty.
	failed bool
	code   string
	tokens members
}

// parse reads an answer, and reports whether it is one: an object of JSON or, as GitHub sends without being asked, a form. Errors may come
// with status 200. A text error is one, and so is ok: false, which Slack sends.
func parse(contentType string, raw []byte) (a answer, understood bool) {
	if raw = bytes.TrimSpace(raw); bytes.HasPrefix(raw, []byte("{")) {
		if json.Unmarshal(raw, &a.tokens) != nil {
			return answer{}, false
		}
	} else if kind, _, _ := mime.ParseMediaType(contentType); kind == "application/x-www-form-urlencoded" || kind == "text/plain" {
		form, err := url.ParseQuery(string(raw))
		if err != nil || !form.Has("access_token") && !form.Has("error") {
			return answer{}, false
		}
		a.tokens = members{}
		for name := range form {
			text, err := json.Marshal(form.Get(name))
			if err != nil {
				return answer{}, false
			}
			a.tokens[name] = text
		}
	} else {
		return answer{}, false
	}
	a.code = a.tokens.text("error")
	a.failed = a.code != "" || string(a.tokens["ok"]) == "false"
	// Slack puts the person's token into a member, and beside it the one of an app in the workspace.
	var person members
	if json.Unmarshal(a.tokens["authed_user"], &person) == nil && person.text("access_token") != "" {
		a.tokens = person
	}
	return a, a.failed || a.tokens.text("access_token") != ""
}

// grant returns what was given by a request that began at a time, or why it cannot be used. Without a new refresh token the one of before
// goes on; it may be empty.
func (a *answer) grant(began time.Time, before string) (*Grant, string) {
	access, again := a.tokens.text("access_token"), cmp.Or(a.tokens.text("refresh_token"), before)
	if !isToken(access) || again != "" && !isToken(again) {
		return nil, "the provider gave a token that does not fit in a header"
	}
	// RFC 6749 requires a type. Slack leaves it out at a refresh, and else says user for the token of a person.
	switch kind := a.tokens.text("token_type"); strings.ToLower(kind) {
	case "", "bearer", "user":
	default:
		return nil, "the provider gave a token of another type than Bearer"
	}
	g := &Grant{AccessToken: SecretOf(access), RefreshToken: SecretOf(again), TokenType: "Bearer", Expires: expiry(a.tokens["expires_in"], began)}
	if g.Expires.Equal(began) && again == "" {
		g.Expires = time.Time{}
	}
	if raw := a.tokens["scope"]; len(raw) > 0 && string(raw) != "null" {
		var list []string // Twitch
		_ = json.Unmarshal(raw, &list)
		g.ScopesStated, g.Scopes = true, connector.ParseScopes(a.tokens.text("scope")+" "+strings.Join(list, " "))
	}
	return g, ""
}

// isToken reports whether a token is of visible ASCII, which headers carry as it is.
func isToken(s string) bool {
	return len(s) <= maxToken && s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// expiry returns when a token ends that lives for a number of seconds, which may be a text: zero if there is no number. Of zero and less it
// is the begin, so that the token is refreshed before it is used; what cannot be refreshed does not end then, because some providers
// mean that.
func expiry(raw json.RawMessage, began time.Time) time.Time {
	seconds, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(raw), `"`)), 64)
	if err != nil && !math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return time.Time{}
	}
	most := float64(v1alpha1.Longest / time.Second)
	return began.Add(v1alpha1.Length(int64(min(max(seconds, 0), most)), time.Second))
}
