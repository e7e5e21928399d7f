// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/runspec"
)

// Start starts the run once. See executor.Executor.
func (e *Executor) Start(_ context.Context, spec executor.Run) (executor.State, error) {
	if err := checkRef(spec.Ref); err != nil {
		return executor.State{}, err
	}
	if spec.ID == "" {
		return executor.State{}, fmt.Errorf("run %s lacks an id", spec.Ref)
	}
	r := newRun(e, spec)
	if other, err := e.reserve(r); err != nil {
		return executor.State{}, err
	} else if other != nil {
		return sameRun(*other, spec)
	}
	rec, err := readRecord(r.dir)
	if err == nil {
		e.release(r)
		return sameRun(rec.state(), spec)
	}
	if errors.Is(err, executor.ErrNotFound) {
		err = r.launch(spec)
	}
	if err != nil {
		e.release(r)
		return executor.State{}, fmt.Errorf("start %s: %w", spec.Ref, err)
	}
	e.watches.Go(r.watch)
	return r.state(), nil
}

func sameRun(s executor.State, spec executor.Run) (executor.State, error) {
	if s.ID != spec.ID {
		return executor.State{}, fmt.Errorf("%s: %w", spec.Ref, executor.ErrConflict)
	}
	return s, nil
}

// reserve adds the run to the living ones, or returns the state of the one that exists already.
func (e *Executor) reserve(r *run) (*executor.State, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.closing:
		return nil, errClosed
	default:
	}
	if other := e.live[keyOf(r.ref)]; other != nil {
		s := other.state()
		return &s, nil
	}
	e.live[keyOf(r.ref)] = r
	return nil, nil //nolint:nilnil // nothing there, and no error: the place is taken by r
}

// release undoes a reservation that did not become a living run.
func (e *Executor) release(r *run) {
	close(r.over)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.live, keyOf(r.ref))
}

func newRun(e *Executor, spec executor.Run) *run {
	return &run{
		e: e, ref: spec.Ref, dir: e.dir(spec.Ref), stop: make(chan struct{}), parks: make(chan parkRequest), over: make(chan struct{}),
		rec: record{
			ID: spec.ID, Namespace: spec.Namespace, Name: spec.Name, UID: spec.UID, Attempt: spec.Attempt,
			State: stateStarting, BootID: e.bootID, StartedAt: e.opts.Clock.Now(), Timeout: spec.Timeout, Groups: e.opts.Sandbox.Groups,
		},
	}
}

// launch creates the folder and the process. After an error neither is left.
func (r *run) launch(spec executor.Run) (err error) {
	given := spec.Credentials
	if isCommand(spec) { // the worker of another task reads much more than the task
		if given.Task, err = json.Marshal(spec.Task); err != nil {
			return fmt.Errorf("credentials: task: %w", err)
		}
	}
	credentials, err := json.Marshal(given)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if err := removeAll(r.dir); err != nil { // remains of a start that died before it wrote a record
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeAll(r.dir))
		}
	}()
	for _, name := range []string{workName, artifactsName, tmpName} {
		if err := os.MkdirAll(filepath.Join(r.dir, name), 0o700); err != nil {
			return fmt.Errorf("run folder: %w", err)
		}
	}
	stdin, err := r.employ(spec)
	if err != nil {
		return err
	}
	if err := r.confirm(spec); err != nil {
		// No credentials were given, so the worker has done nothing yet.
		_ = stdin.Close()
		return errors.Join(err, r.discard())
	}
	giveCredentials(stdin, append(credentials, '\n'))
	return nil
}

