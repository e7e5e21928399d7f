// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/platform-ai/platform/pkg/gateway/conformance"
)

const gatewayConformanceHelp = `Check whether an adapter keeps to the protocol platform.gateway.v1.

The checks are numbered; docs/gateway-v1.md lists them and describes the protocol. Each one says what is required and, if it
fails, what happened and what to do. A check that says nothing because another one failed is skipped.

The adapter posts some thirty messages, one of 64 KiB, to the conversation that --account-id, --context-id and --thread-id name. Use one
where nobody minds. It is sent no events.

Two checks need a restart. --restart-command is given to sh, and must end the adapter without a warning (kill -9) and start it again
with the same disk. Without it these checks are skipped.

The exit code is 0 if no check failed, 1 if one did, and 2 if the adapter could not be checked, or not completely.`

type gatewayConformanceFlags struct {
	tokenFile, account, place, thread, reply, restart string

	patience, timeout time.Duration
}

func gatewayConformance(api *server, term *terminal) *cobra.Command {
	var f gatewayConformanceFlags
	cmd := &cobra.Command{
		Use: "conformance URL", Short: "Check whether an adapter keeps to the protocol", Long: gatewayConformanceHelp,
		Example: "  platform gateway conformance https://adapter.example.com/ --token-file token --account-id @bot:example.com --context-id '!test:example.com'",
	}
	// A wrong command line must not look like an adapter that is broken.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return unchecked(flagError(cmd, err)) })
	flags := cmd.Flags()
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the token for deliveries; - is standard input")
	flags.StringVar(&f.account, "account-id", "", "the account of the chat system")
	flags.StringVar(&f.place, "context-id", "", "the place within the account, such as a channel")
	flags.StringVar(&f.thread, "thread-id", "", "the thread within the place")
	flags.StringVar(&f.reply, "reply-target", "", "the reply target, if the adapter needs one")
	flags.StringVar(&f.restart, "restart-command", "", "command that kills the adapter and starts it again")
	flags.DurationVar(&f.patience, "patience", 2*time.Minute, "how long a delivery is repeated, and a restarted adapter waited for")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Minute, "limit of all checks together")
	out := addOutput(cmd, asTable, asJSON, asYAML)
	format := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return unchecked(errors.New("name the address of one adapter: platform gateway conformance URL"))
		}
		return unchecked(format(cmd, args))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		report, err := f.check(cmd.Context(), api, term, args[0], *out)
		switch {
		case err != nil:
			return unchecked(err)
		case report.Counts[conformance.Failed] > 0:
			return &outcome{codeBroken, "the adapter does not keep to " + report.Protocol}
		case !report.Conforms:
			return &outcome{codeUnchecked, "the adapter was not checked completely"}
		}
		return nil
	}
	return cmd
}

// check runs the kit, and prints results as they come unless another format is wanted.
func (f *gatewayConformanceFlags) check(ctx context.Context, api *server, term *terminal, address string, out format) (*conformance.Report, error) {
	u, err := checkedAddress(address, "adapter")
	if err != nil {
		return nil, err
	}
	if f.tokenFile == "" {
		return nil, errors.New("--token-file is required; secrets are read from files, because arguments can be seen by others")
	}
	if f.account == "" || f.place == "" {
		return nil, errors.New("--account-id and --context-id are required: they name the conversation in which the adapter may post")
	}
	token, err := term.readFile(f.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	if token = bytes.TrimSpace(token); len(token) == 0 {
		return nil, fmt.Errorf("--token-file: %s is empty", f.tokenFile)
	}
	transport, err := runtimeTransport(api.overrides.ClusterInfo.CertificateAuthority)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	o := conformance.Options{
		URL: strings.TrimSuffix(u.String(), "/"), Token: string(token), AccountID: f.account, ContextID: f.place, ThreadID: f.thread, ReplyTarget: f.reply,
		Client: &http.Client{Transport: transport}, Patience: f.patience,
	}
	if f.restart != "" {
		o.Restart = f.run
	}
	if out == asTable {
		o.Each = term.printCheck
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("they took more than --timeout (%s)", f.timeout))
	defer cancel()
	report := conformance.Run(ctx, o)
	if out != asTable {
		return &report, term.write(report, out)
	}
	counts := report.Counts
	return &report, term.say("\n%s: %s, %d passed, %d failed, %d skipped", clean(cmp.Or(report.Adapter, "adapter without a name")), many(len(report.Results), "check"),
		counts[conformance.Passed], counts[conformance.Failed], counts[conformance.Skipped])
}

// run restarts the adapter.
func (f *gatewayConformanceFlags) run(ctx context.Context) error {
	if said, err := exec.CommandContext(ctx, "sh", "-c", f.restart).CombinedOutput(); err != nil {
		return fmt.Errorf("--restart-command: %w: %s", err, fit(clean(string(said)), 2*textColumns))
	}
	return nil
}

// printCheck prints one result.
func (term *terminal) printCheck(r conformance.Result) {
	words := map[conformance.State]string{conformance.Passed: term.paint(green, "ok  "), conformance.Failed: term.paint(red, "FAIL"), conformance.Skipped: "skip"}
	text := fmt.Sprintf("%s  %-3s  %s", words[r.State], r.Number, r.Required)
	if r.Reason != "" {
		text += "\n           " + clean(r.Reason)
	}
	if r.Advice != "" {
		text += "\n           To do: " + r.Advice
	}
	note(term.Out, text)
}
