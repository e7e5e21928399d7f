// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventbench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	usagereport "github.com/platform-ai/platform/pkg/readmodel/usage"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	rowUsage       = "usage report, 20,000 records, first page"
	rowUsageMemory = "usage report, 20,000 records, memory"
	// aims of both rows.
	usageAim       = 100_000 // µs
	usageMemoryAim = 64      // MiB
)

// usageReports measures the first page of a report over as many records as a report may have, on the disk.
func usageReports(ctx context.Context, b *bench) error {
	l, err := ledger.Open(b.engine, clock.RealClock{})
	if err != nil {
		return err
	}
	for range usagereport.MaxRecords {
		call, err := l.Start(ctx, usage.Observation{Namespace: "n", SessionName: "s", AttemptID: "1", CounterID: "1/1", Provider: "p", Model: "m"})
		if err != nil {
			return err
		}
		counts := usage.Counts{InputTokens: new(int64(1000)), OutputTokens: new(int64(100)), CachedInputTokens: new(int64(10)), CacheWriteInputTokens: new(int64(0))}
		if err := call.End(usage.Outcome{Counts: counts}, usage.StatusCompleted); err != nil {
			return err
		}
	}
	prices := usage.Prices{}
	prices.Set("p", []v1alpha1.ProviderPrice{{Model: "m", EffectiveFrom: "2020-01-01", Currency: "USD", Input: "3", Output: "15", CachedInput: "0.3"}})
	first := func() error {
		q, err := usagereport.Parse(&v1alpha1.UsageReportSpec{From: "2020-01-01"}, "n", time.Now())
		if err != nil {
			return err
		}
		v, err := l.At(ctx, "n", q.AsOf())
		if err != nil {
			return err
		}
		defer v.Close()
		out, err := q.Report(usagereport.Source{View: v, Prices: prices, Gateway: func(string) (bool, error) { return true, nil }})
		if err == nil && out.OtherWork[2].Usage.Measurements != usagereport.MaxRecords {
			err = fmt.Errorf("the report has %d measurements", out.OtherWork[2].Usage.Measurements)
		}
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := first(); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	took, err := b.micros(first)
	if err != nil {
		return err
	}
	if err := b.add(rowUsage, "µs", report.Lower, took, usageAim, aim); err != nil {
		return err
	}
	return b.add(rowUsageMemory, "MiB", report.Lower, float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), usageMemoryAim, aim)
}
