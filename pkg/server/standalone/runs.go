// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/controller/executor/process"
)

// runsFolder holds the runs, in the data folder.
const runsFolder = "runs"

// publicationsFolder holds what publications need meanwhile, in the data folder.
const publicationsFolder = "publications"

// goOn says that runs go on without the server, and how to end them.
func goOn(out io.Writer, n int, dir string) error {
	if n == 0 || out == nil {
		return nil
	}
	runs, them := "1 run goes", "it"
	if n > 1 {
		runs, them = fmt.Sprintf("%d runs go", n), "them"
	}
	_, err := fmt.Fprintf(out, "%s on without the server, which finds %s again at its next start. If it is not to start again, end %s with\n  platform-standalone runs end --data-dir %s\n", runs, them, them, dir)
	return err
}

// NewRunsCommand returns the command that ends the runs of a server that is not started again.
func NewRunsCommand() *cobra.Command {
	var dir string
	end := &cobra.Command{
		Use: "end --data-dir DIR", Short: "End the runs that go on although their server has stopped", Args: cobra.NoArgs,
		Long: "End the runs that go on although their server has stopped. Each has ten seconds to end by itself. A server that is started\nlater finds that they were stopped.",
	}
	end.Flags().StringVar(&dir, "data-dir", "", "data folder of the server")
	_ = end.MarkFlagRequired("data-dir") // the flag exists
	end.RunE = func(cmd *cobra.Command, _ []string) error {
		runs := filepath.Join(dir, runsFolder)
		if _, err := os.Stat(runs); err != nil {
			return fmt.Errorf("no server has used this folder: %w", err)
		}
		n, err := process.End(cmd.Context(), runs, clock.RealClock{})
		if errors.Is(err, process.ErrLocked) {
			return errors.New("a server uses this folder; stop it, or cancel the tasks")
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "runs that were ended: %d\n", n)
		return err
	}
	cmd := &cobra.Command{Use: "runs", Short: "What runs without the server"}
	cmd.AddCommand(end)
	return cmd
}
