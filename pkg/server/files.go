// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

const (
	// startDescriptors is how many files a server must be able to open before it starts: its own are half of that, and without one of them it
	// would end, or serve only in part.
	startDescriptors = 64
	// readyDescriptors is how many files a server that is ready can open.
	readyDescriptors = 8
	// firstLook and lastLook are the times between two attempts to open startDescriptors files.
	firstLook, lastLook = 50 * time.Millisecond, 5 * time.Second
	// sayEvery is the time between two lines of the log about that.
	sayEvery = time.Minute
)

// AwaitFiles waits until the process can open the files of a server. Meanwhile the server is alive and not ready. It returns an error if
// ctx ends first.
func (o *Options) AwaitFiles(ctx context.Context) error {
	s := &standby{o: o}
	defer s.done()
	return s.files(ctx, openable)
}

// files waits until check finds that the process can open the files of a server.
func (s *standby) files(ctx context.Context, check func(n int) error) error {
	var said time.Time
	for look := firstLook; ; look = min(2*look, lastLook) {
		err := check(startDescriptors)
		if err == nil {
			return nil
		}
		s.waits(ctx, err.Error())
		if now := s.o.Clock.Now(); said.IsZero() || now.Sub(said) >= sayEvery {
			said = now
			klog.FromContext(ctx).Error(err, "The server cannot start yet; trying again until it can")
		}
		timer := s.o.Clock.NewTimer(look)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C():
		}
	}
}

// descriptors returns an error if the process can hardly open a file any more. A server in that state is alive and not ready: it answers
// on the connections that it has, and a restart would not help.
func descriptors() error { return openable(readyDescriptors) }

// openable returns an error if the process, or the machine, cannot open n more files.
func openable(n int) error {
	opened := make([]int, 0, n)
	defer func() {
		for _, fd := range opened {
			_ = syscall.Close(fd)
		}
	}()
	for range n {
		switch fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); {
		case local.Exhausted(err):
			return fmt.Errorf("only %d more files can be opened, and %d are needed%s: %w", len(opened), n, limited(err), err)
		case err == nil:
			opened = append(opened, fd)
		}
	}
	return nil
}

// limited says what to raise.
func limited(err error) string {
	var limit syscall.Rlimit
	if !errors.Is(err, syscall.EMFILE) || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return ""
	}
	return fmt.Sprintf(" (raise the limit of open files, %d; see ulimit -n, or LimitNOFILE of systemd)", limit.Cur)
}
