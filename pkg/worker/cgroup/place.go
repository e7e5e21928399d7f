// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package cgroup makes control groups for programs. A group bounds how many processes and threads its members have
// together, whoever their user is, and finds all of them, so that it can end them at once.
//
// Groups are made below the control group of the server, so that its own limits hold for programs too. That takes the
// controller of processes (pids) and the right to write: root has it on a machine, and a user in a folder that was
// delegated to that user, such as a service of systemd with Delegate=pids. Both versions of control groups are known. In
// version 2, a group below one that has processes itself must be threaded, because only then the processes need not be moved.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Place is where the groups of a run are made. The zero Place has none.
type Place struct {
	// Dir is a folder that Find returned.
	Dir string `json:"dir,omitempty"`
	// Run begins the name of each group of the run.
	Run string `json:"run,omitempty"`
}

// PlaceOf returns the place of an attempt of a task in a folder that Find returned; with an empty dir, the zero Place.
func PlaceOf(dir, uid string, attempt int) Place {
	if dir == "" {
		return Place{}
	}
	return Place{Dir: dir, Run: "platform-" + uid + "-" + strconv.Itoa(attempt)}
}

// errNone is in the chain of Find's error if the machine has no controller of processes.
var errNone = errors.New("no control group with the controller pids is mounted")

// Find returns the folder of this process's own control group, if groups of programs can be made in it. It tries that
// out. The error says why not.
func Find() (dir string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	err = errNone
	for _, candidate := range candidates(string(mounts), string(own)) {
		failed := try(candidate)
		if failed == nil {
			return candidate, nil
		}
		err = failed
	}
	return "", err
}

// candidates returns the folders of the control group of a process in the hierarchies that may have the controller pids,
// from the texts of its mountinfo and cgroup in /proc.
func candidates(mounts, own string) []string {
	var dirs []string
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(kind) < 3 {
			continue
		}
		controller := ""
		switch {
		case kind[0] == "cgroup2":
		case kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "pids"):
			controller = "pids"
		default:
			continue
		}
		group, ok := groupOf(own, controller)
		if !ok || strings.HasPrefix(group, "/..") { // outside of what this process sees
			continue
		}
		if rel, err := filepath.Rel(mount[3], group); err == nil && filepath.IsLocal(rel) {
			dirs = append(dirs, filepath.Join(mount[4], rel))
		}
	}
	return dirs
}

// groupOf returns the path of the group of a controller in the text of /proc/PID/cgroup. An empty controller means version 2.
func groupOf(own, controller string) (string, bool) {
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) == 3 && (parts[1] == controller || controller != "" && slices.Contains(strings.Split(parts[1], ","), controller)) {
			return parts[2], true
		}
	}
	return "", false
}

// try makes a group in the folder, starts a process in it, and removes it.
func try(dir string) error {
	if err := enable(dir); err != nil {
		return err
	}
	removeProbes(dir, time.Now().Add(-staleProbe)) //nolint:forbidigo // compared with the time of a file
	g, err := Place{dir, probeName}.Make(startRoom)
	if err != nil {
		return err
	}
	var attr syscall.SysProcAttr
	err = g.Start(&attr, func() error {
		_, err := os.StartProcess("/proc/self/no-such-program", []string{"none"}, &os.ProcAttr{Sys: &attr})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // so the process was made, in the group
		err = nil
	}
	return errors.Join(err, g.Remove())
}

const (
	// probeName begins the names of groups that are made to try out whether that is possible.
	probeName = "platform-probe"
	// staleProbe is the age at which such a group is that of a server which was killed meanwhile. Others remove theirs at once.
	staleProbe = time.Minute
)

// IsProbe reports whether a folder is that of a group which was made to try out whether that is possible.
func IsProbe(dir string) bool { return strings.HasPrefix(filepath.Base(dir), probeName+".") }

// removeProbes removes the groups that were made before a time to try out whether that is possible.
func removeProbes(dir string, before time.Time) {
	old, _ := filepath.Glob(filepath.Join(dir, probeName+".*"))
	for _, path := range old {
		if i, err := os.Stat(path); err == nil && i.ModTime().Before(before) {
			_ = unix.Rmdir(path) // fails if it has members
		}
	}
}

// enable lets groups below a folder of version 2 count processes. It stays enabled, because other servers may have groups
// there as well.
func enable(dir string) error {
	v2, err := isUnified(dir)
	if err != nil || !v2 {
		return err
	}
	has := func(file string) bool {
		names, err := os.ReadFile(filepath.Join(dir, file))
		return err == nil && slices.Contains(strings.Fields(string(names)), "pids")
	}
	switch {
	case has("cgroup.subtree_control"):
		return nil
	case !has("cgroup.controllers"):
		return errNone
	}
	return write(dir, "cgroup.subtree_control", "+pids")
}

// isUnified reports whether a folder belongs to version 2 of control groups.
func isUnified(dir string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return st.Type == unix.CGROUP2_SUPER_MAGIC, nil
}

// write writes to a file of a group, which exists.
func write(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Make makes a group that may have this many processes and threads.
func (p Place) Make(most uint64) (*Group, error) {
	dir, err := os.MkdirTemp(p.Dir, p.Run+".*")
	if err != nil {
		return nil, err
	}
	g := &Group{dir: dir}
	if err = g.open(); err == nil {
		err = g.Limit(max(most, startRoom))
	}
	if err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// Clear ends all programs of the run and removes its groups. It is for what a worker left that was killed, also for a worker that
// died together with its server: the next server calls Clear for the run.
func (p Place) Clear() error {
	if p.Dir == "" {
		return nil
	}
	dirs, err := filepath.Glob(filepath.Join(p.Dir, p.Run+".*"))
	for _, dir := range dirs {
		g := &Group{dir: dir}
		if failed := errors.Join(g.Kill(), g.Remove()); failed != nil {
			err = errors.Join(err, fmt.Errorf("control group %s: %w", dir, failed))
		}
	}
	return err
}
