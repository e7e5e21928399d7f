// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// A flipped byte in a table makes a few keys unreadable, with an error that names the file and what to do. Everything else is served,
// writes and the process go on, and a verification of the store finds it unread.
func TestFlippedByte(t *testing.T) {
	for _, verify := range []bool{false, true} {
		t.Run(fmt.Sprint("verify=", verify), func(t *testing.T) {
			disk, registry := localtest.NewDisk(), prometheus.NewRegistry()
			open := func() *local.Engine {
				e, err := local.Open(t.Context(), local.Options{
					Dir: localtest.Dir, FS: disk.FS(), Mark: markFile, MemTableBytes: 256 << 10, Registerer: registry,
					OnFatal: func(err error) { t.Errorf("fatal: %v", err) },
				})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			e := open()
			value := make([]byte, 4096)
			for i := range 256 {
				for j := range value {
					value[j] = byte(rand.Uint32())
				}
				apply(t, e, func(b engine.Batch) error { return b.Set(fmt.Appendf(nil, "t%03d", i), value) })
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			table, err := flip(disk)
			if err != nil {
				t.Fatal(err)
			}
			e = open()
			if verify {
				if err := e.Verify(t.Context(), 0); !errors.Is(err, engine.ErrDamaged) {
					t.Errorf("verified: %v", err)
				}
			}
			damaged := 0
			for i := range 256 {
				v, ok, err := e.Get(fmt.Appendf(nil, "t%03d", i))
				switch {
				case errors.Is(err, engine.ErrDamaged) && strings.Contains(err.Error(), table) && strings.Contains(err.Error(), "restore"):
					damaged++
				case err != nil || !ok || len(v) != len(value):
					t.Errorf("key %d: %v, %v", i, ok, err)
				}
			}
			if damaged == 0 || damaged > 16 {
				t.Errorf("%d of 256 keys are damaged", damaged)
			}
			if got := metric(t, registry, "platform_store_damaged_files"); got != 1 {
				t.Errorf("%v damaged files", got)
			}
			if err := newLedger().write(e, "new"); err != nil {
				t.Error(err)
			}
			if err := e.Healthy(); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// flip changes a byte in a value of the largest table, and returns its name.
func flip(d *localtest.Disk) (table string, err error) {
	files, err := d.FS().List(localtest.Dir)
	if err != nil {
		return "", err
	}
	var content []byte
	for _, f := range files {
		if !strings.HasSuffix(f, ".sst") {
			continue
		}
		c, err := d.Read(d.FS().PathJoin(localtest.Dir, f))
		if err != nil {
			return "", err
		}
		if len(c) > len(content) {
			table, content = f, slices.Clone(c)
		}
	}
	if table == "" {
		return "", errors.New("the store has no table")
	}
	content[len(content)/3] ^= 0xff
	return table, d.Write(d.FS().PathJoin(localtest.Dir, table), content)
}
