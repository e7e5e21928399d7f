// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/connector/oauth"
)

var unexported = cmp.AllowUnexported(grant{}, pending{}, parked{})

func TestNeeds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		refresh string
		left    time.Duration // 0 is no end
		want    need
	}{
		{"", 0, nothing},
		{"r", 0, nothing},
		{"r", time.Hour, nothing},
		{"r", margin + time.Nanosecond, nothing},
		{"r", margin, aRefresh},
		{"r", time.Nanosecond, aRefresh},
		{"r", -time.Hour, aRefresh},
		{"", margin, nothing},
		{"", time.Nanosecond, nothing},
		{"", -time.Nanosecond, aConsent},
	} {
		g := &grant{Refresh: tc.refresh}
		if tc.left != 0 {
			g.Expires = begin.Add(tc.left)
		}
		if got := g.needs(begin); got != tc.want {
			t.Errorf("refresh token %q, %s left: %d, want %d", tc.refresh, tc.left, got, tc.want)
		}
	}
	if g := (&grant{Expires: begin}); g.lives(begin) || g.needs(begin) != aConsent {
		t.Error("a token lives at its end")
	}
}

// An outcome changes the grant that it is about, wherever that is now, and nothing else.
func TestDocumentSettle(t *testing.T) {
	t.Parallel()
	given := func(sequence int64, refresh string) grant {
		return grant{
			ask: ask{Number: sequence, Client: client{ID: "id"}}, Sequence: sequence, Access: "access", Refresh: refresh, Type: "Bearer",
			Granted: []string{"a", "b"}, Expires: begin,
		}
	}
	kept := func(current *grant, earlier ...grant) *document {
		if current != nil {
			current = new(*current)
		}
		return &document{Sequence: 9, Begun: 9, Pending: &pending{Verifier: "v"}, Parked: &parked{}, Grant: current, Superseded: slices.Clone(earlier)}
	}
	renewed := func(g grant, refresh string, scopes ...string) grant {
		g.Access, g.Refresh, g.Granted, g.Expires, g.Client = "new", refresh, scopes, begin.Add(time.Hour), client{ID: "id", TokenURL: "new"}
		return g
	}
	answer := &oauth.Grant{AccessToken: oauth.SecretOf("new"), RefreshToken: oauth.SecretOf("next"), TokenType: "Bearer", Expires: begin.Add(time.Hour)}
	with := func(change func(*oauth.Grant)) *oauth.Grant {
		g := *answer
		change(&g)
		return &g
	}
	one, two := given(1, "r1"), given(2, "r2")
	for _, tc := range []struct {
		name           string
		before         *document
		got            *oauth.Grant
		found, current bool
		after          *document
	}{
		{"current", kept(&two, one), answer, true, true, kept(new(renewed(two, "next", "a", "b")), one)},
		{"current without a new refresh token", kept(&two), with(func(g *oauth.Grant) { g.RefreshToken = oauth.Secret{} }), true, true, kept(new(renewed(two, "r2", "a", "b")))},
		{"narrower", kept(&two), with(func(g *oauth.Grant) { g.ScopesStated, g.Scopes = true, []string{"b"} }), true, true, kept(new(renewed(two, "next", "b")))},
		{"wider", kept(&two), with(func(g *oauth.Grant) { g.ScopesStated, g.Scopes = true, []string{"a", "b", "c"} }), true, true, kept(new(renewed(two, "next", "a", "b")))},
		{"refused", kept(&two, one), nil, true, true, kept(nil, one)},
		{"superseded", kept(&one, given(7, "r7"), two), answer, true, false, kept(&one, given(7, "r7"), renewed(two, "next", "a", "b"))},
		{"superseded and refused", kept(&one, given(7, "r7"), two), nil, true, false, kept(&one, given(7, "r7"))},
		{"gone", kept(&one), answer, false, false, kept(&one)},
		{"none", kept(nil), answer, false, false, kept(nil)},
		{"refreshed already", kept(new(given(2, "r3"))), answer, false, false, kept(new(given(2, "r3")))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text, err := tc.before.encode()
			if err != nil {
				t.Fatal(err)
			}
			found, current := tc.before.settle(&outcome{sequence: 2, sent: "r2", client: client{ID: "id", TokenURL: "new"}, got: tc.got})
			if found != tc.found || current != tc.current {
				t.Errorf("found %t, current %t", found, current)
			}
			if len(tc.after.Superseded) == 0 && len(tc.before.Superseded) == 0 {
				tc.after.Superseded = tc.before.Superseded
			}
			if d := cmp.Diff(tc.after, tc.before, unexported); d != "" {
				t.Errorf("of %s (-want +got):\n%s", text, d)
			}
		})
	}
}
