// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"

	"github.com/platform-ai/platform/pkg/server/standalone"
)

type (
	// Options configure a server.
	Options = standalone.Options
	// Info is what a server that is ready says of itself.
	Info = standalone.Info
)

// NewOptions returns the options of the program without flags.
func NewOptions() *Options { return standalone.NewOptions() }

// Run runs a server as the program does, until ctx ends; Start is for tests that need a server which is ready.
func Run(ctx context.Context, o Options) error { return standalone.Run(ctx, o) }
