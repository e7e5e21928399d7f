// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec

import (
	"cmp"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Names returns the variables that name the agent, the parent and the session of a task to its programs, in a fixed order. One is
// empty where the task has none. A task that continues another one has those that name it, too.
func Names(t *v1alpha1.Task) [][2]string {
	var agent, session string
	if t.Spec.AgentRef != nil {
		agent = t.Spec.AgentRef.Name
	}
	if t.Spec.SessionRef != nil {
		session = t.Spec.SessionRef.Name
	}
	parent := cmp.Or(t.Annotations[v1alpha1.AnnotationParentTaskName], t.Labels[v1alpha1.LabelParentTask])
	names := [][2]string{{EnvAgentName, agent}, {EnvParentTask, parent}, {EnvSessionName, session}}
	if prior := t.Spec.PriorTaskRef; prior != nil {
		names = append(names, [2]string{EnvPriorTask, prior.Name}, [2]string{EnvPriorTaskNamespace, t.Namespace},
			[2]string{EnvPriorTaskDigest, strings.TrimPrefix(t.Status.PriorChangesDigest, "sha256:")})
	}
	return names
}
