// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/value"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
	"github.com/platform-ai/platform/pkg/server/compat"
	"github.com/platform-ai/platform/pkg/server/console"
	"github.com/platform-ai/platform/pkg/server/door"
	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/server/intake"
	"github.com/platform-ai/platform/pkg/server/modelrequest"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/panics"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/registry/core/memory"
	"github.com/platform-ai/platform/pkg/server/registry/core/session"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/retention"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// SetStorage makes the generic server use these stores. Transformers, if any, encrypt resources at rest.
func (s *Stores) SetStorage(g *genericapiserver.Config, scheme *runtime.Scheme, transformers map[schema.GroupResource]value.Transformer) {
	g.RESTOptionsGetter = object.NewRESTOptionsGetter(object.RESTOptions{
		DB: s.Objects, Scheme: scheme, Codecs: apiserver.Codecs(scheme),
		Transformers: transformers, ObjectCounts: g.StorageObjectCountTracker,
		Indexes: map[schema.GroupResource]object.Index{
			v1alpha1.Resource("memories"): memory.Indexed{Index: s.Memories},
			v1alpha1.Resource("tasks"):    ledger.Tasks{Ledger: s.Ledger},
		},
	})
}

// Config makes the configuration of an API server that serves the platform's own resources from the stores. The
// storage, authentication and authorization of g must be set before. A program adds whatever else it serves to the
// result.
func (o *Options) Config(g *genericapiserver.Config, scheme *runtime.Scheme, st *Stores) (*apiserver.Config, error) {
	callers, err := external.New(o.Identity, core.Scopes(), o.Clock, o.Metrics)
	if err != nil {
		return nil, err
	}
	g.Authentication.Authenticator = callers.Authenticator(g.Authentication.Authenticator)
	g.Authorization.Authorizer = callers.Authorizer(g.Authorization.Authorizer)
	seal, err := external.OpenSeal(o.sealFile())
	if err != nil {
		return nil, err
	}
	timelines, err := timeline.New(timeline.Options{
		Log: st.Events, Clock: o.Clock, WriteTimeout: o.StreamWriteTimeout, Registerer: o.Metrics,
	})
	if err != nil {
		return nil, err
	}
	gate, err := intake.New(intake.Options{Budget: o.BodyBudget.Value(), Metrics: o.Metrics})
	if err != nil {
		return nil, err
	}
	// A sixteenth of GOMEMLIMIT, from 16 MiB to 128 MiB.
	lists, err := apiserver.NewLists(intake.DefaultBudget()/2, o.Metrics)
	if err != nil {
		return nil, err
	}
	log := sparse.New(o.Clock)
	counter, err := panics.New(log, o.Metrics)
	if err != nil {
		return nil, err
	}
	access, err := models.New(models.Options{
		Loopback: g.LoopbackClientConfig, Host: o.Host, Authorizer: g.Authorization.Authorizer, Clock: o.Clock,
		Provider: o.Chat.Provider, Model: o.Chat.Model, RequireSecretHosts: o.RequireSecretHosts, Changed: st.Objects.Changed,
		Drain: o.ModelDrainTime,
	})
	if err != nil {
		return nil, err
	}
	ends := later.New(o.Clock)
	stored := core.NewStored()
	hook, err := o.codeHostHook(g, stored)
	if err != nil {
		return nil, err
	}
	secrets, err := o.taskSecrets(g.LoopbackClientConfig, callers)
	if err != nil {
		return nil, err
	}
	var namespaces namespaceUIDs
	hub, err := o.gateways(g, st, stored, secrets.secrets, namespaces.of)
	if err != nil {
		return nil, err
	}
	accounts, err := o.connections(g, st, stored, seal, secrets.secrets)
	if err != nil {
		return nil, err
	}
	effects, err := o.toolEffects(g, st, stored)
	if err != nil {
		return nil, err
	}
	doors, err := door.New(door.Options{Doors: append([]door.Door{hook.Door(), hub.Door(), accounts.Door()}, o.Doors...), Metrics: o.Metrics, Sparse: log})
	if err != nil {
		return nil, err
	}
	limits := modelrequest.New(modelrequest.Options{
		Readers: stored.ModelRequests(), Clock: o.Clock, Shares: o.Chat.Shares, Changed: st.Objects.Changed, Accounts: st.Accounts, Ends: ends,
	})
	keeper := models.NewKeeper(st.Recordings, log)
	requests := models.NewRequests(models.Meters{limits, models.Recorded{Ledger: st.Ledger, Ends: ends, Keeper: keeper}}, keeper) // what is refused is not recorded
	hosts, err := o.codeHosts(seal, secrets.secrets)
	if err != nil {
		return nil, err
	}
	tools, err := toolbox.New(toolbox.Options{
		Loopback: g.LoopbackClientConfig, MaxTasks: o.Chat.MaxTasksPerTurn, CallTimeout: o.Chat.ToolTimeout, Uncovered: callers.UncoveredTools, FindSecret: hosts.Find, Clock: o.Clock,
	})
	if err != nil {
		return nil, err
	}
	answering, err := chat.New(chat.Options{
		Limits: o.Chat, Models: access, Tools: tools, Turns: st.Turns, Sessions: session.Conversations{Stored: stored.Sessions, Transcripts: st.Transcripts, Clock: o.Clock, MaxBytes: o.Chat.MaxSessionBytes}, Clock: o.Clock, Metrics: o.Metrics, Meter: requests,
	})
	if err != nil {
		return nil, err
	}
	if err := o.keepUsage(g, st); err != nil {
		return nil, err
	}
	login, err := callers.Login(o.Identity)
	if err != nil {
		return nil, err
	}
	pages, err := console.New(console.Options{
		Off: !o.Console, Idle: o.ConsoleIdle, Life: o.ConsoleLife, Clock: o.Clock,
		Authenticate: g.Authentication.Authenticator, Audiences: g.Authentication.APIAudiences, Login: login,
	})
	if err != nil {
		return nil, err
	}
	return &apiserver.Config{
		Generic: g, Scheme: scheme, Intake: gate, Doors: doors, Lists: lists, Sparse: log, Panics: counter,
		Names: ownHost(g.SecureServing.Listener, certified(g.SecureServing)),
		Resources: core.All(core.Options{
			Options: secrets.apply(task.Options{
				Log: st.Events, Timelines: timelines, Blobs: st.Blobs, Recordings: st.Recordings, Recording: v1alpha1.RecordingMode(o.RecordingMode), Accounts: st.Accounts, Authorizer: g.Authorization.Authorizer, Clock: o.Clock,
				Loopback:  g.LoopbackClientConfig,
				LocalRuns: o.LocalRuns,
				Seal:      seal, CheckTask: callers.CheckTask, CheckTool: callers.CheckTool,
				Retention: retention.Policy{Ended: o.EventRetention, Failed: o.EventRetentionFailed, Recordings: o.RecordingRetention},
				TreeTasks: o.TreeTasks,
				CodeHosts: hosts, Linked: accounts, LinkedTransport: o.Connectors.Transport, Effects: effects,
			}),
			Stored:      stored,
			Transcripts: st.Transcripts,
			Memories:    st.Memories,
			Requests:    limits,
			Usage:       st.Ledger,
			ChangeLink:  st.Ledger.ChangeLink,
			Replayed:    hook.Wake,
			Gateways:    o.gatewayKinds(hub),
			Connectors:  o.connectorKinds(accounts),
			REST:        rest.Made,
			Turns:       st.Turns,
			Chat:        answering, ChatBytes: o.Chat.MaxSessionBytes, StreamTimeout: o.StreamWriteTimeout,
		}),
		Definitions: []common.GetOpenAPIDefinitions{openapi.GetOpenAPIDefinitions},
		Healthy:     st.Engine.Healthy,
		Ready:       map[string]func() error{"disk": st.Engine.Ready, "descriptors": descriptors},
		Health:      newHealth(o.Clock, g.LoopbackClientConfig, st.Engine.Ready),
		Namespaces: func(all corelisters.NamespaceLister) {
			keeper.SetNamespaces(all)
			namespaces.all.Store(&all)
			st.Ledger.SetNamespaceUID(func(name string) string { return string(namespaces.of(name)) })
		},
		StoreID: st.Engine.ID(),
		Console: pages.Wrap,
		Handlers: map[string]http.Handler{
			archive.Path: apiserver.NewBackup(apiserver.BackupOptions{Engine: st.Engine, Scheme: scheme, Clock: o.Clock, WriteTimeout: o.StreamWriteTimeout}),
		},
		Clock: o.Clock, Requests: requests,
		REST: &facade.Options{Clock: o.Clock, Metrics: o.Metrics, Origins: o.CORSOrigins, TokenHeaders: o.Identity.TokenHeaders(), External: callers.Peek},
		Compat: &compat.Options{
			Tools: tools, Limits: o.Chat, DropClientTools: o.CompatClientTools == ClientToolsDrop, Judge: stored.Judge().Call, Reach: compat.Reach{FetchAllow: o.WebFetchAllow, SearchURL: o.SearchURL, SearchKey: o.SearchKey, NotSelf: !o.LocalRuns},
			Models: access, Meter: requests, Metrics: o.Metrics, Origins: o.CORSOrigins, WriteTimeout: o.StreamWriteTimeout, Clock: o.Clock,
			TokenHeaders: o.Identity.TokenHeaders(), External: callers.Peek,
			Task: func(ctx context.Context, name string) (*compat.Run, error) {
				run, err := stored.Asking(ctx, name)
				if err != nil {
					return nil, err
				}
				return &compat.Run{Query: run.Query(), Meter: requests.Of(run.Meter()), Share: "task/" + string(run.UID)}, nil
			},
		},
	}, nil
}

// namespaceUIDs knows the UIDs of namespaces once the server can list them.
type namespaceUIDs struct {
	all atomic.Pointer[corelisters.NamespaceLister]
}

// of returns the UID of a namespace; empty if it is not known yet, or was deleted.
func (n *namespaceUIDs) of(name string) types.UID {
	all := n.all.Load()
	if all == nil {
		return ""
	}
	ns, err := (*all).Get(name)
	if err != nil {
		return ""
	}
	return ns.UID
}
