// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codingagent runs tasks of type agent: it starts the program of a coding agent, drives it with the Agent Client Protocol, and
// records what it does.
//
// The agent is a program of the run like any other. It is in the sandbox, with the control group, the working folder and the policy of
// the run; its home folder is its own, so that it finds no configuration of anybody, and its environment has no secret but those that
// the task names in spec.env. One process serves one session, because agents let a permission of one session block the others.
//
// What an agent may do is decided in two places. The sandbox holds whatever the agent does. Permission requests hold what the agent
// asks for: see package conversation, which also records what the agent says.
//
// An agent that works in silence is not given up: healthy agents are silent for minutes. The task's timeout ends it.
package codingagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/version"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/conversation"
	"github.com/platform-ai/platform/pkg/worker/ownplan"
	"github.com/platform-ai/platform/pkg/worker/program"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runtools"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/worker/tool/file"
)

const (
	// startPatience is how long an agent may take until its session has begun.
	startPatience = 2 * time.Minute
	// cancelGrace is how long it may take to end a cancelled turn, endGrace to end after its session, and killGrace to end after
	// SIGTERM. Together they are shorter than what an executor gives a worker that is asked to stop.
	cancelGrace = time.Second
	endGrace    = time.Second
	killGrace   = time.Second
	// maxErrors is how much of an agent's standard error is kept, in bytes.
	maxErrors = 64 << 10
	// maxProcesses is how many processes and threads an agent may have with what it starts, unless the operator says otherwise.
	maxProcesses = 4096
)

// Runner runs the coding agent of a task of type agent.
var Runner runner.Runner = runner.Func(work)

func work(ctx context.Context, given *runner.Run) (runner.Result, error) {
	r := &run{Run: given}
	p, err := ownplan.Of(ctx, given)
	if err != nil {
		return runner.Result{}, err
	}
	if ctx.Err() != nil {
		return runner.Result{}, conversation.Stopped(ctx)
	}
	r.plan = p
	if r.question, err = conversation.Question(ctx, given, p); err != nil {
		return runner.Result{}, err
	}
	kind := p.Agent.Spec.Runtime.Type
	found, path, err := r.Agents.Find(kind)
	if err != nil {
		return runner.Result{}, runner.Fail(v1alpha1.ReasonRuntimeNotAvailable, "%w", err)
	}
	if err := configured(r.WorkDir); err != nil {
		return runner.Result{}, err
	}
	network, closeNetwork, err := r.OpenNetwork(ctx, plan.PublicNetwork(p.Agent))
	if err != nil {
		return runner.Result{}, err
	}
	defer closeNetwork()
	roots, err := file.NewRoots(r.WorkDir)
	if err != nil {
		return runner.Result{}, runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "%w", err)
	}
	tools, err := runtools.Of(ctx, given, p, runtools.Options{})
	if err != nil {
		return runner.Result{}, err
	}
	talk := conversation.New(given, p, roots)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := r.openDoor(ctx, talk.Serve(p, tools), end); err != nil {
		return runner.Result{}, err
	}
	defer r.door.Close()
	r.program = found
	closeService, err := r.serve()
	if err != nil {
		return runner.Result{}, err
	}
	defer closeService()
	r.Policy.Read = append(slices.Clip(r.Policy.Read), path)
	if r.Policy, err = r.Policy.Resolved(); err != nil {
		return runner.Result{}, runner.Fail(v1alpha1.ReasonSandboxUnavailable, "%w", err)
	}
	env, err := r.env(found, append(network, r.door.without()...))
	if err != nil {
		return runner.Result{}, err
	}
	return r.converse(ctx, append([]string{path}, r.args()...), env, talk)
}

// run is one run of a task of type agent.
type run struct {
	*runner.Run
	plan *plan.Plan
	door models
	// program is the coding agent, and question what it is asked.
	program  agentprogram.Program
	question []string
}

