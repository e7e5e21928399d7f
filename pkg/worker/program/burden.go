// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Errors of programs that were ended because their processes took too much together.
var (
	// ErrMemory is in the chain of the error for a program whose processes used more memory than its limit.
	ErrMemory = errors.New("too much memory")
	// ErrDeleted is in the chain of the error for a program whose deleted files, which it kept open, took more disk than its
	// limit. No folder shows them, so nothing that measures folders counts them.
	ErrDeleted = errors.New("too large deleted files")
)

const (
	// burdenMillis is the time between two looks at what the machine uses. A program can exceed its limits by what it takes
	// in that time.
	burdenMillis = 50
	// burdenShare bounds the time that counting takes: a count of one millisecond is followed by a pause of 20.
	burdenShare = 20
)

// watchBurden begins to compare what the tree uses with its limits, and kills it when it exceeds one. The kernel limits each
// process alone, and neither memory that processes share nor files in memory.
//
// Counting reads several files of each process, so it is done only after the machine as a whole uses a quarter of a limit
// more than it did when the tree used least.
func (t *tree) watchBurden(c Command) (*watcher, error) {
	memory, disk := wholeMemory(c.Limits), c.Limits.DeletedBytes
	if memory == 0 && disk == 0 {
		return nil, nil //nolint:nilnil // nothing to do
	}
	others := burden{math.MaxUint64, math.MaxUint64} // on the machine, beside the tree
	return watch(func() (pause int, err error) {
		all := machineBurden(c.Dir)
		others = burden{min(others.memory, all.memory), min(others.disk, all.disk)}
		if (memory == 0 || all.memory-others.memory <= memory/4) && (disk == 0 || all.disk-others.disk <= disk/4) {
			return burdenMillis, nil
		}
		began := time.Now() //nolint:forbidigo // a share of real time
		own, err := t.burden()
		switch {
		case err != nil: // processes cannot be listed; it is tried again
		case memory > 0 && own.memory > memory:
			return 0, errors.Join(fmt.Errorf("%w: the program used %d MiB, and may use %d MiB", ErrMemory, own.memory>>20, memory>>20), t.kill())
		case disk > 0 && own.disk > disk:
			return 0, errors.Join(fmt.Errorf("%w: the program kept %d MiB open, and may keep %d MiB", ErrDeleted, own.disk>>20, disk>>20), t.kill())
		default:
			others = burden{all.memory - min(own.memory, all.memory), all.disk - min(own.disk, all.disk)}
		}
		return max(burdenMillis, int(burdenShare*time.Since(began).Milliseconds())), nil //nolint:forbidigo,nilerr // as above; what cannot be listed is counted later
	})
}

// wholeMemory returns what all processes of a program may use together: as much as one of them. Without such a limit it is
// that of this process, which an executor of processes sets for the whole run. 0 means no limit.
func wholeMemory(l sandbox.Limits) uint64 {
	if l.MemoryBytes > 0 {
		return l.MemoryBytes
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &own); err != nil || own.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return own.Cur
}

// machineBurden returns the memory of the machine that is used, with what files are cached, and the disk that is used of the
// volume of a folder. What cannot be read counts as 0, and so never causes a count.
func machineBurden(dir string) (b burden) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		b.memory = (info.Totalram - info.Freeram + info.Totalswap - info.Freeswap) * uint64(info.Unit)
	}
	var volume unix.Statfs_t
	if unix.Statfs(dir, &volume) == nil {
		b.disk = (volume.Blocks - volume.Bfree) * uint64(volume.Bsize)
	}
	return b
}
