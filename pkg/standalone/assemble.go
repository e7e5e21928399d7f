// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apiserver"
	"github.com/platform-ai/platform/pkg/facade"
	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/pkg/host"
	"github.com/platform-ai/platform/pkg/registry/core"
	"github.com/platform-ai/platform/pkg/registry/core/task"
	"github.com/platform-ai/platform/pkg/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// store is what the server keeps on disk.
type store struct {
	engine  *engine.Engine
	objects *object.DB
	events  *eventlog.Log
	blobs   *blob.Store
	// transcripts are what was said in sessions.
	transcripts *transcript.Store
}

func (o *Options) openStore(ctx context.Context) (_ *store, err error) {
	st := &store{}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	st.engine, err = engine.Open(ctx, engine.Options{Dir: o.path("store"), Clock: o.Clock, Registerer: o.Metrics})
	if errors.Is(err, engine.ErrLocked) {
		return nil, fmt.Errorf("another server is running on %s; stop it, or choose another folder with --data-dir: %w", o.DataDir, err)
	}
	if err != nil {
		return nil, err
	}
	if st.objects, err = object.Open(ctx, st.engine, object.Options{Clock: o.Clock, Registerer: o.Metrics}); err != nil {
		return nil, err
	}
	if st.events, err = eventlog.Open(ctx, st.engine, eventlog.Options{Clock: o.Clock, Registerer: o.Metrics}); err != nil {
		return nil, err
	}
	st.blobs = blob.New(st.engine)
	st.transcripts = transcript.New(st.engine, transcript.Options{Clock: o.Clock})
	return st, nil
}

// close closes what is open, in reverse order.
func (s *store) close() (err error) {
	if s.events != nil {
		err = s.events.Close()
	}
	if s.objects != nil {
		s.objects.Close()
	}
	if s.engine != nil {
		err = errors.Join(err, s.engine.Close())
	}
	return err
}

// assembly is a server that is built and does not answer yet.
type assembly struct {
	host     *host.Host
	server   *apiserver.Server
	loopback *rest.Config
	info     Info

	restListener net.Listener // without TLS; nil where there is none
	healthy      func(context.Context) error
	clock        clock.WithTicker
}

// assemble builds the server. Its hooks and watches end with ctx.
func (o *Options) assemble(ctx context.Context, st *store) (*assembly, error) {
	h, err := host.New(host.Config{Dir: o.path("pki"), Hosts: o.names(), Clock: o.Clock})
	if err != nil {
		return nil, err
	}
	scheme, err := apiserver.NewScheme(host.Install, install.Install)
	if err != nil {
		return nil, err
	}
	l, url, err := o.listen(ctx)
	if err != nil {
		return nil, err
	}
	plain, restURL, err := o.listenREST(ctx)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	a := &assembly{host: h, restListener: plain, clock: o.Clock, info: Info{
		URL: url, RESTURL: restURL, DataDir: o.DataDir, Kubeconfig: o.path("kubeconfig"), Admin: h.PKI().AdminConfig(url),
	}}
	a.healthy = func(context.Context) error { return st.engine.Healthy() }
	if err := a.build(ctx, o, scheme, st, l); err != nil {
		if plain != nil {
			err = errors.Join(err, plain.Close())
		}
		return nil, errors.Join(err, l.Close())
	}
	return a, nil
}

func (a *assembly) build(ctx context.Context, o *Options, scheme *runtime.Scheme, st *store, l net.Listener) error {
	g, err := o.generic(scheme, a.host.PKI(), l, a.info.URL)
	if err != nil {
		return err
	}
	g.RESTOptionsGetter = object.NewRESTOptionsGetter(object.RESTOptions{
		DB: st.objects, Scheme: scheme, Codecs: apiserver.Codecs(scheme),
		Transformers: a.host.Transformers(), ObjectCounts: g.StorageObjectCountTracker,
	})
	if err := a.host.Apply(g); err != nil {
		return err
	}
	policies, err := a.host.Admission()
	if err != nil {
		return err
	}
	timelines, err := timeline.New(timeline.Options{
		Log: st.events, Clock: o.Clock, WriteTimeout: o.StreamWriteTimeout, Registerer: o.Metrics,
	})
	if err != nil {
		return err
	}
	ours := core.All(core.Options{
		Options: task.Options{
			Log: st.events, Timelines: timelines, Blobs: st.blobs, Authorizer: a.host.Authorizer(), Clock: o.Clock, Loopback: g.LoopbackClientConfig,
			Retention: task.Retention{Ended: o.EventRetention, Failed: o.EventRetentionFailed},
		},
		Transcripts: st.transcripts,
	})
	config := apiserver.Config{
		Generic: g, Scheme: scheme,
		Resources:   a.host.Resources(ours...),
		Definitions: []common.GetOpenAPIDefinitions{openapi.GetOpenAPIDefinitions},
		Admission:   policies,
		Immortal:    host.Namespaces(),
		Healthy:     st.engine.Healthy,
		Clock:       o.Clock,
		REST:        &facade.Options{Clock: o.Clock, Metrics: o.Metrics, Origins: o.CORSOrigins},
	}
	completed, err := config.Complete()
	if err != nil {
		return err
	}
	if a.server, err = completed.New(ctx); err != nil {
		return err
	}
	a.loopback = g.LoopbackClientConfig
	if err := a.host.Start(ctx); err != nil {
		return err
	}
	return a.writeKubeconfig()
}

func (a *assembly) writeKubeconfig() error {
	return a.host.PKI().WriteKubeconfig(a.info.Kubeconfig, a.info.URL)
}
