// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providers has the list of code hosts, and finds out which one serves an address.
package providers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/gitea"
	"github.com/platform-ai/platform/pkg/codehost/github"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// ErrUnknown means that no driver serves an address.
var ErrUnknown = errors.New("the code host is none that the platform knows; name the provider, github or gitea")

// Open returns the host of a repository. The provider is that of v1alpha1.RepositoryIdentity. If it is empty, and the address does not
// say whose it is, the host is asked.
func Open(ctx context.Context, r codehost.Remote, provider string) (codehost.Host, error) {
	return open(ctx, r, provider, find)
}

// finding finds out which provider serves an address.
type finding func(ctx context.Context, r codehost.Remote, at codehost.Address) (string, error)

func open(ctx context.Context, r codehost.Remote, provider string, find finding) (codehost.Host, error) {
	at, err := codehost.ParseAddress(r.URL)
	if err != nil {
		return nil, err
	}
	if provider == "" && github.Serves(at.Root) {
		provider = codehost.GitHub
	}
	if provider == "" {
		if provider, err = find(ctx, r, at); err != nil {
			return nil, err
		}
	}
	switch provider {
	case codehost.GitHub:
		return github.New(r)
	case codehost.Gitea:
		return gitea.New(r)
	}
	return nil, ErrUnknown
}

// find asks a host what it is, without the credential as long as the host answers without one.
func find(ctx context.Context, r codehost.Remote, at codehost.Address) (string, error) {
	token, err := r.Credential()
	if err != nil {
		return "", err
	}
	client := wire.Client(r, nil)
	var failed error
	for _, is := range []struct {
		provider, url string
		// says reports whether an answer is that provider's.
		says func(object) bool
	}{
		{codehost.Gitea, at.Root.JoinPath("api/v1/version").String(), func(a object) bool { return a.has("version") }},
		{codehost.GitHub, github.API(at.Root) + "meta", func(a object) bool {
			return a.has("installed_version") || a.has("verifiable_password_authentication")
		}},
	} {
		answer, err := get(ctx, client, is.url, "")
		if errors.Is(err, codehost.ErrCredential) && token != "" {
			answer, err = get(ctx, client, is.url, token)
		}
		switch {
		case err == nil && is.says(answer):
			return is.provider, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil && failed == nil && !errors.Is(err, codehost.ErrNotFound) && !errors.Is(err, codehost.ErrRefused):
			failed = err
		}
	}
	if failed != nil {
		return "", failed
	}
	return "", ErrUnknown
}

// object is an answer of which only the names of its members matter.
type object map[string]json.RawMessage

func (o object) has(member string) bool {
	_, ok := o[member]
	return ok
}

// get returns the object at an address; nil if something else is there. Both providers take a token that is named so.
func get(ctx context.Context, client *http.Client, url, token string) (object, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, codehost.ErrAddress
	}
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, wire.Error(ctx, err, "a code host")
	}
	defer func() { _ = answer.Body.Close() }()
	var found object
	if err := json.NewDecoder(answer.Body).Decode(&found); errors.Is(err, codehost.ErrUnavailable) {
		return nil, wire.Error(ctx, err, "a code host")
	}
	return found, nil
}
