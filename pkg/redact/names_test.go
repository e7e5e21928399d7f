// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "testing"

func TestNamesSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "proxy-authorization": true, "X-API-Key": true, "api_key": true, "apikey": true, "access_token": true, "Cookie": true,
		"key": true, "sig": true, "client-secret": true, "password": true, "X-Auth-Token": true,
		"page": false, "X-Team": false, "Accept": false, "max_tokens": false, "monkey": false, "design": false, "Content-Type": false, "User-Agent": false,
	} {
		if got := NamesSecret(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
