// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package process runs workers as local processes, for the standalone server.
//
// A run lives in DIR/<task uid>/<attempt>/:
//
//	run.json     what was started: run id, pid, start time of the process, outcome
//	begun        the worker may have got its credentials
//	work/        working folder and HOME of the worker
//	artifacts/   files that the worker uploads at the end
//	tmp/         TMPDIR
//	spool/       what the worker has to send to the server (package spool)
//	log          standard output and error of the worker, bounded
//	termination  how the worker ended (runspec.Termination)
//
// Invariants
//
//   - An attempt is started at most once. run.json says "starting" before the worker exists, which
//     need not be on disk, because a worker does not survive a crash of the machine. It is on disk
//     as "running" with its pid and then as begun before the worker gets its credentials. A worker without credentials does
//     nothing, so a crash before that leaves an attempt that provably did no work: Open undoes it, and it may be started anew.
//     Once begun it is never started again.
//   - A worker of a container task may be started before there is a run for it (standbys). It then knows nothing of any
//     run, and becomes the worker of one run at most, under the same rules.
//   - A pid counts only together with its start time and the boot id, and is
//     signalled only through a pidfd that was opened before those were checked.
//   - When the worker is gone, all of its descendants are killed, including those that made a
//     session of their own.
//   - Workers outlive the server. Open finds them again. The clock of a run does not stop meanwhile: one that still works
//     when its deadline has passed has timed out. One whose work is over, as its spool says, gets deliveryTime more. That
//     time counts only while a server runs, because the executor is a part of it.
//   - Once the server has stored what a run left, its folder is emptied down to run.json. A folder whose content the server
//     may lack stays until its task is deleted.
//   - What a worker left in its spool is not lost when it is gone: Deliver starts another
//     worker that sends it, in the same folder and for the same attempt. No work is repeated.
//
// # Cost
//
// Of many short tasks on one machine, processor time is the limit, and a good third of it is spent by workers, mostly before
// their work begins. Tasks of type container therefore have a smaller program (cmd/platform-worker-command) and standbys.
// What one task costs is measured by make bench ROWS='one task alone': about 13 requests and 8 syncs of the store for the
// program true. The lists of test/arch name the modules that a worker links.
package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

var _ executor.Executor = &Executor{}

// Defaults of Options.
const (
	DefaultGrace       = 10 * time.Second
	DefaultLogBytes    = 4 << 20
	DefaultOpenFiles   = 4096
	DefaultFileBytes   = 4 << 30
	DefaultMemoryBytes = 4 << 30
	DefaultDiskBytes   = runspec.DefaultDiskBytes
)

// ErrLocked means that another process uses the same folder.
var ErrLocked = errors.New("another process uses the run folder")

var errClosed = errors.New("the executor is closed")

// Options configure an Executor.
type Options struct {
	// Dir holds the run folders. Required.
	Dir string
	// Command is the worker program and its arguments. Required. It must not contain a secret.
	Command []string
	// ContainerCommand is the same for tasks of type container. Default: Command.
	ContainerCommand []string
	// Standby says that ContainerCommand can be started before there is a run for it (runspec.EnvStandby).
	Standby bool
	// ControllerURL is the address of the API server, and CAFile the path of the CA bundle that verifies its
	// certificate.
	ControllerURL string
	CAFile        string
	// AllowHostCommands lets container tasks run as commands of this host.
	AllowHostCommands bool
	// Sandbox configures the sandbox of programs of runs. By default it hides Dir.
	Sandbox runspec.Sandbox
	// WebFetchAllow lists host:port that the tool web_fetch may reach although their addresses are private.
	WebFetchAllow []string
	// RepositoryAllow lists host:port from which repositories of tasks may be fetched although their addresses are private.
	RepositoryAllow []string
	// WorkspaceProgram is the program that prepares the repository of a task; empty if there is none.
	WorkspaceProgram string
	// AgentPrograms are the programs of coding agents that the operator named.
	AgentPrograms agentprogram.Given
	// SearchURL is the URL of the search service that the tool web_search uses; empty means none.
	SearchURL string
	// Exchange says how runs with a transaction token ask for those of children.
	Exchange tokenexchange.Options
	// Grace is the time between SIGTERM and SIGKILL. Default 10 s.
	Grace time.Duration
	// LogBytes bounds the log of a run; the older half is dropped first. Default 4 MiB.
	LogBytes int64
	// OpenFiles limits open files of each process. Default 4096.
	OpenFiles uint64
	// FileBytes limits the size of each file written. Default 4 GiB.
	FileBytes uint64
	// MemoryBytes limits the data segment of each process, and what all processes of a program use together. Default 4 GiB.
	MemoryBytes int64
	// DiskBytes limits what the folder of a run takes on disk. It is measured every two seconds, so a run can exceed it by
	// what it writes in that time. Default 10 GiB.
	DiskBytes int64
	// Keep leaves the files of a run in place when the server has stored what it left.
	Keep bool
	// Clock defaults to the real clock.
	Clock clock.WithTicker
}

