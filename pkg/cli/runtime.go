// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/harness/conformance"
)

const conformanceHelp = `Check whether a runtime keeps to the protocol platform.harness.v2.

The checks are numbered; docs/harness-v2.md lists them and describes the protocol. Each one says what is required and, if it
fails, what happened and what to do. A check that says nothing because another one failed is not run.

The runtime's agent must do what the lines "do: ..." of a prompt say: see "The conformance kit" in docs/harness-v2.md.
Do not check a runtime that works for somebody: afterwards it refuses controllers of a lower epoch, and while it is
checked it may be full, or draining.

The exit code is 0 if no check failed, 1 if one did, and 2 if the runtime could not be checked.`

// Exit codes of a conformance check.
const (
	codeBroken    = 1
	codeUnchecked = 2
)

type conformanceFlags struct {
	tokenFile, keyFile string
	skip               []string
	slack, timeout     time.Duration
}

func runtimeCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "runtime", Short: "Work with runtimes that run coding agents elsewhere"}
	cmd.AddCommand(conformanceCommand(api, term))
	return cmd
}

func conformanceCommand(api *server, term *terminal) *cobra.Command {
	var f conformanceFlags
	cmd := &cobra.Command{
		Use: "conformance URL", Short: "Check whether a runtime keeps to the protocol", Long: conformanceHelp,
		Example: "  platform runtime conformance https://runtime.example.com/ --token-file token --operation-key-file key\n" +
			"  platform runtime conformance http://127.0.0.1:8080/ --token-file token --operation-key-file key --skip 'D*' -o json",
	}
	// A wrong command line must not look like a runtime that is broken.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return unchecked(flagError(cmd, err)) })
	flags := cmd.Flags()
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the controller token")
	flags.StringVar(&f.keyFile, "operation-key-file", "", "file with the operation key")
	flags.StringSliceVar(&f.skip, "skip", nil, "numbers of checks to leave out, such as X5 or 'Q*'")
	flags.DurationVar(&f.slack, "slack", 5*time.Second, "what network and machine may take beyond the times of the protocol")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Minute, "limit of all checks together")
	out := addOutput(cmd, asTable, asJSON, asYAML)
	format := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return unchecked(errors.New("name the address of one runtime: platform runtime conformance URL"))
		}
		return unchecked(format(cmd, args))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		report, err := checkRuntime(cmd.Context(), api, term, args[0], &f, *out)
		if err != nil {
			return unchecked(err)
		}
		if *out != asTable {
			if err := term.write(report, *out); err != nil {
				return unchecked(err)
			}
		}
		if !report.Conforms {
			return &outcome{codeBroken, fmt.Sprintf("the runtime does not conform to %s", report.Protocol)}
		}
		return nil
	}
	return cmd
}

// unchecked is the error of a runtime that could not be checked.
func unchecked(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &outcome{codeUnchecked, explain(err)}
}

// checkRuntime runs the kit, and prints results as they come unless another format is wanted.
func checkRuntime(ctx context.Context, api *server, term *terminal, address string, f *conformanceFlags, out format) (*conformance.Report, error) {
	o := conformance.Options{Skip: f.skip, Slack: f.slack, Clock: clock.RealClock{}}
	var err error
	if o.Endpoint, err = checkedAddress(address, "runtime"); err != nil {
		return nil, err
	}
	token, err := readSecret(term, "--token-file", f.tokenFile)
	if err != nil {
		return nil, err
	}
	o.Token = string(token)
	if o.Key, err = readSecret(term, "--operation-key-file", f.keyFile); err != nil {
		return nil, err
	}
	transport, err := runtimeTransport(api.overrides.ClusterInfo.CertificateAuthority)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	o.Transport = transport
	if out == asTable {
		o.Each = term.printResult
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("the checks took more than --timeout (%s)", f.timeout))
	defer cancel()
	report, err := conformance.Run(ctx, o)
	if err != nil || out != asTable {
		return report, err
	}
	return report, term.say("\n%s, instance %s: %s", clean(report.Runtime), clean(report.Instance), tally(report))
}

// tally says how many checks ended how.
func tally(r *conformance.Report) string {
	parts := []string{fmt.Sprintf("%d passed", r.Counts[conformance.Passed])}
	for _, c := range []struct {
		state conformance.State
		text  string
	}{{conformance.Failed, "failed"}, {conformance.NotRun, "not run"}, {conformance.NotApplicable, "not applicable"}, {conformance.Skipped, "skipped"}} {
		if n := r.Counts[c.state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c.text))
		}
	}
	return fmt.Sprintf("%s: %s", many(len(r.Results), "check"), strings.Join(parts, ", "))
}

// printResult prints one result.
func (term *terminal) printResult(r conformance.Result) {
	words := map[conformance.State]string{
		conformance.Passed: term.paint(green, "ok  "), conformance.Failed: term.paint(red, "FAIL"), conformance.Skipped: "skip", conformance.NotApplicable: "n/a ", conformance.NotRun: "----",
	}
	text := fmt.Sprintf("%s  %-3s  %s", words[r.State], r.Number, r.Required)
	if r.Happened != "" {
		text += "\n           " + clean(r.Happened)
	}
	if r.Advice != "" {
		text += "\n           To do: " + r.Advice
	}
	note(term.Out, text)
}

// checkedAddress returns the address of what is checked: a runtime, or an adapter. Without encryption the token could be read on the way,
// unless there is none.
func checkedAddress(text, what string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q must be the address of the %s, such as https://%[2]s.example.com/", clean(text), what)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	plain := u.Scheme == "http" && (err == nil && ip.IsLoopback() || u.Hostname() == "localhost")
	if u.Scheme != "https" && !plain {
		return nil, fmt.Errorf("the address must begin with https://; http:// is for a %s on this machine", what)
	}
	return u, nil
}

// readSecret reads a secret from a file.
func readSecret(term *terminal, flag, file string) ([]byte, error) {
	if file == "" {
		return nil, fmt.Errorf("%s is required; secrets are read from files, because arguments can be seen by others", flag)
	}
	raw, err := term.readFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) < harness.MinSecret {
		return nil, fmt.Errorf("%s: %s has %d bytes; the protocol requires at least %d", flag, file, len(raw), harness.MinSecret)
	}
	return raw, nil
}

// runtimeTransport returns a transport that trusts the authorities of this machine, or those of a file.
func runtimeTransport(authority string) (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 256 << 10, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if authority == "" {
		return t, nil
	}
	raw, err := os.ReadFile(authority)
	if err != nil {
		return nil, fmt.Errorf("--certificate-authority: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("--certificate-authority: %s has no certificate", authority)
	}
	return t, nil
}
