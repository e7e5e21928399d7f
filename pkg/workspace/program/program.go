// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program starts the program platform-workspace.
package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/workspace"
)

// MaxAnswer bounds what the program says, in bytes.
const MaxAnswer = 64 << 10

// Run has a step carried out by a process of its own, which gets the order, with the credential in it, on its standard input, and ends
// with this process. temp is its folder for temporary files. A failure that the program reports is a *workspace.FailedError.
func Run(ctx context.Context, path, temp, step string, order any) (*workspace.Answer, error) {
	input, err := json.Marshal(order)
	if err != nil {
		return nil, fmt.Errorf("the order for %s: %w", workspace.ProgramName, err)
	}
	cmd := exec.CommandContext(ctx, path, step)
	cmd.Dir, cmd.Env = temp, []string{"TMPDIR=" + temp}
	out, said := &clip.Writer{Limit: MaxAnswer}, &clip.Writer{Limit: MaxAnswer}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it may not outlive this process with its credential
	runtime.LockOSThread()                                             // whose end would be taken for that of the process
	err = cmd.Run()
	runtime.UnlockOSThread()
	var answer workspace.Answer
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil || json.Unmarshal(out.Bytes(), &answer) != nil || answer == (workspace.Answer{}):
		return nil, fmt.Errorf("%s gave no answer: %w: %s", workspace.ProgramName, cmp.Or(err, errors.New("it ended normally")), clip.Text(said.Text(), 1000))
	case answer.Failure != nil:
		return nil, answer.Failure
	}
	return &answer, nil
}
