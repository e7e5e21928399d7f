// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/registry/core/tooleffect"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// toolEffects makes the ledger of calls of tools that change something elsewhere. While the server runs, it ends the effects that nobody
// else ends: first those whose request was interrupted when the server last stopped.
func (o *Options) toolEffects(g *genericapiserver.Config, st *Stores, stored *core.Stored) (*tooleffect.Effects, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, errors.Join(errors.New("the name of this machine is not known"), err)
	}
	effects := tooleffect.New(tooleffect.Options{
		Stored: stored.Effects, Responses: st.Blobs, Clock: o.Clock, Holder: fmt.Sprintf("%s/%d", name, os.Getpid()),
		TaskOf: func(ctx context.Context, namespace, name string) (*v1alpha1.Task, error) {
			return stored.Tasks.Get(resource.AsServer(ctx, namespace), name)
		},
	})
	return effects, g.AddPostStartHook("platform-tool-effects", func(c genericapiserver.PostStartHookContext) error {
		go effects.Run(c) // ends with the server
		return nil
	})
}
