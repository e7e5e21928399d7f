// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec

import (
	"cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Names returns the variables that name the agent, the parent and the session of a task to its programs, in a fixed order. One is
// empty where the task has none.
func Names(t *v1alpha1.Task) [][2]string {
	var agent, session string
	if t.Spec.AgentRef != nil {
		agent = t.Spec.AgentRef.Name
	}
	if t.Spec.SessionRef != nil {
		session = t.Spec.SessionRef.Name
	}
	parent := cmp.Or(t.Annotations[v1alpha1.AnnotationParentTaskName], t.Labels[v1alpha1.LabelParentTask])
	return [][2]string{{EnvAgentName, agent}, {EnvParentTask, parent}, {EnvSessionName, session}}
}
