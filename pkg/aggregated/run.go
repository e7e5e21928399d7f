// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apiserver"
	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/version"
)

// hostPoll is how often a start tries to reach a cluster that does not answer.
const hostPoll = time.Second

// Run runs a server until ctx ends; then it returns nil after everything has stopped.
//
// A start waits for the cluster, and for a predecessor to leave the store, before it opens its port: what answers,
// works.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	began := o.Clock.Now()
	config, err := o.client()
	if err != nil {
		return err
	}
	host, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client of the cluster: %w", err)
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	cert, err := o.certificate()
	if err != nil {
		return err
	}
	if err := awaitHost(ctx, host); err != nil {
		return nil //nolint:nilerr // ctx ended
	}
	st, err := o.OpenStores(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil
	case err != nil:
		return err
	}
	a := &assembly{Options: &o, config: config, host: host, cert: cert}
	return server.Run(ctx, st, func(ctx context.Context) (*server.Process, error) {
		p, err := a.assemble(ctx, st)
		if err != nil {
			return nil, err
		}
		p.Work = func(ctx context.Context) error {
			i := Info{URL: p.Listeners.URL, RESTURL: p.Listeners.RESTURL, CA: cert.ca()}
			if err := announce(&o, i, o.Clock.Since(began)); err != nil {
				return err
			}
			return a.work(ctx, i)
		}
		return p, nil
	})
}

// awaitHost waits until the cluster answers; its error is that ctx ended.
func awaitHost(ctx context.Context, host kubernetes.Interface) error {
	return wait.PollUntilContextCancel(ctx, hostPoll, true, func(context.Context) (bool, error) {
		_, err := host.Discovery().ServerVersion()
		if err != nil {
			klog.FromContext(ctx).Error(err, "The cluster does not answer; trying again")
		}
		return err == nil, nil
	})
}

// announce tells, in one write, that the server is ready.
func announce(o *Options, i Info, took time.Duration) error {
	_, err := fmt.Fprintf(o.Out, "platform-apiserver %s is ready after %.2f s at %s, as %s.%s, with %s\n",
		version.Version(), took.Seconds(), i.URL, o.ServiceName, o.Namespace, o.DataDir)
	return err
}

// assembly is what the server is made of.
type assembly struct {
	*Options
	config *rest.Config
	host   kubernetes.Interface
	cert   *certificate
}

// assemble builds the server. Its hooks and watches end with ctx.
func (a *assembly) assemble(ctx context.Context, st *server.Stores) (*server.Process, error) {
	l, err := a.Listen(ctx)
	if err != nil {
		return nil, err
	}
	p, err := a.build(ctx, st, l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return p, nil
}

func (a *assembly) build(ctx context.Context, st *server.Stores, l *server.Listeners) (*server.Process, error) {
	scheme, err := apiserver.NewScheme(install.Install)
	if err != nil {
		return nil, err
	}
	g, err := a.Generic(scheme, l, a.cert.certFile, a.cert.keyFile)
	if err != nil {
		return nil, err
	}
	g.EnableProfiling = a.Profiling
	st.SetStorage(g, scheme, nil)
	if err := a.delegate(ctx, g, a.host); err != nil {
		return nil, err
	}
	config, err := a.Config(g, scheme, st)
	if err != nil {
		return nil, err
	}
	if config.Identify, err = a.identify(config); err != nil {
		return nil, err
	}
	ready, answers := context.WithCancel(ctx)
	if config.Admission, err = a.admission(ctx, g, a.host, ready.Done()); err != nil {
		answers()
		return nil, err
	}
	config.Host, config.PriorityAndFairness, config.GarbageCollector = a.config, a.PriorityAndFairness, true
	completed, err := config.Complete()
	if err != nil {
		answers()
		return nil, err
	}
	api, err := completed.New(ctx)
	if err != nil {
		answers()
		return nil, err
	}
	err = api.Generic.AddPostStartHook("schemas", func(genericapiserver.PostStartHookContext) error {
		answers()
		return nil
	})
	return &server.Process{
		API: api, Listeners: l, Loopback: g.LoopbackClientConfig, Healthy: st.Engine.Healthy, Clock: a.Clock,
		Parts: []server.Part{{Name: "certificates", Run: a.cert.run}},
	}, err
}

// work keeps the registration in order until ctx ends.
func (a *assembly) work(ctx context.Context, i Info) error {
	if a.Ready != nil {
		if err := a.Ready(ctx, i); err != nil {
			return err
		}
	}
	if !a.ManageAPIService {
		<-ctx.Done()
		return nil
	}
	client, err := dynamic.NewForConfig(a.config)
	if err != nil {
		return fmt.Errorf("client of the APIService: %w", err)
	}
	r := &registration{client: client, host: a.host, namespace: a.Namespace, service: a.ServiceName, cert: a.cert, clock: a.Clock}
	r.run(ctx)
	return nil
}
