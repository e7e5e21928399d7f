// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
)

func TestParseAddress(t *testing.T) {
	for address, want := range map[string][3]string{
		"https://github.com/ada/shop":             {"https://github.com", "ada", "shop"},
		"https://github.com/ada/shop.git":         {"https://github.com", "ada", "shop"},
		"https://github.com/ada/shop/":            {"https://github.com", "ada", "shop"},
		"http://127.0.0.1:3000/ada/shop.js.git":   {"http://127.0.0.1:3000", "ada", "shop.js"},
		"https://example.com/forge/two/ada/s_h-p": {"https://example.com/forge/two", "ada", "s_h-p"},
	} {
		a, err := codehost.ParseAddress(address)
		if got := [3]string{a.Root.String(), a.Owner, a.Name}; err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", address, got, err, want)
		}
	}
	for _, address := range []string{
		"", "ada/shop", "ssh://git@github.com/ada/shop", "https:///ada/shop", "https://github.com/shop", "https://github.com", "https://github.com//shop",
		"https://token-of-ada@github.com/ada/shop", "https://github.com/ada/shop?token-of-ada", "https://github.com/ada/shop#token-of-ada", "https://github.com/ada/..",
		"https://github.com/../shop", "https://github.com/ada/.git", "https://github.com/ada/a%2fb", "https://github.com/ada/a%3fb", "https://github.com/a da/shop", "https://github.com/ada/-shop", "https://token-of-ada@[",
	} {
		if _, err := codehost.ParseAddress(address); !errors.Is(err, codehost.ErrAddress) || strings.Contains(err.Error(), "token-of-ada") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestSame: addresses name one repository if they differ in case of names and in .git alone.
func TestSame(t *testing.T) {
	const at = "https://git.example.com/Ada/Shop"
	for other, want := range map[string]bool{
		at: true, at + ".git": true, "https://GIT.example.com/ada/shop": true, at + "/": true,
		"http://git.example.com/Ada/Shop": false, "https://git.example.com:8443/Ada/Shop": false, "https://git.example.com/Ada/Shop2": false, "https://git.example.com/sub/Ada/Shop": false,
		"https://x@git.example.com/Ada/Shop": false, at + "?a=b": false, at + "#a": false, "https://git.example.com/Ada%2FShop/x": false, "git@git.example.com:Ada/Shop": false, "": false,
		"https://git.example.com/Ada/Shop/../Bank": false, "https://git.example.com.evil/Ada/Shop": false,
	} {
		if got := codehost.Same(other, at); got != want {
			t.Errorf("%q: %t", other, got)
		}
	}
}
