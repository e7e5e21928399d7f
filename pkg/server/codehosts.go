// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/codehost/marker"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/hostcall"
)

// ReviewMarkers are the settings of the hidden marks of reviews (package marker).
type ReviewMarkers struct {
	// Key signs new marks. Without it, the key is derived from that of the requesters (SealFile), so it stays with the store.
	Key string
	// Previous are keys of older marks.
	Previous []string
	// TrustedAuthor is the login whose marks without a signature are believed. Without it, that is the user of the credential.
	TrustedAuthor string
}

// envMarkerKey is the environment variable of ReviewMarkers.Key.
const envMarkerKey = "PLATFORM_PR_REVIEW_MARKER_SECRET"

// ReviewMarkersOf returns the settings that the environment has.
func ReviewMarkersOf(getenv func(string) string) ReviewMarkers {
	m := ReviewMarkers{Key: strings.TrimSpace(getenv(envMarkerKey)), TrustedAuthor: strings.TrimSpace(getenv("PLATFORM_PR_REVIEW_MARKER_TRUSTED_AUTHOR"))}
	for key := range strings.SplitSeq(getenv("PLATFORM_PR_REVIEW_MARKER_PREVIOUS_SECRETS"), ",") {
		if key = strings.TrimSpace(key); key != "" {
			m.Previous = append(m.Previous, key)
		}
	}
	return m
}

// codeHosts returns how calls on code hosts are carried out.
func (o *Options) codeHosts(seal *external.Seal) (hostcall.Options, error) {
	allow, err := egress.ParseAllow(strings.Join(o.RepositoryAllow, ","))
	if err != nil {
		return hostcall.Options{}, fmt.Errorf("--repository-allow: %w", err)
	}
	keys, err := o.ReviewMarkers.keys(seal)
	if err != nil {
		return hostcall.Options{}, err
	}
	return hostcall.Options{
		Allow: allow, RequireHosts: o.RequireSecretHosts, Key: seal.Derive("codehost-call"), Markers: keys, TrustedAuthor: o.ReviewMarkers.TrustedAuthor,
	}, nil
}

// keys returns the keys of the marks. A mark of the derived key counts also when a key is given later.
func (m ReviewMarkers) keys(seal *external.Seal) (marker.Keys, error) {
	derived := seal.Derive("pr-review-marker")
	current, previous := derived, [][]byte{}
	if m.Key != "" {
		current, previous = []byte(m.Key), [][]byte{derived}
	}
	for _, key := range m.Previous {
		previous = append(previous, []byte(key))
	}
	keys, err := marker.NewKeys(current, previous...)
	if err != nil {
		return marker.Keys{}, fmt.Errorf("%s: %w", envMarkerKey, err)
	}
	return keys, nil
}
