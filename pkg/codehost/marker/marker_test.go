// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package marker_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost/marker"
)

const sha = "0123456789abcdef0123456789abcdef01234567"

var (
	subject = marker.Subject{Repository: "ada/shop", PullRequest: 7, HeadSHA: sha}
	oldKey  = []byte("the key of last year")
	newKey  = []byte("the key of this year")
)

func keys(t testing.TB, current []byte, previous ...[]byte) marker.Keys {
	t.Helper()
	k, err := marker.NewKeys(current, previous...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The form is a promise: markers of earlier versions have to be found.
func TestMarkerHasOneForm(t *testing.T) {
	// The signature was computed with Python's hmac, not with this package.
	const want = "<!-- platform:pr-review repo=ada/shop pr=7 head_sha=" + sha + " sig=3fa839b0fbde0923772bb3f93dc456c0872ff7d8f2993545ce36895498804083 -->"
	k := keys(t, newKey)
	if got := k.Marker(subject); got != want || got != k.Marker(subject) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestKeysRotate(t *testing.T) {
	before, both, after := keys(t, oldKey), keys(t, newKey, oldKey), keys(t, newKey)
	old := before.Marker(subject)
	if !both.Find(old, subject) {
		t.Error("a previous key is not accepted")
	}
	if after.Find(old, subject) {
		t.Error("a key that was removed is accepted")
	}
	if both.Marker(subject) != after.Marker(subject) || both.Marker(subject) == old {
		t.Error("the current key does not sign")
	}
	if (marker.Keys{}).Find(old, subject) || (marker.Keys{}).Marker(subject) != "" {
		t.Error("no keys sign or accept something")
	}
}

func TestShortKeysAreRefused(t *testing.T) {
	for _, short := range [][]byte{nil, {}, newKey[:marker.MinKey-1]} {
		if _, err := marker.NewKeys(short); err == nil || !strings.Contains(err.Error(), "at least 16") {
			t.Errorf("current key of %d bytes: %v", len(short), err)
		}
		if _, err := marker.NewKeys(newKey, oldKey, short); err == nil || !strings.Contains(err.Error(), "previous key 2") {
			t.Errorf("previous key of %d bytes: %v", len(short), err)
		}
	}
}

func TestKeysAreCopied(t *testing.T) {
	key := []byte("a key that is cleared")
	k := keys(t, key)
	m := k.Marker(subject)
	clear(key)
	if !k.Find(m, subject) {
		t.Error("a change of the caller's key changed the keys")
	}
}

func TestFindWantsExactlyThisSubject(t *testing.T) {
	k := keys(t, newKey)
	other := func(change func(*marker.Subject)) marker.Subject {
		s := subject
		change(&s)
		return s
	}
	for name, s := range map[string]marker.Subject{
		"repository": other(func(s *marker.Subject) { s.Repository = "ada/shop2" }),
		"owner":      other(func(s *marker.Subject) { s.Repository = "bob/shop" }),
		"number":     other(func(s *marker.Subject) { s.PullRequest = 70 }),
		"head":       other(func(s *marker.Subject) { s.HeadSHA = strings.Repeat("0", 40) }),
		"longer sha": other(func(s *marker.Subject) { s.HeadSHA = strings.Repeat("0", 64) }),
	} {
		m := k.Marker(s)
		if !k.Find(m, s) {
			t.Errorf("%s: its own marker is not found", name)
		}
		// The values are those of the subject, but the signature is of something else.
		i, j := strings.Index(m, "sig="), strings.Index(k.Marker(subject), "sig=")
		if forged := k.Marker(subject)[:j] + m[i:]; k.Find(m, subject) || k.Find(forged, subject) {
			t.Errorf("%s: a marker of %+v counts for %+v", name, s, subject)
		}
	}
	if s := other(func(s *marker.Subject) { s.Repository = "Ada/SHOP" }); k.Marker(s) != k.Marker(subject) || !k.Find(k.Marker(subject), s) {
		t.Error("the case of the repository matters")
	}
}

func TestSubjectsThatCannotBeHaveNoMarker(t *testing.T) {
	k := keys(t, newKey)
	for _, s := range []marker.Subject{
		{},
		{Repository: "ada/shop", PullRequest: 7, HeadSHA: strings.ToUpper(sha)},
		{Repository: "ada/shop", PullRequest: 7, HeadSHA: sha[:39]},
		{Repository: "ada/shop", PullRequest: 0, HeadSHA: sha},
		{Repository: "ada/shop", PullRequest: -7, HeadSHA: sha},
		{Repository: "shop", PullRequest: 7, HeadSHA: sha},
		{Repository: "ada/shop/x", PullRequest: 7, HeadSHA: sha},
		{Repository: "ada/shop pr=7", PullRequest: 7, HeadSHA: sha},
		{Repository: "ada/shop\n", PullRequest: 7, HeadSHA: sha},
		{Repository: "ada/\u212a", PullRequest: 7, HeadSHA: sha + "0"},
	} {
		m := k.Marker(s)
		if m != "" || k.Find(m, s) || k.Find(k.Marker(subject), s) || marker.Legacy(k.Marker(subject), s) {
			t.Errorf("%+v: %q", s, m)
		}
	}
}

func TestFindReadsBodies(t *testing.T) {
	k := keys(t, newKey)
	m := k.Marker(subject)
	others := keys(t, oldKey).Marker(subject)
	head, signature, _ := strings.Cut(m, " sig=")
	replaced := func(before, after string) string { return strings.Replace(m, before, after, 1) }
	for name, tc := range map[string]struct {
		body string
		want bool
	}{
		"alone":                 {m, true},
		"in a text":             {"Looks good.\r\n\r\n" + m + "\r\nThanks", true},
		"in a block of code":    {"```\n" + m + "\n```", true},
		"after another":         {others + m, true},
		"before another":        {m + others, true},
		"after a cut one":       {m[:len(m)-5] + m, true},
		"after a long text":     {strings.Repeat(m[:len(m)-1]+"x", 1000) + m, true},
		"none":                  {"", false},
		"of another key":        {others, false},
		"cut at the end":        {m[:len(m)-1], false},
		"cut in the signature":  {m[:len(m)-20], false},
		"cut in the middle":     {m[:40], false},
		"longer signature":      {replaced(" -->", "0 -->"), false},
		"more after it":         {replaced(" -->", " x=1 -->"), false},
		"no signature":          {head + " -->", false},
		"empty signature":       {head + " sig= -->", false},
		"upper-case signature":  {head + " sig=" + strings.ToUpper(signature), false},
		"two spaces":            {replaced(" pr=", "  pr="), false},
		"a tab":                 {replaced(" pr=", "\tpr="), false},
		"another order":         {replaced("repo=ada/shop pr=7", "pr=7 repo=ada/shop"), false},
		"repository upper case": {replaced("ada/shop", "Ada/shop"), false},
		"sha upper case":        {replaced(sha, strings.ToUpper(sha)), false},
		"a number with a zero":  {replaced("pr=7", "pr=07"), false},
	} {
		if got := k.Find(tc.body, subject); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLegacyNeedsNoKey(t *testing.T) {
	head := "<!-- platform:pr-review repo=ada/shop pr=7 head_sha=" + sha
	for body, want := range map[string]bool{
		head + " -->":                                                     true,
		"x" + head + " sig=abc -->y\n":                                    true,
		keys(t, oldKey).Marker(subject):                                   true,
		strings.Replace(head, "ada/shop", "Ada/Shop", 1) + " -->":         true,
		strings.Replace(head, "pr=7", "pr=8", 1) + " -->" + head + " -->": true,
		head + head + " -->":                                              true,
		"":                                                                false,
		head:                                                              false,
		head + "-->":                                                      false,
		head + "0 -->":                                                    false,
		head + " sig= -->":                                                false,
		head + " sig=a b -->":                                             false,
		head + " sig=" + strings.Repeat("a", 129) + " -->":              false,
		strings.Replace(head, "pr=7", "pr=77", 1) + " -->":              false,
		strings.Replace(head, "ada/shop", "ada/shopx", 1) + " -->":      false,
		strings.Replace(head, sha, strings.ToUpper(sha), 1) + " -->":    false,
		strings.Replace(head, sha, strings.Repeat("0", 40), 1) + " -->": false,
	} {
		if got := marker.Legacy(body, subject); got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
}

// Whatever a body is, a marker is found in it only if its exact text for one of the keys is there.
func FuzzFind(f *testing.F) {
	current, previous := keys(f, newKey), keys(f, oldKey)
	both := keys(f, newKey, oldKey)
	m := current.Marker(subject)
	for _, body := range []string{"", m, m + previous.Marker(subject), m[:len(m)-1], m[:60] + m, "<!-- platform:pr-review repo=ada/shop pr=7 head_sha=" + sha + " -->"} {
		f.Add(body, subject.Repository, subject.PullRequest, subject.HeadSHA)
	}
	f.Add(m, "ADA/Shop", int64(7), sha)
	f.Add(m, "ada/shop pr=7", int64(-1), strings.ToUpper(sha))
	f.Fuzz(func(t *testing.T, body, repository string, number int64, head string) {
		s := marker.Subject{Repository: repository, PullRequest: number, HeadSHA: head}
		one, two := current.Marker(s), previous.Marker(s)
		want := one != "" && (strings.Contains(body, one) || strings.Contains(body, two))
		if got := both.Find(body, s); got != want {
			t.Fatalf("%q, %+v: %t", body, s, got)
		}
		if want && !marker.Legacy(body, s) {
			t.Fatalf("%q, %+v: signed, but no legacy marker", body, s)
		}
	})
}