// employ gives the run a worker, which waits for its credentials, and returns the writing end of its standard input. That is one
// that stands by, or a new one.
func (r *run) employ(spec executor.Run) (stdin *os.File, err error) {
	for isCommand(spec) {
		s := r.e.standbys.take()
		if s == nil {
			break
		}
		r.child, r.pidfd, r.rec.PID, r.rec.StartTicks = s.process, s.pidfd, s.process.Pid, s.startTicks
		// The record names the worker, because its environment does not name the run.
		err := r.rec.note(r.dir)
		if err == nil {
			err = s.assign(r.dir, r.variables(spec))
		}
		if err == nil {
			return s.stdin, nil
		}
		s.dismiss()
		r.child, r.pidfd, r.rec.PID, r.rec.StartTicks = nil, 0, 0, 0
		if !errors.Is(err, unix.EPIPE) {
			return nil, err
		} // otherwise it has ended, so another one is needed
	}
	if err := r.rec.note(r.dir); err != nil {
		return nil, err
	}
	return r.spawn(spec)
}

// isCommand reports whether the run is that of a task of type container.
func isCommand(spec executor.Run) bool {
	return spec.Task != nil && spec.Task.Spec.Type == v1alpha1.TaskTypeContainer
}

// spawn starts the worker, which waits for its credentials, and returns the
// writing end of its standard input.
func (r *run) spawn(spec executor.Run) (stdin *os.File, err error) {
	log, err := openLog(r.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	command := r.e.opts.Command
	if isCommand(spec) {
		command = r.e.opts.ContainerCommand
	}
	env := r.e.environ()
	maps.Copy(env, r.variables(spec))
	r.child, r.pidfd, stdin, err = startWorker(command, filepath.Join(r.dir, workName), env, log)
	if err == nil {
		r.rec.PID = r.child.Pid
	}
	return stdin, err
}

// openLog opens the file of a run to which the worker's output is appended.
func openLog(dir string) (*os.File, error) {
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	return log, nil
}

// startWorker starts a worker in a session of its own. It returns the process, its pidfd, and the writing end of its standard
// input.
func startWorker(command []string, dir string, env map[string]string, out *os.File) (p *os.Process, pidfd int, stdin *os.File, err error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, -1, nil, fmt.Errorf("credentials pipe: %w", err)
	}
	defer func() { _ = in.Close() }()
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	pidfd = -1
	p, err = os.StartProcess(command[0], command, &os.ProcAttr{
		Dir: dir, Env: list, Files: []*os.File{in, out, out},
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	})
	if err != nil {
		return nil, -1, nil, errors.Join(err, stdin.Close())
	}
	if pidfd < 0 {
		_ = p.Kill()
		_, _ = p.Wait()
		return nil, -1, nil, errors.Join(errors.New("the kernel lacks pidfd"), stdin.Close())
	}
	return p, pidfd, stdin, nil
}

// confirm sets the limits and records the identity of the worker. The worker is an unreaped
// child of this process, so its pid cannot belong to another process.
func (r *run) confirm(spec executor.Run) error {
	s, err := readStat(r.rec.PID)
	if err != nil {
		return fmt.Errorf("start time of worker: %w", err)
	}
	if err := r.setLimits(spec); err != nil {
		return err
	}
	r.rec.State, r.rec.StartTicks = stateRunning, s.startTicks
	if err := r.rec.write(r.dir); err != nil {
		return err
	}
	return markBegun(r.dir)
}

// discard undoes a start that cannot be confirmed.
func (r *run) discard() error {
	err := r.rec.end(newTree(r.dir, &r.rec, true))
	_, werr := r.child.Wait()
	return errors.Join(err, werr, unix.Close(r.pidfd))
}

func (r *run) setLimits(spec executor.Run) error {
	o := r.e.opts
	memory := uint64(o.MemoryBytes)
	if spec.MemoryBytes > 0 {
		memory = uint64(spec.MemoryBytes)
	}
	for _, l := range []struct {
		what  int
		limit uint64
	}{
		{unix.RLIMIT_CORE, 0}, // a core would put secrets on disk
		{unix.RLIMIT_NOFILE, o.OpenFiles},
		{unix.RLIMIT_FSIZE, o.FileBytes},
		// Not RLIMIT_AS: Go and JavaScript programs reserve far more address space than they use.
		{unix.RLIMIT_DATA, memory},
	} {
		var old unix.Rlimit
		if err := unix.Prlimit(r.rec.PID, l.what, nil, &old); err != nil {
			return fmt.Errorf("limits of worker: %w", err)
		}
		limit := min(l.limit, old.Max) // not every user may raise a hard limit
		if err := unix.Prlimit(r.rec.PID, l.what, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
			return fmt.Errorf("limits of worker: %w", err)
		}
	}
	return nil
}

