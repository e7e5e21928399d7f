// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/metric"
)

// metrics is the store's prometheus.Collector.
//
//large:fields each is a metric
type metrics struct {
	engine *Engine

	groups, txns, bytes                prometheus.Counter
	groupTxns                          prometheus.Histogram
	commitSeconds, syncSeconds         prometheus.Histogram
	backgroundErrors, slowDisk, stalls prometheus.Counter

	full, freeBytes, losses, waits, damaged *prometheus.Desc

	revision, failed, diskBytes, dbSize, walBytes, memTableBytes *prometheus.Desc
	cacheBytes, cacheHits, cacheMisses                           *prometheus.Desc
	l0Files, readAmplification, compactionDebt                   *prometheus.Desc
}

var _ prometheus.Collector = (*metrics)(nil)

const namespace = "platform_store"

func newMetrics(e *Engine) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
	}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, nil, nil)
	}
	durations := prometheus.ExponentialBuckets(50e-6, 2, 18) // 50 us to 6.5 s
	return &metrics{
		engine:           e,
		groups:           counter("commit_groups_total", "Groups of requests made durable by one sync."),
		txns:             counter("commit_requests_total", "Requests committed or refused."),
		bytes:            counter("commit_bytes_total", "Bytes of committed batches."),
		groupTxns:        histogram("commit_group_requests", "Requests in a group.", prometheus.ExponentialBuckets(1, 2, 12)),
		commitSeconds:    histogram("commit_group_seconds", "Time to sequence and sync a group.", durations),
		syncSeconds:      histogram("commit_sync_seconds", "Time to write a group to the log and sync it.", durations),
		backgroundErrors: counter("background_errors_total", "Failed flushes and compactions."),
		slowDisk:         counter("disk_slow_total", "Operations that the disk did not answer within 2 seconds."),
		stalls:           counter("write_stalls_total", "Times that writes waited for background work."),

		revision:          desc("revision", "Highest durable and published revision."),
		failed:            desc("failed", "1 after the store stopped because the disk failed."),
		full:              desc("disk_full", "1 while the volume has less free than the reserve, and writes that add to the store are refused."),
		waits:             desc("disk_wait_seconds", "Time that the oldest operation of the disk has been in progress."),
		damaged:           desc("damaged_files", "Files of the store in which a checksum did not match."),
		losses:            desc("accepted_losses", "Parts of the store that were lost, and without which it was opened with --accept-data-loss."),
		freeBytes:         desc("disk_free_bytes", "Space that is free on the volume of the store; 0 if it is not known."),
		diskBytes:         desc("disk_bytes", "Space that the store uses on disk."),
		dbSize:            desc("db_size_bytes", "Space that the store uses on disk; the same as disk_bytes."),
		walBytes:          desc("wal_bytes", "Size of the live write-ahead log."),
		memTableBytes:     desc("memtable_bytes", "Memory of memtables."),
		cacheBytes:        desc("block_cache_bytes", "Memory of cached blocks."),
		cacheHits:         desc("block_cache_hits_total", "Blocks found in the cache."),
		cacheMisses:       desc("block_cache_misses_total", "Blocks read from disk."),
		l0Files:           desc("l0_files", "Files in the first level."),
		readAmplification: desc("read_amplification", "Files that a read may have to consult."),
		compactionDebt:    desc("compaction_debt_bytes", "Bytes that compactions have yet to move."),
	}
}

func (m *metrics) group(txns, bytes int, took time.Duration) {
	m.groups.Inc()
	m.txns.Add(float64(txns))
	m.bytes.Add(float64(bytes))
	m.groupTxns.Observe(float64(txns))
	m.commitSeconds.Observe(took.Seconds())
}

func (m *metrics) own() metric.Group {
	return metric.Group{m.groups, m.txns, m.bytes, m.groupTxns, m.commitSeconds, m.syncSeconds, m.backgroundErrors, m.slowDisk, m.stalls}
}

// Describe sends what Collect may send.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.own().Describe(ch)
	for _, d := range []*prometheus.Desc{
		m.full, m.freeBytes, m.losses, m.waits, m.damaged, m.revision, m.failed, m.diskBytes, m.dbSize, m.walBytes, m.memTableBytes, m.cacheBytes, m.cacheHits, m.cacheMisses,
		m.l0Files, m.readAmplification, m.compactionDebt,
	} {
		ch <- d
	}
}

// Collect sends the current values.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	waits := m.engine.disk.waits() // may count
	m.own().Collect(ch)
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	gauge(m.revision, float64(m.engine.Revision()))
	full := 0.
	if m.engine.Full() {
		full = 1
	}
	gauge(m.full, full)
	gauge(m.damaged, float64(m.engine.damage.count()))
	gauge(m.waits, waits.Seconds())
	gauge(m.losses, float64(m.engine.losses))
	gauge(m.freeBytes, float64(m.engine.space.free.Load()))
	if m.engine.failure.Load() != nil {
		gauge(m.failed, 1)
		return // Pebble may still hold its locks
	}
	gauge(m.failed, 0)
	if waits > hangAfter || m.engine.acquire() != nil {
		return // Pebble holds its locks as long as the disk does not answer
	}
	defer m.engine.release()
	p := m.engine.db.Metrics()
	gauge(m.diskBytes, float64(p.DiskSpaceUsage()))
	gauge(m.dbSize, float64(p.DiskSpaceUsage()))
	gauge(m.walBytes, float64(p.WAL.Size))
	gauge(m.memTableBytes, float64(p.MemTable.Size))
	gauge(m.cacheBytes, float64(p.BlockCache.Size))
	count(m.cacheHits, p.BlockCache.Hits)
	count(m.cacheMisses, p.BlockCache.Misses)
	gauge(m.l0Files, float64(p.Levels[0].TablesCount))
	gauge(m.readAmplification, float64(p.ReadAmp()))
	gauge(m.compactionDebt, float64(p.Compact.EstimatedDebt))
}
