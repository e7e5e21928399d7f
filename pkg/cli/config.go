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

// server is the API server that the flags and the kubeconfig name. Both are read when a client is made.
type server struct {
	loader    *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
	warnings  warnings
}

// kubeconfig returns the configuration from the flags and the kubeconfig. If the command line has a token, the
// kubeconfig's users are ignored: a server would prefer a client certificate to the token, and would refuse a token
// together with a password as ambiguous.
func (api *server) kubeconfig() clientcmd.ClientConfig {
	if api.overrides.AuthInfo.Token == "" {
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(api.loader, api.overrides)
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(withoutUsers{api.loader}, api.overrides)
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
func (api *server) config() (*rest.Config, error) {
	c, err := api.kubeconfig().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoConfig
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c.QPS = -1
	c.UserAgent = "platform/" + version.Version()
	c.WarningHandlerWithContext = api.warnings
	return c, nil
}

// client returns a client of the API group, and the namespace to use.
func (api *server) client() (typed.CoreV1alpha1Interface, string, error) {
	c, err := api.config()
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := api.kubeconfig().Namespace()
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
func (term *terminal) say(format string, args ...any) error {
	_, err := fmt.Fprintf(term.Out, format+"\n", args...)
	return err
}

// note prints a line in addition to the output. It ignores errors, because there is no other place to report them.
func note(w io.Writer, line string) { _, _ = fmt.Fprintln(w, line) }