// serve lets an agent that talks to itself over a port have one. The caller must call the returned function.
func (r *run) serve() (closeService func(), err error) {
	if r.program.Port == "" || r.Policy.Off || r.Policy.Network {
		return func() {}, nil
	}
	s, err := sandbox.NewService()
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonSandboxUnavailable, "%w", err)
	}
	r.Policy.Service = s
	return s.Close, nil
}

// args returns the arguments of the agent.
func (r *run) args() []string {
	if s := r.Policy.Service; s != nil {
		return append(slices.Clip(r.program.Args), r.program.Port, strconv.Itoa(int(s.Port())))
	}
	return r.program.Args
}

// env makes the agent's home folder and returns the environment of its process.
func (r *run) env(p agentprogram.Program, network []string) ([]string, error) {
	home := filepath.Join(r.TempDir, "agent")
	fail := func(err error) error {
		return runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "the home folder of the coding agent: %w", err)
	}
	if err := os.RemoveAll(home); err != nil { // of an earlier attempt
		return nil, fail(err)
	}
	env := []string{"HOME=" + home, "TMPDIR=" + r.TempDir, "PATH=" + r.Policy.SearchPath(r.Getenv("PATH"))}
	for name, dir := range map[string]string{"CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state", "CACHE": ".cache"} {
		dir = filepath.Join(home, dir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fail(err)
		}
		env = append(env, "XDG_"+name+"_HOME="+dir)
	}
	told, files := p.Setup(r.models())
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return nil, fail(err)
		}
	}
	env = append(env, told...)
	for _, name := range []string{"LANG", "LC_ALL", "TZ"} {
		if v := r.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	own, err := r.Variables()
	if err != nil {
		return nil, err
	}
	return append(slices.Concat(env, p.Env, own, r.Env(), network), "PWD="+r.WorkDir), nil
}

// process is the running agent.
type process struct {
	stdin *os.File
	// kill ends it, and done is closed when it has ended with all that it started. outcome and err are then set.
	kill    context.CancelFunc
	done    chan struct{}
	outcome program.Outcome
	err     error
	errors  *clip.Writer
}

// start starts the agent. What it writes can be read from the returned reader. The caller must call end.
func (r *run) start(ctx context.Context, args, env []string) (*process, io.Reader, error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, nil, runner.Fail(v1alpha1.ReasonInternalError, "the input of the coding agent: %w", err)
	}
	out, stdout := io.Pipe()
	ctx, kill := context.WithCancel(context.WithoutCancel(ctx)) // the turn is cancelled before the process
	p := &process{stdin: stdin, kill: kill, done: make(chan struct{}), errors: &clip.Writer{Limit: maxErrors}}
	go func() {
		defer close(p.done)
		p.outcome, p.err = program.Run(ctx, program.Command{
			Args: args, Dir: r.WorkDir, Env: env, Stdin: in, Stdout: stdout, Said: func() { _ = stdout.Close() }, Stderr: p.errors, Sole: true, Grace: killGrace, Clock: clock.RealClock{},
			Policy: r.Policy, Limits: sandbox.Limits{Processes: cmp.Or(r.CodeLimits.Processes, maxProcesses), DeletedBytes: r.CodeLimits.DeletedBytes},
		})
		_ = stdout.Close()
	}()
	return p, out, nil
}

// end waits for an agent whose input is closed, and ends it if it does not end by itself. at once says not to wait.
func (p *process) end(c clock.Clock, atOnce bool) {
	_ = p.stdin.Close()
	if !atOnce {
		timer := c.NewTimer(endGrace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C():
		}
	}
	p.kill()
	<-p.done
}

