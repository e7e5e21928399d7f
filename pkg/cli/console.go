// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/pkg/profiling"
)

const consoleHelp = `Open the web console, with the credentials of the kubeconfig.

The command serves the console on a port of this machine until it is interrupted, and sends the requests of its page to
the server of the kubeconfig, whatever that is: a standalone server, or a kube-apiserver. The page can do what you can do.

The link that it prints works once, within ten minutes, in one browser. Nobody else on this machine can use the port
without it. Whoever has the link has your permissions, so do not pass it on.`

const (
	// consoleIdle and consoleLife limit sessions: the command is usually ended earlier.
	consoleIdle, consoleLife = 24 * time.Hour, 7 * 24 * time.Hour
	// consoleHeaderTimeout is how long a browser may take to send the header of a request, and consoleShutdown how long
	// requests may take to end.
	consoleHeaderTimeout, consoleShutdown = 30 * time.Second, time.Second
)

func consoleCommand(api *server, term *terminal) *cobra.Command {
	var noOpen bool
	var port uint16
	cmd := &cobra.Command{
		Use: "console", Short: "Open the web console in a browser", Long: consoleHelp, Args: cobra.NoArgs,
		Example: "  platform console\n  platform console --no-open --port 8001",
	}
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the link without opening a browser")
	cmd.Flags().Uint16Var(&port, "port", 0, "port of this machine to serve the console on; 0 is a free one")
	var profiles profiling.Address
	profiles.AddFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		stop, err := profiles.Serve(cmd.Context())
		if err != nil {
			return err
		}
		defer stop()
		return serveConsole(cmd.Context(), api, term, port, !noOpen)
	}
	return cmd
}

func serveConsole(ctx context.Context, api *server, term *terminal, port uint16, open bool) error {
	config, err := api.config()
	if err != nil {
		return err
	}
	user, err := whoAmI(ctx, config)
	if err != nil {
		return fmt.Errorf("the server does not say who you are: %w", err)
	}
	namespace, _, err := api.kubeconfig().Namespace()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("cannot listen (another --port?): %w", err)
	}
	link := newOnce(term.clock, console.Entry{User: user, Namespace: namespace})
	link.again = func() {
		note(term.Err, "platform: the link was presented once more and refused. If that was not you, somebody else has it: end this command")
	}
	h, err := newLocal(config, l.Addr().String(), link)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	address := fmt.Sprintf("http://%s%slogin#once=%s", l.Addr(), console.Path, link.secret)
	if err := term.say("Console of %s, as %s:\n\n  %s\n\nThe link works once, within %d minutes. Stop with Ctrl-C.", config.Host, clean(user), address, int(onceLife/time.Minute)); err != nil {
		return errors.Join(err, l.Close())
	}
	if open {
		remove := openBrowser(ctx, term.Err, address)
		defer remove()
	}
	return serveLocal(ctx, l, h)
}

// whoAmI returns the name of the user whom a server takes the configuration's owner for.
func whoAmI(ctx context.Context, config *rest.Config) (string, error) {
	c, err := typedauthentication.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("client: %w", err)
	}
	r, err := c.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return r.Status.UserInfo.Username, nil
}

// serveLocal serves until ctx ends.
func serveLocal(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: consoleHeaderTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), consoleShutdown)
		defer cancel()
		if s.Shutdown(bounded) != nil {
			_ = s.Close()
		}
	})
	err := s.Serve(l)
	if stop() {
		return err
	}
	<-stopped
	return nil
}
