// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/durable"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/cgroup"
)

// Names in a run folder.
const (
	recordName      = "run.json"
	workName        = "work"
	artifactsName   = "artifacts"
	tmpName         = "tmp"
	logName         = "log"
	terminationName = "termination"
	begunName       = "begun"
	spoolName       = "spool"
)

// recordState is how far a start got.
type recordState string

const (
	stateStarting recordState = "starting"
	stateRunning  recordState = "running"
	stateExited   recordState = "exited"
	stateLost     recordState = "lost"
)

// record is run.json. It holds no secret.
type record struct {
	ID        string      `json:"id"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	UID       types.UID   `json:"uid"`
	Attempt   int32       `json:"attempt"`
	State     recordState `json:"state"`
	// BootID, PID and StartTicks (field 22 of /proc/PID/stat) together name a
	// process; the pid is also its session and process group.
	BootID     string    `json:"bootID"`
	PID        int       `json:"pid,omitempty"`
	StartTicks uint64    `json:"startTicks,omitempty"`
	StartedAt  time.Time `json:"startedAt"`
	// Timeout is in nanoseconds from StartedAt, not counting Parked; 0 means none.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Parked is how long the run was parked, in nanoseconds, and ParkedAt since when it is.
	Parked      time.Duration        `json:"parked,omitempty"`
	ParkedAt    time.Time            `json:"parkedAt,omitzero"`
	FinishedAt  time.Time            `json:"finishedAt,omitzero"`
	Cause       executor.Cause       `json:"cause,omitempty"`
	ExitCode    int                  `json:"exitCode,omitempty"`
	Signal      string               `json:"signal,omitempty"`
	Termination *runspec.Termination `json:"termination,omitempty"`
	Message     string               `json:"message,omitempty"`
	// Groups is the folder with the control groups of the run's programs; empty if there are none.
	Groups string `json:"groups,omitempty"`
	// Undelivered means that what the run left is still to be delivered. Deliveries counts the
	// workers that were started for that.
	Undelivered bool `json:"undelivered,omitempty"`
	Deliveries  int  `json:"deliveries,omitempty"`
	// First is how the run's own worker ended, once there was a delivery.
	First *outcome `json:"first,omitempty"`
}

// outcome is how a worker ended.
type outcome struct {
	State       recordState          `json:"state"`
	ExitCode    int                  `json:"exitCode,omitempty"`
	Signal      string               `json:"signal,omitempty"`
	Termination *runspec.Termination `json:"termination,omitempty"`
	Message     string               `json:"message,omitempty"`
}

func (r *record) outcome() outcome {
	return outcome{State: r.State, ExitCode: r.ExitCode, Signal: r.Signal, Termination: r.Termination, Message: r.Message}
}

func (r *record) setOutcome(o outcome) {
	r.State, r.ExitCode, r.Signal, r.Termination, r.Message = o.State, o.ExitCode, o.Signal, o.Termination, o.Message
}

// end ends the programs of a run whose worker is gone, also those that cannot be recognised as its own.
func (r *record) end(t *tree) error {
	return errors.Join(t.kill(), cgroup.PlaceOf(r.Groups, string(r.UID), int(r.Attempt)).Clear())
}

func (r *record) ref() executor.Ref {
	return executor.Ref{Namespace: r.Namespace, Name: r.Name, UID: r.UID, Attempt: r.Attempt}
}

func (r *record) state() executor.State {
	s := executor.State{
		ID: r.ID, Phase: executor.Running, Cause: r.Cause, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		ExitCode: r.ExitCode, Signal: r.Signal, Termination: r.Termination, Message: r.Message,
	}
	switch r.State {
	case stateExited:
		s.Phase = executor.Exited
	case stateLost:
		s.Phase = executor.Lost
	case stateStarting, stateRunning:
	}
	if r.Cause == executor.CauseDisk && s.Phase != executor.Running {
		s.Reason, s.Message = v1alpha1.ReasonDiskLimitExceeded, "the files of the run need more disk than a run may have (--run-disk-limit)"
	}
	s.Undelivered = r.Undelivered && s.Phase != executor.Running
	return s
}

// park notes that the run is parked from now on, or no longer, and reports whether that is a
// change.
func (r *record) park(parked bool, now time.Time) bool {
	if parked == !r.ParkedAt.IsZero() {
		return false
	}
	if parked {
		r.ParkedAt = now
		return true
	}
	r.Parked += max(0, now.Sub(r.ParkedAt)) // the clocks of two servers may differ
	r.ParkedAt = time.Time{}
	return true
}

// left returns the time until the run's deadline; false if there is none.
func (r *record) left(now time.Time) (time.Duration, bool) {
	if r.Timeout <= 0 || !r.ParkedAt.IsZero() {
		return 0, false
	}
	return max(0, r.StartedAt.Add(r.Timeout+r.Parked).Sub(now)), true
}

// readRecord reads the record in a folder. It returns executor.ErrNotFound if there is none, so nothing was begun.
func readRecord(dir string) (*record, error) {
	b, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, executor.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("run record: %w", err)
	}
	if len(bytes.Trim(b, "\x00")) == 0 { // a note that did not reach the disk before the machine crashed
		return nil, executor.ErrNotFound
	}
	rec := &record{}
	if err := json.Unmarshal(b, rec); err != nil {
		return nil, fmt.Errorf("run record in %s: %w", dir, err)
	}
	return rec, nil
}

// write replaces run.json as a whole: a reader sees the old or the new one, also after a power cut.
func (r *record) write(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("run record: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, recordName), b); err != nil {
		return fmt.Errorf("run record: %w", err)
	}
	return nil
}

// note replaces run.json as write does, but does not wait for the disk. That is enough for a start whose worker has got nothing:
// after a crash of the machine neither the worker nor anything that it did is left, and readRecord recognises what the crash
// may have left of the file.
func (r *record) note(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("run record: %w", err)
	}
	path := filepath.Join(dir, recordName)
	if err = os.WriteFile(path+".new", b, 0o600); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("run record: %w", err)
	}
	return nil
}

// markBegun notes that the worker may have got credentials from now on. The mark need not reach
// the disk: it matters only until the next boot.
func markBegun(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, begunName), nil, 0o600); err != nil {
		return fmt.Errorf("run record: %w", err)
	}
	return nil
}

func hasBegun(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, begunName))
	return err == nil
}

// terminationLimit is the largest runspec.Termination, in bytes.
const terminationLimit = 4096

// readTermination returns nil if the worker left none, or none that is usable. The worker
// controls the folder, so what is found there need not be a regular file.
func readTermination(dir string) *runspec.Termination {
	path := filepath.Join(dir, terminationName)
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, terminationLimit+1))
	if err != nil || len(b) == 0 || len(b) > terminationLimit {
		return nil
	}
	t := &runspec.Termination{}
	if json.Unmarshal(b, t) != nil {
		return nil
	}
	t.Reason = strings.ToValidUTF8(t.Reason, "?")
	t.Message = strings.ToValidUTF8(t.Message, "?")
	return t
}
