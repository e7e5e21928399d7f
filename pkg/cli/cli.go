// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command platform: an API client for people, which uses the kubeconfig, namespaces and
// permissions of kubectl. It leaves to kubectl what kubectl does well. It adds commands that need a view of a whole
// run: following a run to its end, its trace, decisions and forks.
//
// A command is a function that is given what it needs: the server whose client it makes, the terminal that it reads from
// and writes to, or both. What prints an object takes only the terminal.
package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/version"
	"github.com/platform-ai/platform/pkg/visible"
)

// Streams are the standard streams of the command and what is known about them.
type Streams struct {
	In io.Reader
	// Out and Err are the screen, or files. Most of what is written to them was written by others, so commands write to both
	// through a visible.Writer.
	Out, Err io.Writer
	// Color allows colours on Out.
	Color bool
	// Ask is set if In and Err are a terminal, so that the user can be asked.
	Ask bool
	// Width is the number of columns of Out; 0 if it is not a terminal.
	Width int
	// Height is the number of rows of Out; 0 if it is not a terminal.
	Height int
	// Become replaces this process by a program, as syscall.Exec does, for a command that another program implements.
	// It is nil if the streams are not those of the process; the program is then started as a child.
	Become func(path string, args, env []string) error
}

// terminal is what commands read from and write to, and the clock beside it.
type terminal struct {
	Streams
	screen  *visible.Writer // Out; Err has the same colours
	raw     io.Writer       // Out as it is, for contents of files
	answers *bufio.Reader   // In, once the user was asked
	clock   clock.Clock
}

// Main runs the command and returns its exit code. name is the program's own name, from which it detects that kubectl
// started it.
func Main(ctx context.Context, name string, args []string, s Streams) int {
	cmd, term := newCommand(s, name) //nolint:contextcheck // commands have ctx from ExecuteContext
	cmd.SetArgs(args)
	err := execute(func() error { return cmd.ExecuteContext(ctx) }, cmd)
	if flushed := term.screen.Flush(); err == nil {
		err = flushed
	}
	if err != nil && !silent(err) {
		note(term.Err, "platform: "+explain(err))
	}
	return exitCode(ctx, err)
}

// Command returns the command with all its subcommands, for code that describes it. It reads and writes nothing.
func Command() *cobra.Command {
	cmd, _ := newCommand(Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, "platform")
	cmd.InitDefaultCompletionCmd()
	return cmd
}

func newCommand(s Streams, name string) (*cobra.Command, *terminal) {
	term := &terminal{Streams: s, screen: visible.NewWriter(s.Out), raw: s.Out, clock: clock.RealClock{}}
	term.Out, term.Err = term.screen, term.screen.Beside(s.Err)
	api := &server{loader: clientcmd.NewDefaultClientConfigLoadingRules(), overrides: &clientcmd.ConfigOverrides{}, warnings: warnings{term.Err}}
	cmd := &cobra.Command{
		Use:           "platform",
		Short:         "Run AI agents as Kubernetes resources",
		Long:          "Run AI agents as Kubernetes resources, follow what they do, decide what they may do.\n\n" + exitCodes,
		Version:       version.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	if strings.HasPrefix(name, "kubectl-") {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl platform"}
	}
	cmd.SetIn(s.In)
	cmd.SetOut(term.Out)
	cmd.SetErr(term.Err)
	flags := cmd.PersistentFlags()
	flags.StringVar(&api.loader.ExplicitPath, "kubeconfig", "", "kubeconfig file to use instead of KUBECONFIG or ~/.kube/config")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.CurrentContext.LongName, names.ContextOverrideFlags.Namespace.ShortName = "context", "n"
	names.ClusterOverrideFlags.APIServer.ShortName, names.AuthOverrideFlags.Token.ShortName = "s", "t"
	clientcmd.BindOverrideFlags(api.overrides, flags, names)
	usual := []string{"kubeconfig", "context", "namespace", "server", "certificate-authority", "token", "as", "as-group", "request-timeout"}
	flags.Lookup("token").Usage = "bearer token to use; overrides the kubeconfig's user"
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(usual, f.Name) }) // the others work as in kubectl
	flags.Lookup("certificate-authority").Usage = "file with the certificate of the authority that signed the server's"
	offer(cmd, "namespace", api.namespaces)
	offer(cmd, "context", api.contexts)
	cmd.AddCommand(runCommand(api, term), taskCommand(api, term), sessionCommand(api, term), approvalCommand(api, term), chatCommand(api, term), memoryCommand(api, term), proposalCommand(api, term))
	cmd.AddCommand(kindCommands(api, term)...)
	cmd.AddCommand(modelsCommand(api, term), secretCommand(api, term), policyCommand(api, term), usageCommand(api, term), auditCommand(api, term),
		statusCommand(api, term), authCommand(api, term), configCommand(), versionCommand(api, term), consoleCommand(api, term), backupCommand(api, term), restoreCommand(term), runtimeCommand(api, term), monitorCommand(api, term), deliveryCommand(api, term), gatewayCommand(api, term), connectionCommand(api, term))
	return cmd, term
}

// readFile reads a file, or standard input for "-".
func (term *terminal) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(term.In)
	}
	return os.ReadFile(name)
}
