// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/worker/spool"
)

// run is a living attempt. Its watch goroutine is the only one that changes it
// after the start; it ends when the worker does or when the executor closes.
type run struct {
	e     *Executor
	ref   executor.Ref
	dir   string
	pidfd int
	// child is nil for a worker that an earlier server started: this process cannot read its exit
	// status.
	child *os.Process
	stop  chan struct{} // closed by requestStop
	once  sync.Once
	parks chan parkRequest
	over  chan struct{} // closed when the watch is over
	// late is set when the run is past its deadline and uses its deliveryTime.
	late bool

	// mu guards rec once the run is among the living.
	mu  sync.Mutex
	rec record
}

func (r *run) state() executor.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rec.state()
}

// parkRequest is a call of Park. It is answered when the change is on disk.
type parkRequest struct {
	parked bool
	done   chan<- error
}

// requestPark lets the watch goroutine park the run. It does nothing if the run is over.
func (r *run) requestPark(ctx context.Context, parked bool) error {
	done := make(chan error, 1)
	select {
	case r.parks <- parkRequest{parked, done}:
		return <-done
	case <-r.over:
		select {
		case <-r.e.closing:
			return errClosed
		default:
			return nil
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *run) requestStop() { r.once.Do(func() { close(r.stop) }) }

// checkInterval is how often the size of a log is compared with its bound. The watch then also
// checks whether the worker has ended, in case the poller missed it.
const checkInterval = 2 * time.Second

// watch follows the run until it ends.
func (r *run) watch() {
	exited, stopWaiting := awaitExit(r.pidfd)
	defer stopWaiting()
	defer close(r.over)
	c := r.e.opts.Clock
	deadline, stopDeadline := r.deadline(c)
	defer func() { stopDeadline() }()
	tick := c.NewTicker(checkInterval)
	defer tick.Stop()
	disk := newUsage(r.dir)
	stop := r.stop
	var grace clock.Timer
	var graceC <-chan time.Time
	end := func(cause executor.Cause) {
		if grace != nil {
			return
		}
		r.setCause(cause)
		r.signal(unix.SIGTERM)
		grace = c.NewTimer(r.e.opts.Grace)
		graceC = grace.C()
	}
	defer func() {
		if grace != nil {
			grace.Stop()
		}
	}()
	for {
		select {
		case <-exited:
			r.finish()
			return
		case <-deadline:
			if left, ok := r.deliveryTime(); ok {
				deadline, stopDeadline = after(c, left)
			} else {
				end(r.lateCause())
			}
		case p := <-r.parks:
			err := r.park(p.parked)
			stopDeadline()
			deadline, stopDeadline = r.deadline(c)
			p.done <- err
		case <-stop:
			stop = nil
			end(executor.CauseStopped)
		case <-graceC:
			r.signal(unix.SIGKILL)
		case <-tick.C():
			if hasExited(r.pidfd) {
				r.finish()
				return
			}
			disk.start(c.Now())
			if err := boundLog(filepath.Join(r.dir, logName), r.e.opts.LogBytes); err != nil {
				r.e.log.Error(err, "Cannot shorten the log of a worker", "run", r.ref.String())
			}
		case used := <-disk.measured:
			disk.done(c.Now())
			if used <= r.e.opts.DiskBytes || spool.Ended(filepath.Join(r.dir, spoolName)) {
				continue
			}
			if end(executor.CauseDisk); used > r.e.opts.DiskBytes/8*9 {
				r.signal(unix.SIGKILL) // it does not stop writing
			}
		case <-r.e.closing:
			r.detach()
			return
		}
	}
}

func (r *run) deadline(c clock.WithTicker) (at <-chan time.Time, stop func()) {
	left, ok := r.rec.left(c.Now())
	if r.rec.First != nil { // its work ended in an earlier process
		if delivery, delivering := r.deliveryTime(); delivering {
			left, ok = delivery, true
		}
	}
	if !ok {
		return nil, func() {}
	}
	return after(c, left)
}

func after(c clock.WithTicker, d time.Duration) (at <-chan time.Time, stop func()) {
	t := c.NewTimer(d)
	return t.C(), func() { t.Stop() }
}

// park records that the run is parked, or no longer. If the record cannot be written, nothing
// changes, because a later server must count the same time.
func (r *run) park(parked bool) error {
	rec := r.rec
	if !rec.park(parked, r.e.opts.Clock.Now()) {
		return nil
	}
	if err := rec.write(r.dir); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec = rec
	return nil
}

func (r *run) setCause(c executor.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec.Cause = cmp.Or(r.rec.Cause, c)
}

func (r *run) signal(s unix.Signal) {
	if err := signalFD(r.pidfd, s); err != nil {
		r.e.log.Error(err, "Cannot signal worker", "run", r.ref.String())
	}
}

// detach stops the watch and lets the worker run on.
func (r *run) detach() {
	_ = unix.Close(r.pidfd)
	if r.child != nil {
		_ = r.child.Release()
	}
}

// finish settles the run after its worker is gone. It first kills the rest of the tree, so that
// nothing is alive when the run counts as over.
func (r *run) finish() {
	log := r.e.log.WithValues("run", r.ref.String())
	if err := r.rec.end(newTree(r.dir, &r.rec, true)); err != nil {
		log.Error(err, "Cannot end all processes of run")
	}
	var status *syscall.WaitStatus
	if r.child != nil {
		if ps, err := r.child.Wait(); err != nil {
			log.Error(err, "Cannot read exit status of worker")
		} else if ws, ok := ps.Sys().(syscall.WaitStatus); ok {
			status = &ws
		}
	}
	_ = unix.Close(r.pidfd)
	rec := r.rec
	rec.settle(r.dir, status, r.e.opts.Clock.Now())
	if rec.notBegun() {
		if err := removeAll(r.dir); err != nil {
			log.Error(err, "Cannot remove the folder of a run that has not begun")
		}
		r.e.ended(r, rec, true)
		return
	}
	err := rec.write(r.dir)
	if err != nil {
		// The outcome is known to this process; after a restart it is read from the termination again.
		log.Error(err, "Cannot write run record")
	}
	r.e.ended(r, rec, err == nil)
	if err == nil {
		r.e.empty(r.dir, &rec)
	}
}

// ended removes the run from the living ones. From then on its record holds its state.
func (e *Executor) ended(r *run, rec record, saved bool) {
	e.mu.Lock()
	delete(e.live, keyOf(r.ref))
	if !saved {
		e.unsaved[keyOf(r.ref)] = rec
	}
	e.mu.Unlock()
	e.exits.Tell(r.ref)
}

// settle fills in the outcome. Without an exit status the worker's termination decides; without
// that, the run is lost. If the run left something in its spool, that is delivered first, and
// the spool says how the work ended.
func (r *record) settle(dir string, status *syscall.WaitStatus, now time.Time) {
	r.Termination = readTermination(dir)
	r.FinishedAt = now
	r.State = stateExited
	r.ExitCode, r.Signal, r.Message = 0, "", ""
	switch {
	case status != nil && status.Signaled():
		r.ExitCode, r.Signal = -1, status.Signal().String()
	case status != nil:
		r.ExitCode = status.ExitStatus()
	case r.Termination != nil:
		r.ExitCode = r.Termination.ExitCode
	default:
		r.State = stateLost
		r.Message = "the worker ended while no server watched it, and left no report"
	}
	r.settleSpool(filepath.Join(dir, spoolName))
}

// recoverAll takes up the runs that an earlier executor left unsettled.
func (e *Executor) recoverAll() error {
	return eachRecord(e.opts.Dir, func(dir string, rec *record) error {
		switch rec.State {
		case stateStarting:
			e.undo(dir, rec)
		case stateRunning:
			if rec.BootID == e.bootID && !hasBegun(dir) {
				e.undo(dir, rec)
				return nil
			}
			return e.adopt(dir, rec)
		case stateExited, stateLost:
			e.watches.Go(func() { e.empty(dir, rec) }) // the server may have ended before it could
		}
		return nil
	})
}

// undo reverts a start whose server ended before the worker got credentials. Nothing was done,
// so the attempt may be started anew.
func (e *Executor) undo(dir string, rec *record) {
	var err error
	if rec.BootID == e.bootID {
		if rec.PID != 0 { // a worker that stood by may not look like that of the run yet
			err = killExact([]stat{{pid: rec.PID, startTicks: rec.StartTicks}})
		}
		err = errors.Join(err, newTree(dir, rec, false).kill())
	}
	if err = errors.Join(err, removeAll(dir)); err != nil {
		e.log.Error(err, "Cannot remove the folder of a run that has not begun", "run", rec.ref().String())
	}
}

// adopt watches a worker that is alive, and settles one that is not.
func (e *Executor) adopt(dir string, rec *record) error {
	r := &run{e: e, ref: rec.ref(), dir: dir, rec: *rec, stop: make(chan struct{}), parks: make(chan parkRequest), over: make(chan struct{})}
	if rec.BootID == e.bootID {
		fd, err := openExact(rec.PID, rec.StartTicks)
		if err != nil {
			return err
		}
		if fd >= 0 {
			r.pidfd = fd
			e.mu.Lock()
			e.live[keyOf(r.ref)] = r
			e.mu.Unlock()
			e.watches.Go(r.watch)
			return nil
		}
		if err := r.rec.end(newTree(dir, &r.rec, false)); err != nil {
			e.log.Error(err, "Cannot end all processes of run", "run", r.ref.String())
		}
	}
	r.rec.settle(dir, nil, e.opts.Clock.Now())
	if r.rec.notBegun() {
		return removeAll(dir)
	}
	if err := r.rec.write(dir); err != nil {
		return err
	}
	e.watches.Go(func() { e.empty(dir, &r.rec) })
	return nil
}

// awaitExit closes the channel when the process of the pidfd has ended. It waits in the
// runtime's poller, so a run costs a goroutine but no thread. stop ends the wait.
func awaitExit(pidfd int) (exited <-chan struct{}, stop func()) {
	done := make(chan struct{})
	dup, err := unix.FcntlInt(uintptr(pidfd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return done, func() {}
	}
	if err := unix.SetNonblock(dup, true); err != nil { // so that os.NewFile uses the poller
		_ = unix.Close(dup)
		return done, func() {}
	}
	f := os.NewFile(uintptr(dup), "pidfd")
	conn, err := f.SyscallConn()
	if err != nil {
		return done, func() { _ = f.Close() }
	}
	go func() {
		if conn.Read(func(fd uintptr) bool { return hasExited(int(fd)) }) == nil {
			close(done)
		}
	}()
	return done, func() { _ = f.Close() }
}

// hasExited reports whether the process of the pidfd is dead, reaped or not.
func hasExited(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// boundLog cuts a log that exceeds its bound to its newer half. The worker opened it for
// appending, so it continues at the new end.
func boundLog(path string, limit int64) (err error) {
	fi, err := os.Stat(path)
	if err != nil || fi.Size() <= limit {
		if errors.Is(err, os.ErrNotExist) {
			return nil // the worker may do so in its own folder
		}
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tail := make([]byte, limit/2)
	n, err := f.ReadAt(tail, fi.Size()-limit/2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append([]byte("[older output was cut]\n"), tail[:n]...), 0)
	return err
}
