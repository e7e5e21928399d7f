// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/test/kit"
)

// SmallVolume mounts a file system of so many MiB in memory for a test.
func SmallVolume(t testing.TB, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("a small file system cannot be mounted here, which root may do: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// FillVolume writes a file until a file system has so many bytes free.
func FillVolume(t testing.TB, file string, free int64) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for {
		var s syscall.Statfs_t
		if err := syscall.Fstatfs(int(f.Fd()), &s); err != nil {
			t.Fatal(err)
		}
		if int64(s.Bavail)*s.Bsize <= free {
			break
		}
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// AwaitDiskFull waits until the server knows how full its disk is: what it measured before, while the volume was being filled, holds for
// a moment. Of the reserve of 16 MiB less than half is left then, with which no status of an object is written either.
func AwaitDiskFull(t testing.TB, metrics prometheus.Gatherer) {
	t.Helper()
	kit.Await(t, "full disk in the metrics", func() bool {
		return Measured(t, metrics, "platform_store_disk_full") == 1 && Measured(t, metrics, "platform_store_disk_free_bytes") < 8<<20
	})
}

// Measured returns the value of a counter or gauge by the values of its labels in the order of their names; 0 if there is none.
func Measured(t testing.TB, metrics prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			have := []string{}
			for _, l := range m.GetLabel() {
				have = append(have, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(have, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}
