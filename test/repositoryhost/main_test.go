// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/platform-ai/platform/test/githost/gitfolder"
)

// TestPushing: everybody may read the repository, and only who has the token may push.
func TestPushing(t *testing.T) {
	folder := gitfolder.Folder(t.TempDir())
	git, err := folder.Handler()
	if err == nil {
		err = fill(t.Context(), folder, "greeting", "../../artifacts/demo/greeting")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := folder.Git(t.Context(), "greeting", "", "ls-tree", "-r", "--name-only", "main"); err != nil || got != "README.md\ncheck.sh\ngreet.sh" {
		t.Errorf("the repository has %q, %v", got, err)
	}
	s := httptest.NewServer(pushing("secret", git))
	t.Cleanup(s.Close)
	for _, tc := range []struct {
		service, token string
		code           int
	}{
		{"git-upload-pack", "", http.StatusOK},
		{"git-receive-pack", "", http.StatusUnauthorized},
		{"git-receive-pack", "another", http.StatusUnauthorized},
		{"git-receive-pack", "secret", http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/greeting.git/info/refs?service="+tc.service, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if tc.token != "" {
			r.SetBasicAuth("x", tc.token)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != tc.code {
			t.Errorf("%s with token %q: %d, want %d", tc.service, tc.token, answer.StatusCode, tc.code)
		}
	}
}
