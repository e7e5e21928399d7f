// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// listPage is how many sessions are read at a time.
const listPage = 500

// sweep removes transcripts of sessions that no longer exist, because a crash
// came between their removal and that of their messages. It first takes down
// which there are and then lists the sessions: a message is only ever stored for
// a session that exists, and a UID never comes back.
func (r *Resource) sweep(ctx context.Context, sessions rest.Lister) {
	log := klog.FromContext(ctx)
	orphans, err := r.removeOrphans(ctx, sessions)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed):
		log.Error(err, "Transcripts of deleted sessions stay until the next start")
	case orphans > 0:
		log.Info("Removed transcripts of deleted sessions", "sessions", orphans)
	}
}

func (r *Resource) removeOrphans(ctx context.Context, sessions rest.Lister) (orphans int, err error) {
	var owners []types.UID
	err = r.transcripts.Owners(ctx, func(uid types.UID) error {
		owners = append(owners, uid)
		return nil
	})
	if err != nil || len(owners) == 0 {
		return 0, err
	}
	known, err := uids(ctx, sessions)
	if err != nil {
		return 0, err
	}
	for _, uid := range owners {
		if known[uid] {
			continue
		}
		if err := r.transcripts.Delete(ctx, uid); err != nil {
			return orphans, err
		}
		orphans++
	}
	return orphans, nil
}

// uids lists the UIDs of all sessions.
func uids(ctx context.Context, sessions rest.Lister) (map[types.UID]bool, error) {
	all := map[types.UID]bool{}
	for opts := (&internalversion.ListOptions{Limit: listPage}); ; {
		obj, err := sessions.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		list, ok := obj.(*v1alpha1.SessionList)
		if !ok {
			return nil, fmt.Errorf("list of sessions gave %T", obj)
		}
		for i := range list.Items {
			all[list.Items[i].UID] = true
		}
		if list.Continue == "" {
			return all, nil
		}
		opts.Continue = list.Continue
	}
}
