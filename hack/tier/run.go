// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// envOut names the folder for the events of the tests, see hack/gotest.sh.
	envOut = "TIER_OUT"
	// loadFile is where the load of the machine is kept beside the events: a line a sample.
	loadFile = "load.tsv"
	// loadEvery is the time between two samples.
	loadEvery = 5 * time.Second
	// grace is how long a command that is interrupted has to end by itself: clusters are taken down meanwhile.
	grace = time.Minute
)

// runTier runs a command with a folder for temporary files of its own, writes its summary to dir, and fails if the command failed or
// left something behind.
func runTier(ctx context.Context, dir, rest string, ending time.Duration, command []string, out io.Writer) error {
	if err := os.RemoveAll(dir); err != nil { // only what this run writes is reported
		return err
	}
	began := time.Now()
	failed, err := runOne(ctx, dir, ending, command)
	if err != nil {
		return err
	}
	s, err := summarize(dir)
	if err != nil {
		return err
	}
	s.title, s.took = filepath.Base(dir), time.Since(began)
	if err := s.write(dir); err != nil {
		return err
	}
	s.print(out, rest)
	return errors.Join(failed, s.err())
}

// runOne runs a command. Failed is set if it failed or left something behind; err if it could not be run.
func runOne(ctx context.Context, dir string, ending time.Duration, command []string) (failed, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	temporary, err := makeTemporary()
	if err != nil {
		return nil, err
	}
	removed := false
	defer func() {
		if !removed { // this ends early; otherwise a tier that began meanwhile may have a folder of the same name
			_ = os.RemoveAll(temporary)
		}
	}()
	before, err := look(temporary)
	if err != nil {
		return nil, err
	}
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	group, err := makeGroup()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = removeGroups(group) }() // as above
	sampled := make(chan error, 1)
	sampling, stop := context.WithCancel(ctx)
	defer stop()
	go func() { sampled <- sampleLoad(sampling, filepath.Join(dir, loadFile)) }() // ends with stop

	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), envOut+"="+dir, "TMPDIR="+temporary)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	start := cmd.Start
	if group != nil {
		start = func() error { return group.Start(cmd.SysProcAttr, cmd.Start) }
	}
	if err := start(); err != nil {
		return nil, err
	}
	reaped := make(chan struct{})
	go func() { // ends with stop
		reap(sampling, cmd.Process.Pid)
		close(reaped)
	}()
	failed = cmd.Wait()
	if failed != nil {
		failed = fmt.Errorf("%s: %w", command[0], failed)
	}
	stop()
	<-reaped
	if err := <-sampled; err != nil {
		return nil, err
	}
	left, err := before.left(ending, group)
	if err != nil {
		return nil, err
	}
	removed = true
	if err := os.RemoveAll(temporary); err != nil {
		left = append(left, err.Error())
	}
	for _, l := range left {
		failed = errors.Join(failed, errors.New("left behind: "+l))
	}
	return failed, nil
}

// makeTemporary makes the folder for temporary files of what is run. Its name is short, since sockets of tests lie in it, and the same
// in each run: Go keeps the results of a package's tests only as long as the environment that they read stays as it is, and most
// read TMPDIR. What runs beside takes the next number.
func makeTemporary() (string, error) {
	for i := range 1000 {
		dir := filepath.Join(os.TempDir(), "tier"+strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o755); os.IsExist(err) {
			continue
		} else if err != nil {
			return "", err
		}
		return dir, os.Chmod(dir, 0o755) // whatever the umask: programs of other users are run in it
	}
	return "", fmt.Errorf("%s: remove the folders tier0 to tier999 that earlier runs left", os.TempDir())
}

// sampleLoad appends the time and the load of the last minute to a file until the context ends.
func sampleLoad(ctx context.Context, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for tick := time.NewTicker(loadEvery); ; {
		load, err := os.ReadFile("/proc/loadavg")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(f, "%d\t%s", time.Now().Unix(), load); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
		}
	}
}
