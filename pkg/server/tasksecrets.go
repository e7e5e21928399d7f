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

// taskSecrets is what tasks need to get transaction tokens of their own, which are Secrets, and to use those of their repositories.
type taskSecrets struct {
	tokens  *external.TaskTokens
	secrets kubernetes.Interface
}

// taskSecrets makes a client for Secrets.
func (o *Options) taskSecrets(loopback *rest.Config, callers *external.Service) (taskSecrets, error) {
	t := taskSecrets{tokens: callers.TaskTokens()}
	host := rest.CopyConfig(cmp.Or(o.Host, loopback))
	host.QPS = -1 // requests of callers are limited where they arrive
	var err error
	if t.secrets, err = kubernetes.NewForConfig(host); err != nil {
		return t, fmt.Errorf("client of the host: %w", err)
	}
	return t, nil
}

// apply completes the options of tasks.
func (t taskSecrets) apply(o task.Options) task.Options {
	o.Secrets = t.secrets
	if t.tokens != nil {
		o.Transactions = t.tokens
	}
	return o
}