// pipeBytes is what a pipe takes without a reader.
const pipeBytes = 64 << 10

// giveCredentials writes at once what fits into the pipe, because a crash between the mark
// "begun" and the write loses the run. The rest is written as the worker reads; this ends when
// the worker ends, because the pipe then breaks. A worker that cannot read its credentials
// reports that in its termination.
func giveCredentials(stdin *os.File, credentials []byte) {
	write := func() {
		_, _ = stdin.Write(credentials)
		_ = stdin.Close()
	}
	if len(credentials) <= pipeBytes {
		write()
	} else {
		go write()
	}
}

// inherited returns the only variables of the server's environment that a worker gets, besides the operator's. A worker trusts the
// authorities that the server trusts.
func inherited() []string {
	return []string{"PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}
}

// environ returns the variables that all workers of this server get.
func (e *Executor) environ() map[string]string {
	env := map[string]string{}
	for _, name := range inherited() {
		if v, ok := os.LookupEnv(name); ok {
			env[name] = v
		}
	}
	for _, name := range runspec.OperatorEnv() {
		env[name] = os.Getenv(name) // even if empty, because a task may not set them
	}
	maps.Copy(env, map[string]string{
		runspec.EnvControllerURL:    e.opts.ControllerURL,
		runspec.EnvCAFile:           e.opts.CAFile,
		runspec.EnvCredentials:      runspec.CredentialsStdin,
		runspec.EnvWebFetchAllow:    strings.Join(e.opts.WebFetchAllow, ","),
		runspec.EnvRepositoryAllow:  strings.Join(e.opts.RepositoryAllow, ","),
		runspec.EnvWorkspaceProgram: e.opts.WorkspaceProgram,
		runspec.EnvWorkspaceAnswer:  "", // the worker has its repository prepared
		runspec.EnvAgentPrograms:    strings.Join(e.opts.AgentPrograms.List(), ","),
		runspec.EnvAgentImage:       "",
		runspec.EnvSearchURL:        e.opts.SearchURL,
		runspec.EnvHostCommands:     strconv.FormatBool(e.opts.AllowHostCommands),
		runspec.EnvSandbox:          e.sandbox,
		// Most workers end before they have collected garbage even once. See also worker.Main.
		"GOGC": "400",
	})
	return env
}

// variables returns the variables of the worker of this run.
func (r *run) variables(spec executor.Run) map[string]string {
	work := filepath.Join(r.dir, workName)
	env := map[string]string{
		"HOME": work, "PWD": work, "TMPDIR": filepath.Join(r.dir, tmpName),
		runspec.EnvTaskName:       spec.Name,
		runspec.EnvTaskNamespace:  spec.Namespace,
		runspec.EnvTaskUID:        string(spec.UID),
		runspec.EnvAttempt:        strconv.Itoa(int(spec.Attempt)),
		runspec.EnvWorkDir:        work,
		runspec.EnvArtifactsDir:   filepath.Join(r.dir, artifactsName),
		runspec.EnvTerminationLog: filepath.Join(r.dir, terminationName),
		runspec.EnvSpoolDir:       filepath.Join(r.dir, spoolName),
		runspec.EnvRemote:         executor.RemoteEnv(spec),
		runspec.EnvDeliver:        strconv.FormatBool(r.rec.First != nil),
	}
	if spec.Task != nil {
		maps.Copy(env, executor.TransactionEnv(spec, r.e.opts.Exchange, ""))
	}
	return env
}
