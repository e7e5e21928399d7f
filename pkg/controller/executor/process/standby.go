// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/runspec"
)

// standbyLife is how long workers stand by after the last run began. Then they are dismissed.
const standbyLife = 10 * time.Second

// standby is a worker that was started before there is a run for it. It knows no run and has no credentials, is used for one run
// at most, and ends by itself when this server does, because its standard input then ends.
type standby struct {
	process    *os.Process
	pidfd      int
	startTicks uint64
	stdin      *os.File
}

// assign makes the worker that of the run with this folder and these variables. If the worker has ended, EPIPE is in the chain of
// the error.
func (s *standby) assign(dir string, env map[string]string) error {
	log, err := openLog(dir) // the worker opens it itself, but could not report that it failed
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return fmt.Errorf("run log: %w", err)
	}
	_, err = runspec.Assignment{Env: env, Dir: filepath.Join(dir, workName), Log: log.Name()}.WriteTo(s.stdin)
	return err
}

// dismiss ends the worker.
func (s *standby) dismiss() {
	_ = s.stdin.Close()
	_ = signalFD(s.pidfd, unix.SIGKILL) // it has nothing to finish
	_, _ = s.process.Wait()
	_ = unix.Close(s.pidfd)
}

// standbys keeps workers ready while runs are coming. Most of the start of a worker is the start of its program, which is
// then over when the run begins. There are none before the first run, and none when no run has begun for standbyLife.
//
// This shortens a task and saves no processor time. A worker that served several runs would save it, but what one run left behind, in
// memory or in the process, would be within reach of the next one.
type standbys struct {
	start func() (*standby, error)
	clock clock.WithTicker
	log   klog.Logger
	// used has a value when a run has asked for a worker.
	used chan struct{}

	// mu guards what follows.
	mu    sync.Mutex
	ready []*standby
	// wanted is how many there should be. It grows when there were too few.
	wanted int
}

func newStandbys(c clock.WithTicker, log klog.Logger, start func() (*standby, error)) *standbys {
	return &standbys{start: start, clock: c, log: log, used: make(chan struct{}, 1)}
}

// mostStandbys is how many workers stand by at most. More would only compete for the processors with the runs.
func mostStandbys() int { return max(2, runtime.GOMAXPROCS(0)) }

// take returns the worker that stands by for the longest time, which now belongs to the caller; nil if there is none.
func (k *standbys) take() *standby {
	if k == nil {
		return nil
	}
	defer func() {
		select {
		case k.used <- struct{}{}:
		default:
		}
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.ready) > 0 {
		s := k.ready[0]
		k.ready = k.ready[1:]
		if !hasExited(s.pidfd) {
			return s
		}
		s.dismiss()
	}
	k.wanted = min(k.wanted+1, mostStandbys())
	return nil
}

// keep starts and dismisses workers until closing is closed.
func (k *standbys) keep(closing <-chan struct{}) {
	defer k.dismissAll()
	quiet := k.clock.NewTimer(standbyLife)
	defer func() { quiet.Stop() }()
	for {
		select {
		case <-closing:
			return
		case <-quiet.C():
			k.dismissAll()
		case <-k.used:
			k.fill()
			quiet.Stop()
			quiet = k.clock.NewTimer(standbyLife)
		}
	}
}

// fill starts workers until there are enough.
func (k *standbys) fill() {
	for k.lacks() {
		s, err := k.start()
		if err != nil {
			k.log.Error(err, "Cannot start a worker that stands by")
			return // runs start their own
		}
		k.mu.Lock()
		k.ready = append(k.ready, s)
		k.mu.Unlock()
	}
}

func (k *standbys) lacks() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ready) < k.wanted
}

func (k *standbys) dismissAll() {
	k.mu.Lock()
	all := k.ready
	k.ready, k.wanted = nil, 0
	k.mu.Unlock()
	for _, s := range all {
		s.dismiss()
	}
}

// startStandby starts a worker for a later run of a container task.
func (e *Executor) startStandby() (*standby, error) {
	nothing, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = nothing.Close() }()
	env := e.environ()
	env[runspec.EnvStandby] = "true"
	s := &standby{}
	if s.process, s.pidfd, s.stdin, err = startWorker(e.opts.ContainerCommand, e.opts.Dir, env, nothing); err != nil {
		return nil, err
	}
	st, err := readStat(s.process.Pid)
	if err != nil {
		s.dismiss()
		return nil, fmt.Errorf("start time of worker: %w", err)
	}
	s.startTicks = st.startTicks
	return s, nil
}
