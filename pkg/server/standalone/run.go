// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"os"

	"github.com/platform-ai/platform/pkg/memlimit"
	"github.com/platform-ai/platform/pkg/server"
)

// Run runs a server until ctx ends; then it returns nil after everything has stopped.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
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
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	st, err := o.OpenStores(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = nil // asked to stop while it waited
		}
		return err
	}
	server.GiveBackMemory(ctx, o.Clock, st.Objects.Dropped)
	return server.Run(ctx, st, func(ctx context.Context) (*server.Process, error) {
		a, err := o.assemble(ctx, st)
		if err != nil {
			return nil, err
		}
		a.Work = func(ctx context.Context) error {
			if err := announce(o.Out, a.info, o.Clock.Since(began)); err != nil {
				return err
			}
			if o.Ready != nil {
				if err := o.Ready(ctx, a.info); err != nil {
					return err
				}
			}
			return o.control(ctx, a)
		}
		return a.Process, nil
	})
}
