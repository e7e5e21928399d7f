// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/worker/tool"
)

// Name is the name of the tool.
const Name = "code_exec"

const (
	defaultTimeout = 30
	maxTimeout     = 60
	// maxOutput is the cap of each stream (D2 §4.10).
	maxOutput = 64 << 10
)

// Arguments are the arguments of code_exec (D2 §4.10).
type Arguments struct {
	Language string `json:"language" desc:"Language of the code" enum:"python,javascript,bash,python3,node,sh"`
	Code     string `json:"code" desc:"Program to run; it has no standard input" minLength:"1"`
	Timeout  *int   `json:"timeout,omitempty" desc:"Seconds the program may take, at most 60" minimum:"1" default:"30"`
}

// Result is the result of code_exec. A program that fails is a result, too.
type Result struct {
	Output          string `json:"output"`
	Error           string `json:"error"`
	ExitCode        int    `json:"exit_code"`
	TimedOut        bool   `json:"timed_out"`
	OutputTruncated bool   `json:"output_truncated"`
	ErrorTruncated  bool   `json:"error_truncated"`
}

// Options configure code_exec.
type Options struct {
	// WorkDir is where programs run.
	WorkDir string
	// TempDir holds the program text while it runs; it is also the program's TMPDIR.
	TempDir string
	// Path is the program's PATH. Default: the usual system folders. What Policy does not reach is left out.
	Path string
	// Env is added to the program's environment. It must hold no secret.
	Env []string
	// Policy is what programs may reach.
	Policy sandbox.Policy
	// Sole is as in Command.
	Sole bool
	// Limits of each process. Zero fields get the defaults: 60 s, 4 GiB, 1,024.
	Limits Limits
	Clock  clock.WithDelayedExecution
}

// New returns the tool code_exec.
func New(o Options) tool.Tool {
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
	if o.Path == "" {
		o.Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	o.Path = o.Policy.SearchPath(o.Path)
	description := "Run a short program in the working folder and return what it prints."
	if !o.Policy.Off && !o.Policy.Network {
		description += " It has no network."
	}
	return tool.New(Name, description, o.call)
}

// interpreter is how a language is run.
type interpreter struct {
	programs []string
	file     string
	shell    bool
}

func interpreterOf(language string) interpreter {
	switch language {
	case "python", "python3":
		return interpreter{programs: []string{"python3", "python"}, file: "main.py"}
	case "javascript", "node":
		// .cjs: require works, whatever package.json lies around.
		return interpreter{programs: []string{"node"}, file: "main.cjs"}
	case "sh":
		return interpreter{programs: []string{"sh"}, file: "main.sh", shell: true}
	default:
		return interpreter{programs: []string{"bash"}, file: "main.sh", shell: true}
	}
}

func (o Options) call(ctx context.Context, a Arguments) (any, error) {
	in := interpreterOf(a.Language)
	if reason := destructive(a.Code, in.shell); reason != "" {
		return nil, tool.Errorf(tool.TypePermissionDenied, "the program was not run: %s", reason).
			Suggest("work on files in the working folder only")
	}
	program := lookup(o.Policy, o.Path, in.programs...)
	if program == "" {
		return nil, tool.Errorf(tool.TypeUnavailable, "%s is not installed where the worker runs", in.programs[0]).
			Suggest("use another language")
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
	seconds := defaultTimeout
	if a.Timeout != nil {
		seconds = min(*a.Timeout, maxTimeout)
	}
	return o.run(ctx, []string{program, file}, time.Duration(seconds)*time.Second)
}

func (o Options) run(ctx context.Context, args []string, timeout time.Duration) (*Result, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var stdout, stderr capped
	outcome, err := Run(limited, Command{
		Args: args, Dir: o.WorkDir, Env: o.environment(), Stdout: &stdout, Stderr: &stderr, Policy: o.Policy, Limits: o.Limits, Sole: o.Sole, Clock: o.Clock,
	})
	if ctx.Err() != nil {
		// Half a program's output is not a result.
		return nil, ctx.Err()
	}
	if errors.Is(err, ErrSandbox) {
		return nil, tool.Errorf(tool.TypeUnavailable, "%s", err)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return &Result{
		Output: stdout.text(), OutputTruncated: stdout.truncated,
		Error: stderr.text(), ErrorTruncated: stderr.truncated,
		ExitCode: outcome.ExitCode, TimedOut: limited.Err() != nil,
	}, nil
}

// environment holds nothing of the worker's own: that has addresses and may have tokens.
func (o Options) environment() []string {
	return append([]string{
		"PATH=" + o.Path, "HOME=" + o.WorkDir, "TMPDIR=" + o.TempDir, "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
	}, o.Env...)
}

// lookup finds the first program in the folders of a PATH that can be executed under the policy; empty if there is none.
func lookup(p sandbox.Policy, list string, programs ...string) string {
	reaches := p.Reaches()
	for _, name := range programs {
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && reaches(path) { //nolint:gosec // reaches decides
				return path
			}
		}
	}
	return ""
}

// capped keeps the first maxOutput bytes.
type capped struct {
	b         []byte
	truncated bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := maxOutput - len(c.b)
	if len(p) > room {
		c.truncated = true
	}
	c.b = append(c.b, p[:min(len(p), room)]...)
	return len(p), nil
}

func (c *capped) text() string { return strings.ToValidUTF8(string(c.b), "\uFFFD") }
