// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// Resources of linked accounts.
const (
	connections        = "connections"
	connectorProviders = "connectorproviders"
)

const connectionHelp = `Link your own accounts at other services, so that agents may use them for you.

Only a person can: the kubeconfig, or --token, must have a token of the OpenID provider or a transaction token. You see and
change your own connections alone. Tokens of an account are kept by the server, sealed, and are never shown.

Tools do not use linked accounts yet; what can be done is to link an account and to disconnect it.`

// connectionCommand returns the commands about accounts that people link.
func connectionCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "connection", Aliases: []string{connections}, Short: "Your own accounts at other services, which agents may use for you", Long: connectionHelp}
	providers := listOf(api, term, connectorProviders, "List the services at which an account can be linked")
	providers.Use, providers.Aliases = "providers", []string{"provider"}
	cmd.AddCommand(
		listOf(api, term, connections, "List your connections"), getOf(api, term, "NAME", connections, "Show connections"), providers,
		connectionConnect(api, term), connectionComplete(api, term), connectionDisconnect(api, term),
	)
	return cmd
}

func connectionDisconnect(api *server, term *terminal) *cobra.Command {
	var yes, wait bool
	cmd := &cobra.Command{
		Use: "disconnect NAME", Aliases: []string{"delete", "rm"}, Short: "Give up a linked account", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(connections),
		Long: "Give up a linked account. The server revokes its tokens at the service, as far as that lets it, and removes them; then the\n" +
			"connection is gone. On a terminal you are asked first; without one --yes is needed.",
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; without a terminal it is needed")
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until the tokens are given back and the connection is gone")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		return disconnect(cmd.Context(), term, c.Connections(namespace), args[0], yes, wait)
	}
	return cmd
}

// disconnect deletes a connection, and waits until it is gone.
func disconnect(ctx context.Context, term *terminal, all typed.ConnectionInterface, name string, yes, wait bool) error {
	found, err := all.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !yes {
		if err := term.confirmDisconnect(ctx, found); err != nil {
			return err
		}
	}
	if err := all.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))}); err != nil {
		return err
	}
	if !wait {
		return term.say("connection %s is being disconnected", name)
	}
	note(term.Err, "waiting until the tokens are given back; Ctrl-C ends the waiting, and not the disconnecting")
	w := &connectionWatch{clock: term.clock, client: all, name: name, over: func(now *v1alpha1.Connection) (bool, error) {
		return now == nil || now.UID != found.UID, nil
	}}
	if err := w.follow(ctx); err != nil {
		return err
	}
	return term.say("connection %s disconnected", name)
}

// confirmDisconnect asks the user on the terminal. Any answer but yes means no.
func (term *terminal) confirmDisconnect(ctx context.Context, c *v1alpha1.Connection) error {
	if !term.Ask {
		return errors.New("nothing was disconnected, because there is no terminal to ask on; add --yes")
	}
	said, err := term.ask(ctx, fmt.Sprintf("disconnect %s, your account at %s? [y/N]", c.Name, c.Spec.ProviderRef.Name))
	if err != nil {
		return err
	}
	if said != "y" && said != "yes" {
		return errors.New("nothing was disconnected")
	}
	return nil
}

// connectionWatch follows one connection across cut connections to the server.
type connectionWatch struct {
	clock  clock.Clock
	client typed.ConnectionInterface
	name   string
	// over is called with the connection as it is, at first and after each change, and with nil once there is none of that name. It
	// reports whether that is the end, which nil has to be.
	over func(*v1alpha1.Connection) (bool, error)

	received int64 // how much the watches have sent
}

// follow returns once over says so. Its error is that of over, or says why the connection cannot be followed.
func (w *connectionWatch) follow(ctx context.Context) error {
	return lost(persist(ctx, w.clock, func() int64 { return w.received }, w.once), "the watch of connection "+w.name)
}

// once looks at the connection, and watches it until the end or until the watch is cut.
func (w *connectionWatch) once(ctx context.Context) error {
	now, err := w.client.Get(ctx, w.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		now = nil
	case err != nil:
		return err
	}
	if done, err := w.over(now); done || err != nil {
		return err
	}
	in, err := w.client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + w.name, ResourceVersion: now.ResourceVersion, AllowWatchBookmarks: true})
	if err != nil {
		return anew(err)
	}
	defer in.Stop()
	for e := range in.ResultChan() {
		if done, err := w.take(e); done || err != nil {
			return err
		}
	}
	return errCut
}

// take handles what the watch sent.
func (w *connectionWatch) take(e watch.Event) (done bool, err error) {
	if e.Type == watch.Error {
		return false, anew(apierrors.FromObject(e.Object))
	}
	w.received++
	now, ok := e.Object.(*v1alpha1.Connection)
	switch {
	case !ok || e.Type == watch.Bookmark:
		return false, nil
	case e.Type == watch.Deleted:
		now = nil
	}
	return w.over(now)
}

// anew has a watch begin anew that the server cannot go on with, because it has forgotten where that was.
func anew(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return errCut
	}
	return err
}
