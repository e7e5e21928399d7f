// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"syscall"

	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// Who holds the limit of processes; see LimitedBy.
const (
	byGroup   = "cgroup"
	byUser    = "rlimit"
	byCounter = "counter"
)

// LimitedBy returns what holds the limit of processes of programs that have this place for their groups: "cgroup", a control
// group of each program; "rlimit", RLIMIT_NPROC of the user; "counter", this process, which looks at them now and then.
func LimitedBy(p cgroup.Place) string {
	switch {
	case p.Dir != "":
		return byGroup
	case kernelCounts():
		return byUser
	}
	return byCounter
}

// launch starts the shim of a program, in a control group of its own if there is a place for one. If it cannot be started
// there, the group is nil, and the processes of the program have to be counted.
func launch(c Command, out drains, p sandbox.Program) (*sandbox.Launch, *cgroup.Group, error) {
	if group := groupFor(c); group != nil {
		cmd, err := launchIn(group, c, out, p)
		if err == nil {
			return cmd, group, nil
		}
		_ = group.Remove()
	}
	cmd, err := prepare(c, out, p)
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		cmd.Close()
		return nil, nil, err
	}
	return cmd, nil, nil
}

// launchIn starts the shim of a program in a control group. After an error nothing is left in the group.
func launchIn(group *cgroup.Group, c Command, out drains, p sandbox.Program) (*sandbox.Launch, error) {
	limit, err := group.OpenLimit()
	if err != nil {
		return nil, err
	}
	defer func() { _ = limit.Close() }() // the shim has its own
	// The shim sets the limit just before it becomes the program.
	p.Group, p.Processes = limit, c.Limits.Processes
	cmd, err := prepare(c, out, p)
	if err != nil {
		return nil, err
	}
	if err := group.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		if cmd.Process != nil {
			_, _ = cmd.Process.Kill(), cmd.Wait()
		}
		cmd.Close()
		return nil, err
	}
	return cmd, nil
}

func prepare(c Command, out drains, p sandbox.Program) (*sandbox.Launch, error) {
	cmd, err := sandbox.Prepare(p)
	if err != nil {
		return nil, err
	}
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, out[0].w, out[1].w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// groupFor makes the control group of a program; nil if there is no place for it, or no longer.
func groupFor(c Command) *cgroup.Group {
	if c.Policy.Groups.Dir == "" || c.Limits.Processes == 0 {
		return nil
	}
	group, err := c.Policy.Groups.Make(c.Limits.Processes)
	if err != nil {
		return nil
	}
	return group
}