func (o *Options) complete() error {
	if o.Dir == "" || len(o.Command) == 0 {
		return errors.New("an executor of processes needs Dir and Command")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if len(o.Sandbox.Hide) == 0 {
		o.Sandbox.Hide = []string{dir}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if len(o.ContainerCommand) == 0 {
		o.ContainerCommand = o.Command
	}
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.LogBytes = cmp.Or(o.LogBytes, DefaultLogBytes)
	o.OpenFiles = cmp.Or(o.OpenFiles, DefaultOpenFiles)
	o.FileBytes = cmp.Or(o.FileBytes, DefaultFileBytes)
	o.DiskBytes = cmp.Or(o.DiskBytes, DefaultDiskBytes)
	o.MemoryBytes = cmp.Or(o.MemoryBytes, DefaultMemoryBytes)
	o.Sandbox.DiskBytes = uint64(o.DiskBytes)
	return nil
}

// Executor runs workers as local processes.
type Executor struct {
	opts    Options
	sandbox string // Options.Sandbox as workers get it
	bootID  string
	lock    *os.File
	log     klog.Logger
	closing chan struct{}
	watches sync.WaitGroup
	exits   executor.Listeners
	// standbys are workers that wait for a run; nil if there are never any.
	standbys *standbys
	// programs are the digests of the programs of coding agents.
	programs agentprogram.Digests

	// mu guards what follows. It is not held over system calls that may wait.
	mu   sync.Mutex
	live map[key]*run
	// unsaved are runs that are over, but whose record could not be written.
	unsaved map[key]record
}

type key struct {
	uid     types.UID
	attempt int32
}

func keyOf(r executor.Ref) key { return key{r.UID, r.Attempt} }

// Open locks the folder and takes over the runs that are still alive. Runs that ended meanwhile
// are settled from the files that they left.
func Open(ctx context.Context, o Options) (*Executor, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	sandbox, err := json.Marshal(o.Sandbox)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	lock, err := takeLock(ctx, o.Clock, filepath.Join(o.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	boot, err := bootID()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	e := &Executor{
		opts: o, sandbox: string(sandbox), bootID: boot, lock: lock, log: klog.FromContext(ctx),
		closing: make(chan struct{}), live: map[key]*run{},
		unsaved: map[key]record{},
	}
	if err := e.recoverAll(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if o.Standby {
		e.standbys = newStandbys(o.Clock, e.log, e.startStandby)
		e.watches.Go(func() { e.standbys.keep(e.closing) })
	}
	return e, nil
}

// A worker that is just being forked holds the lock of its server until it is
// executed. If the server was killed in that moment, the next one has to wait.
const (
	lockPatience = 3 * time.Second
	lockPause    = 20 * time.Millisecond
)

func takeLock(ctx context.Context, c clock.Clock, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder lock: %w", err)
	}
	for began := c.Now(); ; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("run folder lock: %w", err), f.Close())
		}
		if c.Since(began) >= lockPatience {
			return nil, errors.Join(ErrLocked, f.Close())
		}
		select {
		case <-c.After(lockPause):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}

// Close stops watching and unlocks the folder. Workers keep running.
func (e *Executor) Close() error {
	e.mu.Lock()
	select {
	case <-e.closing:
		e.mu.Unlock()
		return nil
	default:
	}
	close(e.closing)
	e.mu.Unlock()
	e.watches.Wait()
	return e.lock.Close()
}

// ByReference returns false: a process gets the values of its token and secrets, through its standard input.
func (e *Executor) ByReference() bool { return false }

// OnWaiting never calls f: a process begins as soon as it is started.
func (*Executor) OnWaiting(context.Context, func(executor.Ref)) {}

// OnExit calls f for every run that ends, until the context ends.
func (e *Executor) OnExit(ctx context.Context, f func(executor.Ref)) {
	e.exits.Add(ctx, f)
}

// State returns what is known about an attempt.
func (e *Executor) State(_ context.Context, ref executor.Ref) (executor.State, error) {
	if err := checkRef(ref); err != nil {
		return executor.State{}, err
	}
	e.mu.Lock()
	r := e.live[keyOf(ref)]
	unsaved, over := e.unsaved[keyOf(ref)]
	e.mu.Unlock()
	if r != nil {
		return r.state(), nil
	}
	if over {
		return unsaved.state(), nil
	}
	rec, err := readRecord(e.dir(ref))
	if err != nil {
		return executor.State{}, err
	}
	return rec.state(), nil
}

// Stop asks a run to end, and has it killed after the grace period.
func (e *Executor) Stop(ctx context.Context, ref executor.Ref) error {
	e.mu.Lock()
	r := e.live[keyOf(ref)]
	e.mu.Unlock()
	if r == nil {
		_, err := e.State(ctx, ref)
		return err
	}
	r.requestStop()
	return nil
}

// Park stops the clock of a run's timeout, or lets it go on.
func (e *Executor) Park(ctx context.Context, ref executor.Ref, parked bool) error {
	e.mu.Lock()
	r := e.live[keyOf(ref)]
	e.mu.Unlock()
	if r == nil {
		_, err := e.State(ctx, ref)
		return err
	}
	return r.requestPark(ctx, parked)
}

// Remove deletes the folders of all attempts of a task.
func (e *Executor) Remove(_ context.Context, uid types.UID) error {
	if !validUID.MatchString(string(uid)) {
		return fmt.Errorf("invalid task UID %q", uid)
	}
	e.mu.Lock()
	for k := range e.live {
		if k.uid == uid {
			e.mu.Unlock()
			return executor.ErrRunning
		}
	}
	maps.DeleteFunc(e.unsaved, func(k key, _ record) bool { return k.uid == uid })
	e.mu.Unlock()
	return removeAll(filepath.Join(e.opts.Dir, string(uid)))
}

// removeAll also removes folders that a worker made read-only.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove run folder: %w", err)
	}
	return nil
}

// List returns all attempts that have a record.
func (e *Executor) List(context.Context) ([]executor.Ref, error) {
	var refs []executor.Ref
	err := eachRecord(e.opts.Dir, func(_ string, rec *record) error {
		refs = append(refs, rec.ref())
		return nil
	})
	return refs, err
}

// eachRecord calls f for every folder of a run with a readable record. A folder without one remains from
// a start that failed; Remove or a new Start deletes it.
func eachRecord(runs string, f func(dir string, rec *record) error) error {
	paths, err := filepath.Glob(filepath.Join(runs, "*", "*", recordName))
	if err != nil {
		return err
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		rec, err := readRecord(dir)
		if err != nil {
			if errors.Is(err, executor.ErrNotFound) {
				continue
			}
			return err
		}
		if err := f(dir, rec); err != nil {
			return err
		}
	}
	return nil
}

// validUID makes sure that a UID names a single folder.
var validUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

func checkRef(ref executor.Ref) error {
	if !validUID.MatchString(string(ref.UID)) || ref.Attempt < 1 {
		return fmt.Errorf("invalid run %s of task UID %q", ref, ref.UID)
	}
	return nil
}

func (e *Executor) dir(ref executor.Ref) string {
	return filepath.Join(e.opts.Dir, string(ref.UID), strconv.Itoa(int(ref.Attempt)))
}
