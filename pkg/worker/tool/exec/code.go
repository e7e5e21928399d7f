// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package exec provides the tool code_exec.
package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/program"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// Builtin is the tool code_exec. A run cannot have it if there is no sandbox for its programs
// or no interpreter.
var Builtin = toolkit.Tool{Of: builtin.CodeExec, New: func(g toolkit.Given) (tool.Tool, error) {
	if err := g.Policy.Check(); err != nil {
		return nil, &tool.RefusedError{Reason: v1alpha1.ReasonSandboxUnavailable, Err: err}
	}
	t, err := New(Options{
		WorkDir: g.WorkDir, HomeDir: g.HomeDir, TempDir: g.TempDir, Path: g.Path, Env: g.Env, Limits: g.Limits, Sole: true, Clock: clock.RealClock{}, Policy: g.Policy,
	})
	if err != nil {
		return nil, &tool.RefusedError{Reason: v1alpha1.ReasonToolUnavailable, Err: err}
	}
	return t, nil
}}

const (
	defaultTimeout = 30
	maxTimeout     = 60
	// maxOutput is the limit of each output stream, in bytes.
	maxOutput = 64 << 10
)

// Result is the result of code_exec. A failed program also gives a result.
type Result struct {
	Output          string `json:"output"`
	Error           string `json:"error"`
	ExitCode        int    `json:"exit_code"`
	TimedOut        bool   `json:"timed_out"`
	OutputTruncated bool   `json:"output_truncated"`
	ErrorTruncated  bool   `json:"error_truncated"`
	// Memory says how the program lacked memory, if it failed and that is known.
	Memory string `json:"memory,omitempty"`
}

// Failed says how the program failed; empty if it succeeded.
func (r *Result) Failed() string {
	switch {
	case r.TimedOut:
		return "the program ran out of time"
	case r.Memory != "":
		return r.Memory
	case r.ExitCode != 0:
		return fmt.Sprintf("the program ended with exit code %d", r.ExitCode)
	}
	return ""
}

// Options configure code_exec.
type Options struct {
	// WorkDir is where programs run, and HomeDir their home folder; empty for WorkDir.
	WorkDir, HomeDir string
	// TempDir holds the program text while it runs; it is also the program's TMPDIR.
	TempDir string
	// Path is the program's PATH. Default: the usual system folders. Folders that Policy does not allow are left out.
	Path string
	// Env is added to the program's environment. It must hold no secret.
	Env []string
	// Policy is what programs may reach.
	Policy sandbox.Policy
	// Sole is the same as in program.Command.
	Sole bool
	// Limits of a program. Zero fields get the defaults: 60 s, 4 GiB, 1,024.
	Limits sandbox.Limits
	Clock  clock.WithDelayedExecution
}

