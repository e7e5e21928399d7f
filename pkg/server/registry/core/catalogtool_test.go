// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding/base64"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestCatalogToolPages: pages of any size have what the list has, in its order. A token of another list, or a made-up one, is
// refused and never read as a position.
func TestCatalogToolPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{"own-a", "own-b"} {
		s.MustApply("tools", "apiVersion: core.platform.ai/v1alpha1\nkind: Tool\nmetadata: {name: "+name+"}\nspec: {description: d, http: {url: \"https://h/\"}}")
	}
	revision := ""
	list := func(o internalversion.ListOptions) (names []string, token string, err error) {
		obj, err := s.Storage["catalogtools"].(rest.Lister).List(s.User(), &o)
		if err != nil {
			return nil, "", err
		}
		l := obj.(*v1alpha1.CatalogToolList)
		if revision == "" {
			revision = l.ResourceVersion
		}
		if l.ResourceVersion != revision || revision == "" {
			t.Errorf("a page at %q of a list at %q", l.ResourceVersion, revision)
		}
		for i := range l.Items {
			names = append(names, l.Items[i].Name)
		}
		return names, l.Continue, nil
	}
	all, _, err := list(internalversion.ListOptions{})
	if err != nil || len(all) < 3 || !slices.Equal(all[len(all)-2:], []string{"own-a", "own-b"}) {
		t.Fatalf("%q, %v", all, err)
	}
	for limit := range all {
		var got []string
		revision = ""
		o := internalversion.ListOptions{Limit: int64(limit + 1)}
		for {
			names, token, err := list(o)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, names...); token == "" {
				break
			}
			o.Continue = token
		}
		if !slices.Equal(got, all) {
			t.Errorf("pages of %d: %q, want %q", limit+1, got, all)
		}
	}
	// What is created between two pages is not in the later one.
	revision = ""
	_, token, err := list(internalversion.ListOptions{Limit: 1})
	s.MustApply("tools", "apiVersion: core.platform.ai/v1alpha1\nkind: Tool\nmetadata: {name: own-c}\nspec: {description: d, http: {url: \"https://h/\"}}")
	rest, _, err2 := list(internalversion.ListOptions{Continue: token})
	if err != nil || err2 != nil || !slices.Equal(rest, all[1:]) {
		t.Errorf("%v, %v, %q, want %q", err, err2, rest, all[1:])
	}
	// Tokens that an earlier version gave.
	revision = ""
	if rest, _, err := list(internalversion.ListOptions{Continue: base64.RawURLEncoding.EncodeToString([]byte("t:"))}); err != nil || !slices.Equal(rest, []string{"own-a", "own-b", "own-c"}) {
		t.Errorf("%q, %v", rest, err)
	}
	for _, bad := range []string{"!", "bm90aGluZw", base64.RawURLEncoding.EncodeToString([]byte("x:file_read"))} {
		if names, _, err := list(internalversion.ListOptions{Continue: bad}); !apierrors.IsBadRequest(err) {
			t.Errorf("%q is accepted: %q, %v", bad, names, err)
		}
	}
}
