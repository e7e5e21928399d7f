// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/version"
)

// kubeconfig returns the configuration from the flags and the kubeconfig. If the command line has a token, the
// kubeconfig's users are ignored: a server would prefer a client certificate to the token, and would refuse a token
// together with a password as ambiguous.
func (a *app) kubeconfig() clientcmd.ClientConfig {
	if a.overrides.AuthInfo.Token == "" {
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(a.loader, a.overrides)
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(withoutUsers{a.loader}, a.overrides)
}

// withoutUsers loads a kubeconfig whose users have no credentials.
type withoutUsers struct {
	*clientcmd.ClientConfigLoadingRules
}

// Load reads the files of the rules.
func (w withoutUsers) Load() (*clientcmdapi.Config, error) {
	c, err := w.ClientConfigLoadingRules.Load()
	if c != nil {
		for name := range c.AuthInfos {
			c.AuthInfos[name] = clientcmdapi.NewAuthInfo()
		}
	}
	return c, err
}

// config returns the client configuration.
func (a *app) config() (*rest.Config, error) {
	c, err := a.kubeconfig().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoConfig
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c.QPS = -1
	c.UserAgent = "platform/" + version.Version()
	c.WarningHandlerWithContext = warnings{a.Err}
	return c, nil
}

// client returns a client of the API group, and the namespace to use.
func (a *app) client() (typed.CoreV1alpha1Interface, string, error) {
	c, err := a.config()
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := a.kubeconfig().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig: %w", err)
	}
	set, err := versioned.NewForConfig(c)
	if err != nil {
		return nil, "", fmt.Errorf("client: %w", err)
	}
	return set.CoreV1alpha1(), namespace, nil
}

// warnings prints the server's warnings.
type warnings struct{ out io.Writer }

// HandleWarningHeaderWithContext prints one warning on a line.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	if text != "" {
		note(w.out, "Warning: "+text)
	}
}

// say prints a line of output.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Out, format+"\n", args...)
	return err
}

// note prints a line in addition to the output. It ignores errors, because there is no other place to report them.
func note(w io.Writer, line string) { _, _ = fmt.Fprintln(w, line) }