// converse runs the agent for one prompt.
func (r *run) converse(ctx context.Context, args, env []string, t *conversation.Talk) (runner.Result, error) {
	t.Prepare(ctx, r.plan) // the agent may call tools as soon as it runs
	p, out, err := r.start(ctx, args, env)
	if err != nil {
		t.Finish(true)
		return runner.Result{}, err
	}
	began := r.Clock.Now()
	client := acp.Connect(ctx, out, p.stdin, acp.Options{Name: "platform", Version: version.Version(), Handler: t, Clock: clock.RealClock{}, Grace: cancelGrace})
	stop, err := r.turn(ctx, client, filepath.Base(args[0]), t)
	p.end(clock.RealClock{}, ctx.Err() != nil)
	<-client.Done() // what came late was recorded
	t.Finish(ctx.Err() != nil)
	if text := p.errors.Text(); strings.TrimSpace(text) != "" {
		r.Log.Line("the coding agent wrote to its standard error:\n%s", text)
	}
	if p.errors.Truncated {
		r.Log.Line("it wrote more, which is left out")
	}
	err = r.failure(ctx, p, stop, err, t)
	t.RecordEnd(stop, err, r.Clock.Since(began))
	return t.Result(stop), err
}

// turn begins a session, has the prompt answered, and ends the session.
func (r *run) turn(ctx context.Context, client *acp.Client, name string, t *conversation.Talk) (acp.StopReason, error) {
	starting, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	agent, err := client.Initialize(starting)
	if err != nil {
		return "", fmt.Errorf("initialize: %w", err)
	}
	if how := r.program.SignIn; how != "" && r.door.name != "" {
		if err := client.SignIn(starting, how); err != nil {
			return "", fmt.Errorf("authenticate: %w", err)
		}
	}
	session, err := client.NewSession(starting, r.WorkDir, r.door.servers...)
	if err != nil {
		return "", fmt.Errorf("new session: %w", err)
	}
	if mode := r.program.Mode; slices.Contains(session.Modes, mode) {
		if err := session.SetMode(starting, mode); err != nil {
			return "", fmt.Errorf("the mode %s: %w", mode, err)
		}
	}
	if len(r.door.servers) > 0 && !agent.UsesServers() {
		r.Log.Line("the coding agent uses no MCP servers over HTTP, so it does not get the platform's tools")
	}
	kind := r.plan.Agent.Spec.Runtime.Type
	t.Record(event.New(v1alpha1.EventAgentRuntimeStarted, v1alpha1.SeverityInfo, "", fmt.Sprintf("coding agent %s", kind), map[string]any{
		"runtime": kind, "program": name, "sandbox": r.Policy.String(), "protocol": "acp/1", "agent": agent.Name, "agentVersion": agent.Version, "model": r.door.name,
	}))
	texts := r.question
	if system := r.plan.System(); strings.TrimSpace(system) != "" {
		texts = append([]string{system}, texts...)
	}
	t.RecordPrompt(texts)
	stop, err := session.Prompt(ctx, texts...)
	if err == nil && ctx.Err() == nil {
		ending, cancel := context.WithTimeout(ctx, endGrace)
		defer cancel()
		if err := session.End(ending); err != nil {
			t.Odd("the session could not be closed: " + err.Error())
		}
	}
	return stop, err
}

// failure returns why the run failed; nil if it did not.
func (r *run) failure(ctx context.Context, p *process, stop acp.StopReason, err error, t *conversation.Talk) error {
	switch {
	case ctx.Err() != nil:
		return conversation.Stopped(ctx)
	case errors.Is(p.err, program.ErrSandbox):
		return runner.Fail(v1alpha1.ReasonSandboxUnavailable, "%w", p.err)
	case errors.Is(p.err, program.ErrMemory):
		return runner.Fail(v1alpha1.ReasonOOMKilled, "the coding agent was ended: %w", p.err)
	case errors.Is(p.err, program.ErrDeleted):
		return runner.Fail(v1alpha1.ReasonDiskLimitExceeded, "the coding agent was ended: %w", p.err)
	case p.err != nil:
		return runner.Fail(v1alpha1.ReasonAgentFailed, "the coding agent could not be run or controlled: %w", p.err)
	case err != nil && p.outcome.OutOfMemory:
		return runner.Fail(v1alpha1.ReasonOOMKilled, "the kernel ended the coding agent because there was no memory left for it on this machine")
	case err != nil:
		return runner.Fail(v1alpha1.ReasonAgentFailed, "%s (exit code %d)", clip.Marked(err.Error(), 1000), p.outcome.ExitCode)
	}
	return t.Failure(stop)
}
