// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"maps"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/host"
)

// assembly is a server that is built but does not answer yet.
type assembly struct {
	*server.Process
	host *host.Host
	info Info
}

// assemble builds the server. Its hooks and watches end with ctx.
func (o *Options) assemble(ctx context.Context, st *server.Stores) (*assembly, error) {
	h, err := host.New(host.Config{Dir: o.Path("pki"), Hosts: o.names(), Clock: o.Clock})
	if err != nil {
		return nil, err
	}
	l, err := o.Listen(ctx)
	if err != nil {
		return nil, err
	}
	a := &assembly{host: h, info: Info{
		URL: l.URL, RESTURL: l.RESTURL, Console: o.Console, DataDir: o.DataDir, Kubeconfig: o.Path("kubeconfig"), Admin: h.PKI().AdminConfig(l.URL),
	}}
	if err := a.build(ctx, o, st, l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return a, nil
}

func (a *assembly) build(ctx context.Context, o *Options, st *server.Stores, l *server.Listeners) error {
	scheme, err := apiserver.NewScheme(host.Install, install.Install)
	if err != nil {
		return err
	}
	certFile, keyFile := a.host.PKI().ServingFiles()
	g, err := o.Generic(scheme, l, certFile, keyFile)
	if err != nil {
		return err
	}
	st.SetStorage(g, scheme, a.host.Transformers())
	if err := a.host.Apply(g); err != nil {
		return err
	}
	o.SealFile = o.Path("pki/requester.key")
	config, err := o.Config(g, scheme, st) //nolint:contextcheck // its hooks get the context of the server
	if err != nil {
		return err
	}
	a.host.Answer(g.Authorization.Authorizer)
	config.Resources = a.host.Resources(config.Resources...)
	config.Immortal = host.Namespaces()
	maps.Copy(config.Handlers, a.host.Handlers())
	if config.Admission, err = a.host.Admission(); err != nil {
		return err
	}
	completed, err := config.Complete()
	if err != nil {
		return err
	}
	api, err := completed.New(ctx)
	if err != nil {
		return err
	}
	a.Process = &server.Process{
		API: api, Listeners: l, Loopback: g.LoopbackClientConfig, Ready: st.Engine.Ready, Requests: config.Requests, Sparse: config.Sparse, Clock: o.Clock,
		Parts: []server.Part{{Name: "host", Run: func(ctx context.Context) error { return a.host.Run(ctx, a.writeKubeconfig) }}},
	}
	if err := a.host.Start(ctx); err != nil {
		return err
	}
	return a.writeKubeconfig()
}

func (a *assembly) writeKubeconfig() error {
	return a.host.PKI().WriteKubeconfig(a.info.Kubeconfig, a.info.URL)
}
