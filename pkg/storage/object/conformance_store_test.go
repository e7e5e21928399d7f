// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clocktesting "k8s.io/utils/clock/testing"
)

func anyKey(context.Context, *testing.T, string)  {}
func anyCalls(_ *testing.T, _, _ uint64)          {}
func identityTransformer(*testing.T) func(*setup) { return withIdentity }
func withIdentity(s *setup)                       { s.config.Transformer = identity.NewEncryptCheckTransformer() }

// still runs a helper on a store whose clock stands still, so that what lives for a second does not end while it is read.
func still(r helper) helper {
	r.with = func(*testing.T) func(*setup) {
		return func(s *setup) { s.db.Clock = clocktesting.NewFakeClock(time.Now()) }
	}
	return r
}

func storeHelpers() []helper {
	kit := []helper{
		plain("RunTestCreateWithTTL", storagetesting.RunTestCreateWithTTL),
		plain("RunTestCreateWithKeyExist", storagetesting.RunTestCreateWithKeyExist),
		still(plain("RunTestGet", storagetesting.RunTestGet)),
		plain("RunTestUnconditionalDelete", storagetesting.RunTestUnconditionalDelete),
		plain("RunTestConditionalDelete", storagetesting.RunTestConditionalDelete),
		plain("RunTestDeleteWithSuggestion", storagetesting.RunTestDeleteWithSuggestion),
		plain("RunTestDeleteWithSuggestionAndConflict", storagetesting.RunTestDeleteWithSuggestionAndConflict),
		plain("RunTestDeleteWithSuggestionOfDeletedObject", storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		plain("RunTestDeleteWithConflict", storagetesting.RunTestDeleteWithConflict),
		plain("RunTestValidateDeletionWithSuggestion", storagetesting.RunTestValidateDeletionWithSuggestion),
		plain("RunTestValidateDeletionWithOnlySuggestionValid", storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
		plain("RunTestPreconditionalDeleteWithSuggestion", storagetesting.RunTestPreconditionalDeleteWithSuggestion),
		plain("RunTestPreconditionalDeleteWithOnlySuggestionPass", storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
		plain("RunTestListPaging", storagetesting.RunTestListPaging),
		plain("RunTestGetListRecursivePrefix", storagetesting.RunTestGetListRecursivePrefix),
		plain("RunTestNamespaceScopedList", storagetesting.RunTestNamespaceScopedList),
		plain("RunTestKeySchema", storagetesting.RunTestKeySchema),
		plain("RunTestGuaranteedUpdateWithTTL", storagetesting.RunTestGuaranteedUpdateWithTTL),
		plain("RunTestGuaranteedUpdateWithConflict", storagetesting.RunTestGuaranteedUpdateWithConflict),
		plain("RunTestGuaranteedUpdateWithSuggestionAndConflict", storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		failing("RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError", false,
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError),
		failing("RunTestDeleteExpectedTransformOrDecodeError", false, storagetesting.RunTestDeleteExpectedTransformOrDecodeError),
		failing("RunTestDeleteExpectedTransformOrDecodeError", true, storagetesting.RunTestDeleteExpectedTransformOrDecodeError),
	}
	missing := plain("RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError",
		func(ctx context.Context, t *testing.T, s storage.Interface) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
		})
	missing.with = gate(true)
	return append(append(kit, missing), adaptedHelpers()...)
}

// adaptedHelpers need more than a store.
func adaptedHelpers() []helper {
	calls := func(name string, f func(context.Context, *testing.T, storage.Interface, storagetesting.CallsValidation)) helper {
		return helper{
			name: name, notDecoded: countsReads,
			run:    func(ctx context.Context, t *testing.T, h harness) { f(ctx, t, h, h.reads) },
			cached: func(ctx context.Context, t *testing.T, c *cached) { f(ctx, t, c, anyCalls) },
		}
	}
	prefixed := func(name string, f func(context.Context, *testing.T, storagetesting.InterfaceWithPrefixTransformer)) helper {
		return helper{name: name, notCached: cacheSkips, run: func(ctx context.Context, t *testing.T, h harness) { f(ctx, t, h) }}
	}
	overridden := func(name string, allowed bool, f func(context.Context, *testing.T, storagetesting.InterfaceWithTransformerOverride, error)) helper {
		return helper{
			name: name, notDecoded: swapsTransformer, notCached: cacheSkips, with: gate(allowed),
			run: func(ctx context.Context, t *testing.T, h harness) { f(ctx, t, h, corrupt()) },
		}
	}
	matches := prefixed("RunTestListResourceVersionMatch", storagetesting.RunTestListResourceVersionMatch)
	matches.notDecoded = swapsTransformer
	fails := prefixed("RunTestTransformationFailure", storagetesting.RunTestTransformationFailure)
	fails.notDecoded = swapsTransformer
	return []helper{
		calls("RunTestListContinuation", storagetesting.RunTestListContinuation),
		calls("RunTestListPaginationRareObject", storagetesting.RunTestListPaginationRareObject),
		calls("RunTestListContinuationWithFilter", storagetesting.RunTestListContinuationWithFilter),
		overridden("RunTestGetListWithErrorAggregation", true, storagetesting.RunTestGetListWithErrorAggregation),
		overridden("RunTestGetListWithoutErrorAggregation", false, storagetesting.RunTestGetListWithoutErrorAggregation),
		prefixed("RunTestGuaranteedUpdateChecksStoredData", storagetesting.RunTestGuaranteedUpdateChecksStoredData),
		matches,
		fails,
		prefixed("RunTestGuaranteedUpdate", func(ctx context.Context, t *testing.T, s storagetesting.InterfaceWithPrefixTransformer) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.(harness).validateKey)
		}),
		{
			name: "RunTestCreate",
			run: func(ctx context.Context, t *testing.T, h harness) {
				storagetesting.RunTestCreate(ctx, t, h, h.validateKey)
			},
			cached: func(ctx context.Context, t *testing.T, c *cached) { storagetesting.RunTestCreate(ctx, t, c, anyKey) },
		},
		{
			name: "RunTestList",
			run: func(ctx context.Context, t *testing.T, h harness) {
				storagetesting.RunTestList(ctx, t, h, h.compact, false, nil)
			},
			cached: func(ctx context.Context, t *testing.T, c *cached) {
				storagetesting.RunTestList(ctx, t, c, c.compactCached, true, c.recorder)
			},
		},
		{
			name: "RunTestConsistentList",
			run: func(ctx context.Context, t *testing.T, h harness) {
				storagetesting.RunTestConsistentList(ctx, t, h, h.increaseRV, false, true, false)
			},
			cached: func(ctx context.Context, t *testing.T, c *cached) {
				snapshots := utilfeature.DefaultFeatureGate.Enabled(features.ListFromCacheSnapshot)
				storagetesting.RunTestConsistentList(ctx, t, c, c.increaseRV, true, true, snapshots)
			},
		},
		{
			name: "RunTestGetListNonRecursive",
			run: func(ctx context.Context, t *testing.T, h harness) {
				storagetesting.RunTestGetListNonRecursive(ctx, t, h.increaseRV, h)
			},
			cached: func(ctx context.Context, t *testing.T, c *cached) {
				storagetesting.RunTestGetListNonRecursive(ctx, t, c.increaseRV, c)
			},
		},
		{
			name: "RunTestCompactRevision",
			run: func(ctx context.Context, t *testing.T, h harness) {
				storagetesting.RunTestCompactRevision(ctx, t, h, h.increaseRV, h.compact)
			},
			cached: func(ctx context.Context, t *testing.T, c *cached) {
				storagetesting.RunTestCompactRevision(ctx, t, c, c.increaseRV, c.compactCached)
			},
		},
		{
			name: "RunTestListInconsistentContinuation", notCached: cacheSkips,
			run: func(ctx context.Context, t *testing.T, h harness) {
				storagetesting.RunTestListInconsistentContinuation(ctx, t, h, h.compact)
			},
		},
		{name: "RunTestStats", with: identityTransformer, run: statsOf(false), cached: cachedStats},
		{name: "RunTestStats", with: identityTransformer, run: statsOf(true), notCached: "the row above runs it as the gate is"},
	}
}

func statsOf(sizes bool) func(context.Context, *testing.T, harness) {
	return func(ctx context.Context, t *testing.T, h harness) {
		if sizes {
			if err := h.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
		storagetesting.RunTestStats(ctx, t, h, h.codec, *h.transformer.Load(), sizes)
	}
}

func cachedStats(ctx context.Context, t *testing.T, c *cached) {
	sizes := utilfeature.DefaultFeatureGate.Enabled(features.SizeBasedListCostEstimate)
	storagetesting.RunTestStats(ctx, t, c, c.codec, *c.transformer.Load(), sizes)
}
