// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// sweep deletes transcripts and turns of sessions that no longer exist; see
// resource.Sweep.
func (r *Resource) sweep(ctx context.Context) {
	log := klog.FromContext(ctx)
	all := map[string]resource.Content{"transcripts": r.transcripts}
	if r.turns != nil {
		all["turns"] = r.turns
	}
	for what, content := range all {
		orphans, err := resource.Sweep(ctx, content, nil, r.stored)
		switch {
		case err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed):
			log.Error(err, "Cannot remove the "+what+" of deleted sessions; the next start removes them")
		case orphans > 0:
			log.Info("Removed "+what+" of deleted sessions", "sessions", orphans)
		}
	}
}
