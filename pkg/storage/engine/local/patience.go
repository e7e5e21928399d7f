// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

const (
	// firstPause and longestPause are the times between attempts to open a store for which something is scarce.
	firstPause, longestPause = 50 * time.Millisecond, 5 * time.Second
	// repeatEvery is the time between two lines of the log about one cause.
	repeatEvery = time.Minute
	// scarcePause slows down an open store, because Pebble repeats background work that failed at once.
	scarcePause = 250 * time.Millisecond
)

// scarce reports whether an operation failed for lack of something that can come back: space or descriptors.
func scarce(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || Exhausted(err)
}

// Exhausted reports whether an operation failed because the process, or the machine, can open no more files.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// patience makes the opening of a store wait for space and descriptors. Without it, Pebble repeats a failed flush without a
// pause, for ever, or fails. An open store returns such errors, so that writes are refused and reads go on; but a file that is to be
// made waits for a descriptor there too; see create.
type patience struct {
	log     logr.Logger
	ctx     context.Context //nolint:containedctx // of the opening
	waiting func(cause error, pause time.Duration)
	// lacking is why an open store waits for descriptors; nil if it does not.
	lacking atomic.Pointer[error]
	// closing is closed when the store is to be closed. If it waits for a descriptor then, stuck is closed.
	closing, stuck chan struct{}
	sticks         sync.Once

	// room makes room on a full disk if it can. It is set by Open.
	room atomic.Pointer[func()]
	open atomic.Bool
	// abandoned is closed when ctx ends while the opening waits. It cannot be interrupted, and goes on until the cause is gone.
	abandoned chan struct{}
	// broken gets an error that makes the opening fail.
	broken chan error

	mu     sync.Mutex
	pause  time.Duration
	logged map[string]time.Time
}

func newPatience(ctx context.Context, log logr.Logger, waiting func(error, time.Duration)) *patience {
	return &patience{log: log, ctx: ctx, waiting: waiting, closing: make(chan struct{}), stuck: make(chan struct{}), abandoned: make(chan struct{}), broken: make(chan error, 1), logged: map[string]time.Time{}}
}

// out runs op until it does not fail for lack of something, if the store is being opened.
func (p *patience) out(op func() error) error {
	for {
		err := op()
		if err == nil || !scarce(err) {
			return err
		}
		if p.open.Load() {
			if Exhausted(err) {
				time.Sleep(scarcePause) //nolint:forbidigo // background work is repeated without a pause
			}
			return err
		}
		if room := p.room.Load(); room != nil && !Exhausted(err) {
			(*room)()
		}
		p.rest("The store cannot be opened yet; trying again until it can", err, nil)
	}
}

// create is out for an operation that makes a file. It waits for a descriptor in an open store as well, and even while that is being
// closed: if Pebble cannot make a log, it panics, and in doing so unlocks a lock that it does not hold, which crashes the process.
func (p *patience) create(op func() error) error { return p.made(op, Exhausted) }

// createAnyway is create for a file that Pebble cannot do without, such as a log. It also waits for space: a volume can be out of
// inodes, of which its free bytes say nothing.
func (p *patience) createAnyway(op func() error) error { return p.made(op, scarce) }

// made runs op until it does not fail for lack of something.
func (p *patience) made(op func() error, lack func(error) bool) error {
	for closing := p.closing; ; {
		err := p.out(op)
		if !lack(err) {
			if p.lacking.Swap(nil) != nil {
				p.rested()
			}
			return err
		}
		p.lacking.Store(&err)
		select {
		case <-closing:
			closing = nil
			p.sticks.Do(func() { close(p.stuck) })
		default:
		}
		p.rest("The store can open no more files; what is written waits until it can", err, closing)
	}
}

// lacks returns an error while an open store waits for descriptors.
func (p *patience) lacks() error {
	if err := p.lacking.Load(); err != nil {
		return fmt.Errorf("the store can open no more files: %w", *err)
	}
	return nil
}

// flush is called with the outcome of a part of a flush. Pebble repeats a flush that failed, and its opening waits for the flush.
// So an error that may not go away ends the opening for its caller, who should end the process. In the background the flush is repeated
// with pauses.
func (p *patience) flush(err error) {
	if err == nil || p.open.Load() || scarce(err) {
		return
	}
	p.fail(err)
	time.Sleep(p.next()) //nolint:forbidigo // Pebble repeats it at once
}

// fail ends the opening with an error.
func (p *patience) fail(err error) {
	select {
	case p.broken <- err:
	default:
	}
}

// next returns the next pause.
func (p *patience) next() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longer()
}

// longer doubles the pause within its bounds. The caller holds mu.
func (p *patience) longer() time.Duration {
	p.pause = min(max(2*p.pause, firstPause), longestPause)
	return p.pause
}

// rested makes the next pause the shortest.
func (p *patience) rested() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = 0
}

// rest waits for a while that grows from call to call, or until it is woken. It says so in the log now and then.
func (p *patience) rest(what string, cause error, wake <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock() // others that wait for the same thing wait longer
	pause := p.longer()
	text := cause.Error()
	if errno := syscall.Errno(0); errors.As(cause, &errno) {
		text = errno.Error() // the same for all files
	}
	//nolint:forbidigo // these pauses are for a real disk
	if now := time.Now(); now.Sub(p.logged[text]) >= repeatEvery && p.ctx.Err() == nil {
		p.logged[text] = now
		p.log.Error(cause, what) // an error, because it needs an operator
	}
	if p.waiting != nil {
		p.waiting(cause, pause)
	}
	timer := time.NewTimer(pause) //nolint:forbidigo // as above
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-wake:
		return
	case <-p.ctx.Done():
	}
	select {
	case <-p.abandoned:
	default:
		close(p.abandoned)
	}
	select {
	case <-timer.C:
	case <-wake:
	}
}
