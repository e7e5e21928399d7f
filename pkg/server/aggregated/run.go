// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/memlimit"
	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	hostinstall "github.com/platform-ai/platform/pkg/server/host/install"
	"github.com/platform-ai/platform/pkg/server/host/review"
	"github.com/platform-ai/platform/pkg/version"
)

// hostPoll is the time between attempts to reach a cluster that does not answer.
const hostPoll = time.Second

// Run runs a server until ctx ends; then it returns nil after everything has stopped.
//
// It serves the API only after the cluster answers and its predecessor has released the store.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	o.Name = o.ServiceName
	if o.AwaitFiles(ctx) != nil {
		return nil // asked to stop while it waited
	}
	memlimit.Set(ctx)
	server.SpaceCollections()
	stop, err := o.Profiling.Serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
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
	authorities := awaitHost(ctx, host)
	if authorities == nil {
		return nil
	}
	st, err := o.OpenStores(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = nil // asked to stop while it waited
		}
		return err
	}
	server.GiveBackMemory(ctx, o.Clock, st.Objects.Dropped)
	a := &assembly{Options: &o, config: config, host: host, authorities: authorities}
	if o.Pod != "" {
		a.place = &place{host.CoreV1().Pods(o.Namespace), o.Pod}
		marking, stop := context.WithCancel(ctx)
		var marked sync.WaitGroup
		marked.Go(func() { a.place.keep(marking) })
		defer func() { stop(); marked.Wait() }()
	}
	return server.Run(ctx, st, func(ctx context.Context) (*server.Process, error) {
		p, err := a.assemble(ctx, st)
		if err != nil {
			return nil, err
		}
		p.Work = func(ctx context.Context) error {
			i := Info{URL: p.Listeners.URL, RESTURL: p.Listeners.RESTURL, CA: a.cert.ca()}
			if err := announce(&o, i, o.Clock.Since(began)); err != nil {
				return err
			}
			return a.work(ctx, i)
		}
		return p, nil
	})
}

// awaitHost waits until the cluster answers and returns the ConfigMap with the authorities of client certificates;
// nil if ctx ended first. The cluster may also refuse the request briefly after an installation, until new
// permissions take effect.
func awaitHost(ctx context.Context, host kubernetes.Interface) (found *corev1.ConfigMap) {
	_ = wait.PollUntilContextCancel(ctx, hostPoll, true, func(ctx context.Context) (bool, error) {
		m, err := host.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationMap, metav1.GetOptions{})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read which client certificates the cluster trusts; trying again. If this is forbidden, another namespace has an installation of the platform: a cluster can have only one")
			return false, nil
		}
		found = m
		return true, nil
	})
	return found
}

// announce reports, in one write, that the server is ready.
func announce(o *Options, i Info, took time.Duration) error {
	_, err := fmt.Fprintf(o.Out, "platform-apiserver %s is ready after %.2f s at %s, as %s.%s, with %s\n",
		version.Version(), took.Seconds(), i.URL, o.ServiceName, o.Namespace, o.DataDir)
	return err
}

// assembly holds the parts of the server.
type assembly struct {
	*Options
	config *rest.Config
	host   kubernetes.Interface
	// authorities are the authorities of client certificates that the cluster published when this server started.
	authorities *corev1.ConfigMap
	cert        *certificate
	// place is nil if the server does not say which Pod serves.
	place *place
	// registered is nil if the server does not manage the APIService.
	registered *registration
}

// assemble builds the server. Its hooks and watches end with ctx.
func (a *assembly) assemble(ctx context.Context, st *server.Stores) (_ *server.Process, err error) {
	if a.cert, err = a.certificate(); err != nil {
		return nil, err
	}
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
	scheme, err := apiserver.NewScheme(install.Install, hostinstall.WhoAmI)
	if err != nil {
		return nil, err
	}
	g, err := a.Generic(scheme, l, a.cert.certFile, a.cert.keyFile)
	if err != nil {
		return nil, err
	}
	g.EnableProfiling = a.SecureProfiling
	st.SetStorage(g, scheme, nil)
	if err := a.delegate(ctx, g); err != nil {
		return nil, err
	}
	a.Host = a.config
	config, err := a.Config(g, scheme, st) //nolint:contextcheck // its hooks get the context of the server
	if err != nil {
		return nil, err
	}
	// The REST paths need the first to tell callers their identity, the web console the second to know what to offer.
	config.Resources = append(config.Resources, review.WhoAmI(), review.Rules(asked{g.Authorization.Authorizer, config.Resources}))
	if config.Identify, err = a.identify(config); err != nil {
		return nil, err
	}
	if config.Admission, err = a.admission(ctx, g, a.host); err != nil {
		return nil, err
	}
	config.REST.NoCore = true
	config.Handlers[secretsPath] = secretNames{a.host.CoreV1().RESTClient(), apiserver.Codecs(scheme)}
	config.Host, config.PriorityAndFairness = a.config, a.PriorityAndFairness
	parts := []server.Part{{Name: "certificates", Run: a.cert.run}}
	if a.ManageAPIService {
		if a.registered, err = a.registration(st.Engine.ID()); err != nil {
			return nil, err
		}
		config.Ready["registration"] = a.registered.ready
		parts = append(parts, server.Part{Name: "registration", Run: a.registered.run})
	}
	completed, err := config.Complete()
	if err != nil {
		return nil, err
	}
	api, err := completed.New(ctx)
	if err != nil {
		return nil, err
	}
	return &server.Process{
		API: api, Listeners: l, Loopback: g.LoopbackClientConfig, Ready: st.Engine.Ready, Requests: config.Requests, Sparse: config.Sparse, Clock: a.Clock,
		Parts: parts,
	}, nil
}

// work marks the server as answering until ctx ends.
func (a *assembly) work(ctx context.Context, i Info) error {
	if a.Ready != nil {
		if err := a.Ready(ctx, i); err != nil {
			return err
		}
	}
	if a.registered != nil {
		a.registered.answers(true)
		defer a.registered.answers(false)
	}
	<-ctx.Done()
	return nil
}