// New returns the tool code_exec. It offers the languages whose interpreter is installed and
// allowed by the policy. If there is none, it returns an error.
func New(o Options) (tool.Tool, error) {
	d := defaultLimits()
	if o.Limits.CPU == 0 {
		o.Limits.CPU = d.CPU
	}
	if o.Limits.MemoryBytes == 0 {
		o.Limits.MemoryBytes = d.MemoryBytes
	}
	if o.Limits.Processes == 0 {
		o.Limits.Processes = d.Processes
	}
	if o.Limits.FileBytes == 0 {
		o.Limits.FileBytes = d.FileBytes
	}
	if o.Path == "" {
		o.Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	o.Path = o.Policy.SearchPath(o.Path)
	names := o.offered()
	if len(names) == 0 {
		return nil, fmt.Errorf("no interpreter is installed where programs of the run may look for one; it needs one of %s", strings.Join(Interpreters(), ", "))
	}
	return o.tool(names), nil
}

// tool returns the tool with these languages.
func (o Options) tool(names []string) tool.Tool {
	d := builtin.ForLanguages(names)
	switch {
	case o.Policy.Off || o.Policy.Network:
	case o.Policy.ProxyPort != 0:
		d.Description += " It reaches the public internet through the HTTP proxy that its environment names."
	default:
		d.Description += builtin.NoNetwork
	}
	return tool.New(d, o.call)
}

// language describes how programs of a language are run.
type language struct {
	name string
	// programs are the interpreters, the best first.
	programs []string
	file     string
	// inline is the interpreter's option for a program that is an argument.
	inline string
	shell  bool
}

// languages returns those that models may ask for. Some have two names, because models use
// either.
func languages() []language {
	python, node := []string{"python3", "python"}, []string{"node"}
	return []language{
		{name: "python", programs: python, file: "main.py", inline: "-c"},
		// With .cjs, require works regardless of any package.json.
		{name: "javascript", programs: node, file: "main.cjs", inline: "-e"},
		{name: "bash", programs: []string{"bash"}, file: "main.sh", inline: "-c", shell: true},
		{name: "python3", programs: python, file: "main.py", inline: "-c"},
		{name: "node", programs: node, file: "main.cjs", inline: "-e"},
		{name: "sh", programs: []string{"sh"}, file: "main.sh", inline: "-c", shell: true},
	}
}

// Interpreters returns the programs of which the tool needs at least one.
func Interpreters() []string {
	var all []string
	for _, l := range languages() {
		for _, p := range l.programs {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// offered returns the names of the languages whose interpreter is available.
func (o Options) offered() []string {
	var names []string
	for _, l := range languages() {
		if program.Lookup(o.Policy, o.Path, l.programs...) != "" {
			names = append(names, l.name)
		}
	}
	return names
}

func (o Options) call(ctx context.Context, a builtin.CodeArguments) (any, error) {
	i := slices.IndexFunc(languages(), func(l language) bool { return l.name == a.Language })
	interpreter := ""
	if i >= 0 {
		interpreter = program.Lookup(o.Policy, o.Path, languages()[i].programs...)
	}
	if interpreter == "" { // it is not in the schema, or was removed meanwhile
		return nil, tool.Errorf(tool.TypeUnavailable, "there is no interpreter for %s", a.Language).
			Suggest("use one of: %s", strings.Join(o.offered(), ", "))
	}
	in := languages()[i]
	if reason := destructive(a.Code, in.shell); reason != "" {
		return nil, refusedProgram(reason)
	}
	dir, err := os.MkdirTemp(o.TempDir, "code-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, in.file)
	if err := os.WriteFile(file, []byte(a.Code), 0o600); err != nil {
		return nil, err
	}
	return o.run(ctx, []string{interpreter, file}, time.Duration(Seconds(a))*time.Second)
}

func (o Options) run(ctx context.Context, args []string, timeout time.Duration) (*Result, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer o.Clock.AfterFunc(timeout, cancel).Stop()
	stdout, stderr := clip.Writer{Limit: maxOutput}, clip.Writer{Limit: maxOutput}
	outcome, err := program.Run(limited, program.Command{
		Args: args, Dir: o.WorkDir, Env: o.environment(), Stdout: &stdout, Stderr: &stderr, Policy: o.Policy, Limits: o.Limits, Sole: o.Sole, Clock: o.Clock,
	})
	if ctx.Err() != nil {
		// The output of a program that was interrupted is not a result.
		return nil, ctx.Err()
	}
	if errors.Is(err, program.ErrSandbox) {
		return nil, tool.Errorf(tool.TypeUnavailable, "%s", err)
	}
	if errors.Is(err, program.ErrCrowded) {
		return nil, tool.Errorf(tool.TypeLimitReached, "the program was ended: %s", err).Suggest("start fewer processes at a time")
	}
	if errors.Is(err, program.ErrMemory) || errors.Is(err, program.ErrDeleted) {
		return nil, tool.Errorf(tool.TypeLimitReached, "the program was ended: %s", err).Suggest("keep less in memory and in open files at a time")
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Result{
		Output: stdout.Text(), OutputTruncated: stdout.Truncated,
		Error: stderr.Text(), ErrorTruncated: stderr.Truncated,
		ExitCode: outcome.ExitCode, TimedOut: limited.Err() != nil, Memory: o.lacked(outcome, stderr.Text()),
	}, nil
}

// environment returns the program's environment. It contains nothing of the worker's environment, which has
// addresses and may have tokens.
func (o Options) environment() []string {
	return append([]string{
		"PATH=" + o.Path, "HOME=" + cmp.Or(o.HomeDir, o.WorkDir), "TMPDIR=" + o.TempDir, "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
	}, o.Env...)
}

// defaultLimits are those of code_exec: 60 s of processor time, 4 GiB, 1,024 processes, 4 GiB a file.
func defaultLimits() sandbox.Limits {
	return sandbox.Limits{CPU: 60 * time.Second, MemoryBytes: 4 << 30, Processes: 1024, FileBytes: 4 << 30}
}
