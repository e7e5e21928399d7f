// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	linked "github.com/platform-ai/platform/pkg/server/connection"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	kinds "github.com/platform-ai/platform/pkg/server/registry/core/connection"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Connectors are the settings of the accounts that people link.
type Connectors struct {
	// Enabled lets people link accounts.
	Enabled bool
	// CallbackBase is the address that browsers know the server by, such as https://platform.example.com.
	CallbackBase string
	// KeyFile has the keys that seal tokens; see custody.OpenKeys. Default: connections.key in DataDir.
	KeyFile string
	// Transport speaks with providers. Default: one that reaches public addresses only.
	Transport http.RoundTripper
}

// AddFlags adds the flags of connectors.
func (c *Connectors) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&c.Enabled, "connectors-enabled", c.Enabled, "let people link their accounts at ConnectorProviders; needs --connector-callback-base-url, and callers with --oidc-… or --context-token-…")
	fs.StringVar(&c.CallbackBase, "connector-callback-base-url", c.CallbackBase, "address that browsers know this server by, such as https://platform.example.com; providers send people back to it at "+linked.CallbackPath)
	fs.StringVar(&c.KeyFile, "connector-key-file", c.KeyFile, "file with the keys that seal the tokens of linked accounts, one a line as base64 of 32 bytes; the first seals, the others only open. Empty means connections.key in the data folder, which is made if it is missing")
}

// connectorKeysFile is where the keys are by default, in the data folder.
const connectorKeysFile = "connections.key"

// openCustody returns what keeps tokens. A server that never had connectors has no keys, and makes none. Nor is a file made where the
// operator says that there is one: a wrong path would be noticed only when the keys are needed.
func (o *Options) openCustody(st *Stores) (*custody.Store, error) {
	path := cmp.Or(o.Connectors.KeyFile, o.Path(connectorKeysFile))
	_, err := os.Stat(path)
	switch missing := errors.Is(err, os.ErrNotExist); {
	case missing && o.Connectors.KeyFile != "":
		return nil, fmt.Errorf("--connector-key-file: %w", err)
	case missing && !o.Connectors.Enabled:
		return custody.New(st.Engine, &custody.Keys{}), nil
	}
	keys, err := custody.OpenKeys(path)
	if err != nil {
		return nil, fmt.Errorf("--connector-key-file: %w", err)
	}
	return custody.New(st.Engine, keys), nil
}

// connections makes the connections of a server.
func (o *Options) connections(g *genericapiserver.Config, st *Stores, stored *core.Stored, seal *external.Seal, host kubernetes.Interface) (*linked.Hub, error) {
	kept, err := o.openCustody(st)
	if err != nil {
		return nil, err
	}
	hub, err := linked.New(linked.Options{
		Off: !o.Connectors.Enabled, Base: o.Connectors.CallbackBase, Connections: stored.Connectors.Connections, Providers: stored.Connectors.Providers,
		Custody: kept, Engine: st.Engine, Key: seal.Derive("connections"), Host: host, RequireSecretHosts: o.RequireSecretHosts,
		Transport: o.Connectors.Transport, Clock: o.Clock, Metrics: o.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return hub, g.AddPostStartHook("platform-connections", func(c genericapiserver.PostStartHookContext) error {
		go func() { // ends with the server
			rewrap(c, kept)
			hub.Sweep(c)
		}()
		return nil
	})
}

// rewrap moves what is sealed with older keys to the first one.
func rewrap(ctx context.Context, kept *custody.Store) {
	log := klog.FromContext(ctx)
	found, err := kept.Rewrap(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed) {
		log.Error(err, "Tokens are still sealed with older keys; keep these in --connector-key-file, and start the server again")
	}
	if found.Missing > 0 {
		log.Error(nil, "Tokens of connections are sealed with keys that --connector-key-file lacks; these connections can neither be used nor disconnected until the keys are restored", "connections", found.Missing)
	}
	if found.Damaged > 0 {
		log.Error(nil, "Tokens of connections are damaged; these connections can only be removed together with their ConnectorProvider", "connections", found.Damaged)
	}
	if found.Done > 0 {
		log.Info("Sealed the tokens of connections with the first key", "connections", found.Done)
	}
}

// connectorKinds returns what the kinds of connectors need of the server.
func (o *Options) connectorKinds(hub *linked.Hub) kinds.Options {
	k := kinds.Options{Hub: hub}
	if !o.Connectors.Enabled {
		k.Off = linked.Disabled()
	}
	return k
}
