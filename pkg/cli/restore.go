// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
)

// errSaid ends a command whose child process has already printed the reason.
var errSaid = &outcome{code: codeError}

// servers are the programs that have a store and can restore it.
var servers = []string{"platform-standalone", "platform-apiserver"}

const restoreHelp = `Make the store of a server from a backup.

It runs the command restore of platform-standalone or, in a cluster, of platform-apiserver, which know the store. The
program must be next to this one, or in PATH. See 'platform-standalone restore --help'.`

// restoreCommand passes its arguments to the restore command of a server program.
func restoreCommand(term *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "restore FILE --data-dir DIR", Short: "Make the store of a server from a backup", Long: restoreHelp, Args: cobra.ExactArgs(1),
		Example: "  platform restore today.tar --data-dir /var/lib/platform\n  gunzip < today.tar.gz | platform restore - --data-dir /var/lib/platform",
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "data folder of the server")
	_ = cmd.MarkFlagRequired("data-dir") // the flag exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return restoreBackup(cmd.Context(), term, args[0], dir) }
	return cmd
}

func restoreBackup(ctx context.Context, term *terminal, file, dir string) error {
	server, err := findServer()
	if err != nil {
		return err
	}
	args := []string{"restore", "--data-dir=" + dir, "--", file}
	if term.Become != nil {
		// The server's program replaces this process, so it receives the signals that are sent to this process.
		return term.Become(server, append([]string{server}, args...), os.Environ())
	}
	cmd := exec.CommandContext(ctx, server, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.In, term.Out, term.Err
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return errSaid
	}
	return err
}

// findServer looks for a server's program in the directory of this program, and then in PATH.
func findServer() (string, error) {
	if self, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(self); err == nil {
			self = target
		}
		for _, name := range servers {
			if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
				return path, nil
			}
		}
	}
	for _, name := range servers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("restore needs the program of a server, platform-standalone or platform-apiserver, beside this program or in PATH: " +
		"where the server is, run 'platform-standalone restore FILE --data-dir DIR', in a cluster 'platform-apiserver restore FILE --data-dir DIR'")
}
