// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"sync/atomic"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// maxKeeping is how many requests are recorded at the same time. Further ones wait, and so do their answers, so nothing piles up.
const maxKeeping = 4

// Keeper records what chats and clients of the vendors' APIs say, in namespaces that want it (v1alpha1.LabelRecordRequests). It does so
// after the answer, because removing secrets from a long conversation takes time.
type Keeper struct {
	store      *recording.Store
	namespaces atomic.Pointer[corelisters.NamespaceLister]
	slots      chan struct{} // holds one element for each request that is being recorded
	log        *sparse.Log
}

// NewKeeper returns a Keeper that records nothing until SetNamespaces.
func NewKeeper(store *recording.Store, log *sparse.Log) *Keeper {
	return &Keeper{store: store, slots: make(chan struct{}, maxKeeping), log: log}
}

// SetNamespaces sets what reads the labels of namespaces.
func (k *Keeper) SetNamespaces(all corelisters.NamespaceLister) { k.namespaces.Store(&all) }

// mode returns how much of the requests of a namespace is recorded.
func (k *Keeper) mode(namespace string) v1alpha1.RecordingMode {
	if k == nil {
		return v1alpha1.RecordingOff
	}
	all := k.namespaces.Load()
	if all == nil {
		return v1alpha1.RecordingOff
	}
	ns, err := (*all).Get(namespace)
	if err != nil {
		return v1alpha1.RecordingOff // not known yet, or deleted
	}
	switch mode := v1alpha1.RecordingMode(ns.Labels[v1alpha1.LabelRecordRequests]); mode {
	case v1alpha1.RecordingFull, v1alpha1.RecordingDigests:
		return mode
	default:
		return v1alpha1.RecordingOff
	}
}

// keep records a request that has ended.
func (k *Keeper) keep(ctx context.Context, mode v1alpha1.RecordingMode, c *ledger.Call, said *Said) {
	k.slots <- struct{}{}
	go func() { // ends with the commit
		defer func() { <-k.slots }()
		r := said.Request()
		if r == nil {
			return
		}
		r.Namespace, r.ID, r.At = c.Of()
		r.Mode, r.Answer = mode, said.Answer()
		switch err := k.store.KeepRequest(r); {
		case errors.Is(err, engine.ErrFull):
			k.log.Error(ctx, err, "What was said to a model is not recorded")
		case err != nil:
			klog.FromContext(ctx).Error(err, "What was said to a model is not recorded")
		}
	}()
}

// drain waits until everything that ended is recorded.
func (k *Keeper) drain() {
	for range maxKeeping {
		k.slots <- struct{}{}
	}
	for range maxKeeping {
		<-k.slots
	}
}
