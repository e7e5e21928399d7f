// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
)

// taskTokens is what tasks need to get transaction tokens of their own. The zero value gives them none.
type taskTokens struct {
	tokens  *external.TaskTokens
	secrets kubernetes.Interface
}

// taskTokens makes a client for Secrets if a token service is configured.
func (o *Options) taskTokens(loopback *rest.Config, callers *external.Service) (taskTokens, error) {
	t := taskTokens{tokens: callers.TaskTokens()}
	if t.tokens == nil {
		return t, nil
	}
	host := rest.CopyConfig(cmp.Or(o.Host, loopback))
	host.QPS = -1 // requests of callers are limited where they arrive
	var err error
	if t.secrets, err = kubernetes.NewForConfig(host); err != nil {
		return t, fmt.Errorf("client of the host: %w", err)
	}
	return t, nil
}

// apply completes the options of tasks.
func (t taskTokens) apply(o task.Options) task.Options {
	if t.tokens != nil {
		o.Transactions, o.Secrets = t.tokens, t.secrets
	}
	return o
}
