// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"errors"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/server/prmonitor"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

type createdMonitor struct {
	Name        string `json:"name"`
	MonitorName string `json:"monitor_name"`
	Namespace   string `json:"namespace"`
	Schedule    string `json:"schedule"`
	Message     string `json:"message"`
}

// createPRMonitor creates a task of type ai that reviews the pull requests of a repository again and again.
func (b *Box) createPRMonitor(ctx context.Context, a builtin.PRMonitorArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	agent, err := b.caller.CoreV1alpha1().Agents(b.Namespace).Get(ctx, a.AgentRef, metav1.GetOptions{})
	if err != nil {
		return nil, Explain(err)
	}
	t, err := prmonitor.Task(ctx, b.Namespace, &a, agent, b.o.FindSecret)
	if err != nil {
		if said, ok := errors.AsType[*tool.Error](err); ok {
			return nil, said
		}
		return nil, Explain(err)
	}
	t.Name, t.Labels = b.taskName(a.Name), maps.Clone(b.Labels)
	made, err := b.createTask(ctx, t)
	if err != nil {
		return nil, err
	}
	return createdMonitor{made.Name, a.Name, made.Namespace, a.Schedule, "the monitor was created; its runs are tasks of their own"}, nil
}
