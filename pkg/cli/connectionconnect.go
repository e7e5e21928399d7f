// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

const connectHelp = `Link your account at a service, or link it anew: for example with another mode, or after the service has revoked it.

The command prints the address of the service's page, where you say what the platform may do, and opens it in the browser of
this desktop, if there is one. Afterwards the page of the console finishes what you began there, as the person who is logged in
to the console: log in there as the same person. Without a console, copy the address to which the browser was sent, and run
'platform connection complete NAME'.

The command waits until the account is linked. The page of the service does not tell it that you declined, so stop with Ctrl-C
then. The exit code is 0 once the account is linked, 3 if the connection is disconnected meanwhile, and 4 if the time for the
consent is over.`

// consentTime is how long a person has to give consent, if this machine's clock cannot say when that ends.
const consentTime = 10 * time.Minute

type connectFlags struct {
	mode      string
	noBrowser bool
}

func connectionConnect(api *server, term *terminal) *cobra.Command {
	var flags connectFlags
	modes := []string{string(v1alpha1.ConnectionReadOnly), string(v1alpha1.ConnectionReadWrite)}
	cmd := &cobra.Command{
		Use: "connect PROVIDER", Aliases: []string{"link"}, Short: "Link your account at a service", Long: connectHelp, Args: cobra.ExactArgs(1),
		Example: "  platform connection providers\n" +
			"  platform connection connect github\n" +
			"  platform connection connect github --mode readWrite --no-browser",
		ValidArgsFunction: api.names(connectorProviders),
	}
	cmd.Flags().StringVar(&flags.mode, "mode", "", "what the account may be used for: readOnly, readWrite (default: as the connection has it, and readOnly for a new one)")
	offer(cmd, "mode", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&flags.noBrowser, "no-browser", false, "print the address without opening a browser")
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flags.mode != "" {
			if err := oneOf("--mode", flags.mode, modes...); err != nil {
				return err
			}
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		return connect(cmd.Context(), term, c, namespace, args[0], flags, *f)
	}
	return cmd
}

// connect begins a consent, sends the person to it, and waits until it is committed.
func connect(ctx context.Context, term *terminal, c typed.CoreV1alpha1Interface, namespace, provider string, flags connectFlags, f format) error {
	begun, err := c.ConnectionAuthorizations(namespace).Create(ctx, &v1alpha1.ConnectionAuthorization{Spec: v1alpha1.ConnectionAuthorizationSpec{
		ProviderRef: &v1alpha1.LocalReference{Name: provider}, Mode: v1alpha1.ConnectionMode(flags.mode),
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	before := begun.Status.Connection
	// A browser would also run or read what other schemes lead to.
	if before == nil || !strings.HasPrefix(begun.Status.AuthorizeURL, "https://") {
		return errors.New("the server gave no https address at which consent can be given")
	}
	out := term.Out
	if f != asTable {
		out = term.Err // what is printed to Out is the connection
	}
	if err := term.invite(out, &begun.Status); err != nil {
		return err
	}
	if !flags.noBrowser {
		remove := openBrowser(ctx, term.Err, begun.Status.AuthorizeURL)
		defer remove()
	}
	linked, err := term.awaitConsent(ctx, c.Connections(before.Namespace), &begun.Status)
	if err != nil {
		return err
	}
	return printLinked(term, linked, f)
}

// invite prints where consent is given.
func (term *terminal) invite(out io.Writer, begun *v1alpha1.ConnectionAuthorizationStatus) error {
	c, until := begun.Connection, ""
	if begun.ExpiresAt != nil {
		until = ", until " + begun.ExpiresAt.Local().Format(time.DateTime)
	}
	_, err := fmt.Fprintf(out, "To link your account at %s (%s), open this address:\n\n  %s\n\nIt works once%s. If no page of the console loads afterwards, copy the address to which the browser was sent, and run\n"+
		"  platform connection complete %s -n %s\n\nWaiting; stop with Ctrl-C.\n", clean(c.Spec.ProviderRef.Name), clean(string(c.Spec.Mode)), clean(begun.AuthorizeURL), until, clean(c.Name), clean(c.Namespace))
	return err
}

// errConsentOver ends the waiting for a consent.
var errConsentOver = errors.New("the time for the consent is over")

// awaitConsent waits until a consent is committed that is newer than those before, and returns the connection.
func (term *terminal) awaitConsent(ctx context.Context, all typed.ConnectionInterface, begun *v1alpha1.ConnectionAuthorizationStatus) (linked *v1alpha1.Connection, err error) {
	before, left := begun.Connection, consentTime
	if begun.ExpiresAt != nil {
		if by := begun.ExpiresAt.Sub(term.clock.Now()); by > 0 { // the clocks may differ
			left = min(by, consentTime)
		}
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := term.clock.NewTimer(left)
	defer timer.Stop()
	go func() {
		select {
		case <-timer.C():
			cancel(errConsentOver)
		case <-within.Done():
		}
	}()
	w := &connectionWatch{clock: term.clock, client: all, name: before.Name, over: func(now *v1alpha1.Connection) (bool, error) {
		switch {
		case now == nil || now.UID != before.UID || now.DeletionTimestamp != nil:
			return true, &outcome{codeCancelled, fmt.Sprintf("connection %s was disconnected meanwhile", before.Name)}
		case now.Status.GrantSequence <= before.Status.GrantSequence:
			return false, nil
		}
		linked = now
		return true, nil
	}}
	err = w.follow(within)
	if err != nil && errors.Is(context.Cause(within), errConsentOver) {
		err = &outcome{codeUnknown, fmt.Sprintf("the consent for connection %s was not completed in time; see it with 'platform connection list', or connect again", before.Name)}
	}
	return linked, err
}

// printLinked prints a connection whose consent was committed. If it cannot be used all the same, the error says why.
func printLinked(term *terminal, c *v1alpha1.Connection, f format) error {
	linked := "linked: " + string(c.Spec.Mode)
	if len(c.Status.GrantedScopes) > 0 {
		linked += ", granted " + clean(strings.Join(c.Status.GrantedScopes, " "))
	}
	if err := printChanged(term, c, "Connection", linked, f); err != nil || c.Status.State == v1alpha1.ConnectionReady {
		return err
	}
	for i := range c.Status.Conditions {
		if why := &c.Status.Conditions[i]; why.Status != metav1.ConditionTrue {
			return fmt.Errorf("the connection is %s: %s", c.Status.State, clean(inOne("", why.Reason, why.Message)))
		}
	}
	return fmt.Errorf("the connection is %s", c.Status.State)
}
