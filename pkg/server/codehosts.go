// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"strings"

	"github.com/platform-ai/platform/pkg/codehost/marker"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/hostcall"
)

// Environment variables of the marks of reviews.
const (
	// envMarkerKey is the key of new marks. Without it, the key is derived from that of the requesters, so it
	// goes with the store.
	envMarkerKey = "PLATFORM_PR_REVIEW_MARKER_SECRET"
	// envMarkerPrevious are keys of older marks, separated by commas.
	envMarkerPrevious = "PLATFORM_PR_REVIEW_MARKER_PREVIOUS_SECRETS"
	// envMarkerAuthor is the login whose marks without a signature are believed. Without it, that is the user of the credential.
	envMarkerAuthor = "PLATFORM_PR_REVIEW_MARKER_TRUSTED_AUTHOR"
)

// codeHosts returns how calls on code hosts are carried out.
func (o *Options) codeHosts(seal *external.Seal) (hostcall.Options, error) {
	allow, err := egress.ParseAllow(strings.Join(o.RepositoryAllow, ","))
	if err != nil {
		return hostcall.Options{}, fmt.Errorf("--repository-allow: %w", err)
	}
	keys, err := markerKeys(os.Getenv, seal)
	if err != nil {
		return hostcall.Options{}, err
	}
	return hostcall.Options{
		Allow: allow, RequireHosts: o.RequireSecretHosts, Key: seal.Derive("codehost-call"), Markers: keys, TrustedAuthor: strings.TrimSpace(os.Getenv(envMarkerAuthor)),
	}, nil
}

// markerKeys returns the keys of the marks of reviews. A mark of the derived key counts also when a key is given later.
func markerKeys(getenv func(string) string, seal *external.Seal) (marker.Keys, error) {
	derived := seal.Derive("pr-review-marker")
	current, previous := derived, [][]byte{}
	if key := strings.TrimSpace(getenv(envMarkerKey)); key != "" {
		current, previous = []byte(key), [][]byte{derived}
	}
	for key := range strings.SplitSeq(getenv(envMarkerPrevious), ",") {
		if key = strings.TrimSpace(key); key != "" {
			previous = append(previous, []byte(key))
		}
	}
	keys, err := marker.NewKeys(current, previous...)
	if err != nil {
		return marker.Keys{}, fmt.Errorf("%s: %w", envMarkerKey, err)
	}
	return keys, nil
}
