// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/codehost"
)

const (
	// maxKnown is how many addresses of hosts a Finder remembers.
	maxKnown = 1000
	// remembered is how long it does. A host that is replaced by one of another kind is recognised after this time.
	remembered = 10 * time.Minute
)

// Finder opens hosts as Open does, and remembers which provider serves which address, so that a host is not asked each time. It may be
// used by several goroutines at once.
type Finder struct {
	known *cache.LRUExpireCache // root address to provider
}

// NewFinder returns a Finder that remembers nothing yet.
func NewFinder(c clock.PassiveClock) *Finder {
	return &Finder{known: cache.NewLRUExpireCacheWithClock(maxKnown, c)}
}

// Open returns the host of a repository.
func (f *Finder) Open(ctx context.Context, r codehost.Remote, provider string) (codehost.Host, error) {
	return open(ctx, r, provider, f.find)
}

// find asks a host that is not known. A failure is not remembered: it may be due to the credential.
func (f *Finder) find(ctx context.Context, r codehost.Remote, at codehost.Address) (string, error) {
	root := at.Root.String()
	if provider, ok := f.known.Get(root); ok {
		return provider.(string), nil
	}
	provider, err := find(ctx, r, at)
	if err == nil {
		f.known.Add(root, provider, remembered)
	}
	return provider, err
}
