// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/server/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	kinds "github.com/platform-ai/platform/pkg/server/registry/core/gateway"
)

// Gateways are the settings of gateways to chat systems.
type Gateways struct {
	// Enabled accepts events and delivers answers.
	Enabled bool
	// Limits bound what gateways may use.
	Limits gateway.Limits
	// Allow lists host:port of adapters that may be reached although their addresses are not public.
	Allow []string
	// BatchSize is how many sessions are worked on at a time.
	BatchSize int
}

// maxBatch is the maximum of Gateways.BatchSize.
const maxBatch = 100

// AddFlags adds the flags of gateways.
func (g *Gateways) AddFlags(fs *pflag.FlagSet) {
	l, err := gateway.Limits{}.WithDefaults()
	if err != nil { // the defaults are right
		panic(err)
	}
	fs.BoolVar(&g.Enabled, "gateway-enabled", g.Enabled, "accept events of gateways and deliver answers; if false, events are refused (503) and nothing is sent")
	fs.IntVar(&g.Limits.Pending, "gateway-pending-per-session", l.Pending, "how many events of gateways may wait in one session; more are dead-lettered")
	fs.IntVar(&g.Limits.Records, "gateway-max-records-per-gateway", l.Records, "how many events of one gateway may be unanswered; more are refused (429). What has ended is kept for --gateway-terminal-retention, however much it is")
	fs.IntVar(&g.Limits.Rejected, "gateway-max-rejected-records-per-gateway", l.Rejected, "how many rejected events of one gateway are kept, the newest")
	fs.DurationVar(&g.Limits.EventExpiry, "gateway-event-expiry", l.EventExpiry, "how long after it was accepted an event of a gateway may be answered, and how long an answer may be delivered")
	fs.DurationVar(&g.Limits.Retention, "gateway-terminal-retention", l.Retention, "how long events and deliveries of gateways are kept after they ended; a repeated event is recognised afterwards, too")
	fs.DurationVar(&g.Limits.DeliveryTimeout, "gateway-delivery-timeout", l.DeliveryTimeout, "how long an adapter may take to answer")
	fs.Int32Var(&g.Limits.MaxAttempts, "gateway-delivery-max-attempts", l.MaxAttempts, "how often an answer is sent to an adapter before it is dead-lettered; while the adapter cannot be reached nothing is sent")
	fs.DurationVar(&g.Limits.Lease, "gateway-claim-lease", l.Lease, "after how long what an interrupted server or controller was doing is done again, at least twice --gateway-delivery-timeout")
	fs.DurationVar(&g.Limits.Poll, "gateway-poll-interval", l.Poll, "how long an adapter that could not be reached is left alone")
	fs.IntVar(&g.BatchSize, "gateway-batch-size", defaultBatch, fmt.Sprintf("how many sessions of gateways are worked on at a time, at most %d", maxBatch))
	fs.StringSliceVar(&g.Allow, "gateway-allow", g.Allow, "host:port of adapters of gateways that may be reached although it is not public; repeatable")
}

const defaultBatch = 25

// complete checks the settings.
func (g *Gateways) complete() error {
	if _, err := g.Limits.WithDefaults(); err != nil {
		return fmt.Errorf("--gateway-…: %w", err)
	}
	if g.BatchSize < 0 || g.BatchSize > maxBatch {
		return fmt.Errorf("--gateway-batch-size: must be from 1 to %d", maxBatch)
	}
	return nil
}

// gateways makes the gateways of a server. uid returns the UID of a namespace.
func (o *Options) gateways(g *genericapiserver.Config, st *Stores, stored *core.Stored, host kubernetes.Interface, uid func(name string) types.UID) (*gateway.Hub, error) {
	allow, err := egress.ParseAllow(strings.Join(o.Gateways.Allow, ","))
	if err != nil {
		return nil, fmt.Errorf("--gateway-allow: %w", err)
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, errors.Join(errors.New("the name of this machine is not known"), err)
	}
	hub, err := gateway.New(gateway.Options{
		Off: !o.Gateways.Enabled, Limits: o.Gateways.Limits, Stored: stored.Gateways, Sessions: stored.Sessions, Transcripts: st.Transcripts, Inbound: st.Inbound,
		Engine: st.Engine, Host: host, Loopback: g.LoopbackClientConfig, Services: o.Host != nil, NamespaceUID: uid, Allow: allow, Holder: fmt.Sprintf("%s/%d", name, os.Getpid()), Clock: o.Clock, Metrics: o.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return hub, g.AddPostStartHook("platform-gateways", func(c genericapiserver.PostStartHookContext) error {
		go hub.Sweep(c) // ends with the server
		return nil
	})
}

// gatewayKinds returns what the kinds of gateways need of the server.
func (o *Options) gatewayKinds(hub *gateway.Hub) kinds.Options {
	l := o.Gateways.Limits
	return kinds.Options{
		Retention: l.Retention, Expiry: l.EventExpiry, MaxAttempts: l.MaxAttempts, Probe: hub.Probe, Send: hub.Send, Replay: hub.Replay, Decide: hub.Decide,
		Forget: func(ctx context.Context, g *v1alpha1.Gateway) {
			if err := hub.Forget(ctx, g); err != nil {
				klog.FromContext(ctx).Error(err, "What is remembered of a deleted gateway is not removed; the next start removes it", "gateway", klog.KObj(g))
			}
		},
	}
}
