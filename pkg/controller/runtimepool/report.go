// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimepool

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
)

// maxMessage is how long status.message may be, in bytes.
const maxMessage = 1024

// unmanaged reports that no task uses a pool, because people made it.
func unmanaged(p *v1alpha1.RuntimePool) {
	st := &p.Status
	st.ObservedGeneration, st.Capacity = p.Generation, nil
	st.Lifecycle, st.Admission = v1alpha1.PoolStopped, v1alpha1.PoolAdmissionClosed
	st.Message = "the controller did not make this pool, so no task uses it; pools are made when tasks need them"
	set(p, v1alpha1.ConditionAdmissionReady, metav1.ConditionFalse, v1alpha1.ReasonNotManaged, st.Message)
}

// report writes what is known of a pool into its status. It is current if tasks go to it. missing says why its program cannot be run.
func (c controller) report(p *v1alpha1.RuntimePool, use *agentprogram.PoolUse, current bool, missing string) {
	st := &p.Status
	st.ObservedGeneration, st.Capacity = p.Generation, use.RuntimePoolUse.DeepCopy()
	var reason string
	st.Lifecycle, st.Admission, reason, st.Message = state(use, current, missing)
	st.Message = clip.Marked(st.Message, maxMessage)
	open := metav1.ConditionFalse
	if st.Admission == v1alpha1.PoolAdmissionAccepting {
		open = metav1.ConditionTrue
	}
	set(p, v1alpha1.ConditionAdmissionReady, open, reason, st.Message)
	for _, check := range checks() {
		if check.pods && !c.Pods {
			continue
		}
		status, reason, message := check.of(use)
		set(p, check.condition, status, reason, message)
	}
}

// state returns where a pool is, whether it takes tasks, and why.
func state(use *agentprogram.PoolUse, current bool, missing string) (v1alpha1.RuntimePoolLifecycle, v1alpha1.RuntimePoolAdmission, string, string) {
	quota := use.Waits[v1alpha1.ReasonQuotaExceeded]
	switch {
	case missing != "" && use.Resident == 0:
		return v1alpha1.PoolStopped, v1alpha1.PoolAdmissionClosed, v1alpha1.ReasonRuntimeNotAvailable, missing
	case missing != "":
		return v1alpha1.PoolDraining, v1alpha1.PoolAdmissionDraining, v1alpha1.ReasonRuntimeNotAvailable, missing
	case !current:
		return v1alpha1.PoolDraining, v1alpha1.PoolAdmissionDraining, v1alpha1.ReasonDraining, "the program of the agent was changed: tasks that run go on here, and others use another pool"
	case quota != "":
		return v1alpha1.PoolServing, v1alpha1.PoolAdmissionClosed, v1alpha1.ReasonQuotaExceeded, "no further task is admitted while one waits: " + quota
	case use.Ended.Reason == v1alpha1.ReasonRuntimeNotAvailable:
		return v1alpha1.PoolDegraded, v1alpha1.PoolAdmissionAccepting, v1alpha1.ReasonAccepting, "the last task could not use the agent's program: " + use.Ended.Message
	case use.Tasks == 0:
		return v1alpha1.PoolStopped, v1alpha1.PoolAdmissionAccepting, v1alpha1.ReasonAccepting, "no task uses the pool now; the next one starts a session"
	case use.Queued > 0:
		return v1alpha1.PoolServing, v1alpha1.PoolAdmissionAccepting, v1alpha1.ReasonAccepting, fmt.Sprintf("%d sessions, of which %d work; %d tasks wait", use.Resident, use.Running, use.Queued)
	}
	return v1alpha1.PoolServing, v1alpha1.PoolAdmissionAccepting, v1alpha1.ReasonAccepting, fmt.Sprintf("%d sessions, of which %d work", use.Resident, use.Running)
}

// check is a condition that what tasks of the pool wait for decides.
type check struct {
	condition string
	// reasons are those for which a task may wait because of it, and word is in the message of one that does, if set.
	reasons []string
	word    string
	// pods is set for what only Pods have.
	pods bool
}

func checks() []check {
	return []check{
		{condition: v1alpha1.ConditionQuotaReady, reasons: []string{v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonNamespaceTaskLimitReached}},
		{condition: v1alpha1.ConditionSchedulingReady, reasons: []string{v1alpha1.ReasonUnschedulable}, pods: true},
		{condition: v1alpha1.ConditionPodSecurityReady, reasons: []string{v1alpha1.ReasonPodNotCreated}, word: "PodSecurity", pods: true},
		{condition: v1alpha1.ConditionRolloutReady, reasons: []string{v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerConfigInvalid}},
	}
}

// of returns what the tasks of a pool show about the condition.
func (c check) of(use *agentprogram.PoolUse) (metav1.ConditionStatus, string, string) {
	for _, reason := range c.reasons {
		if message, ok := use.Waits[reason]; ok && strings.Contains(message, c.word) {
			return metav1.ConditionFalse, reason, cmp.Or(message, "a task waits for it")
		}
	}
	if c.condition == v1alpha1.ConditionRolloutReady && use.Ended.Reason == v1alpha1.ReasonRuntimeNotAvailable {
		return metav1.ConditionFalse, use.Ended.Reason, use.Ended.Message
	}
	if use.Running > 0 {
		return metav1.ConditionTrue, v1alpha1.ReasonObserved, "a task of the pool is at work"
	}
	return metav1.ConditionUnknown, v1alpha1.ReasonNotChecked, "no task of the pool is at work"
}

func set(p *v1alpha1.RuntimePool, typ string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: typ, Status: status, Reason: reason, Message: clip.Marked(message, maxMessage), ObservedGeneration: p.Generation,
	})
}
