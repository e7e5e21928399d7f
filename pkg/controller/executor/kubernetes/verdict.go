// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// verdict is why a run that did not start or became unreachable was ended. It is kept in the executor's memory only,
// because others can also write whatever the executor could write to the Job.
type verdict struct {
	// Reason is one of the reasons of the API that an executor reports about its host.
	Reason string
	// Message is redacted text for people.
	Message string
}

// verdictOn returns why this executor gave the run up; nil if it did not.
func (e *Executor) verdictOn(job *batchv1.Job) *verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.verdicts[job.UID]
}

// unreachable returns the verdict on a run that was given up because its node does not answer. After a restart of the
// controller it is recognised by the deadline that giveUp sets and by the Pod itself. A run that did not start leaves
// no such sign; the condition WaitingToStart of its Task then says what it waited for.
func unreachable(job *batchv1.Job, pod *corev1.Pod) *verdict {
	f, limit := failure(job), job.Spec.ActiveDeadlineSeconds
	if pod == nil || limit == nil || *limit > giveUpSeconds || f == nil || f.Reason != batchv1.JobReasonDeadlineExceeded {
		return nil
	}
	since, ok := unreachableSince(pod)
	if !ok {
		return nil
	}
	return nodeLost(pod, since)
}

func nodeLost(pod *corev1.Pod, since time.Time) *verdict {
	message := fmt.Sprintf("node %s has not answered since %s", pod.Spec.NodeName, since.UTC().Format(time.RFC3339))
	return &verdict{Reason: v1alpha1.ReasonNodeLost, Message: message}
}

// begun reports whether the worker's container was ever started.
func begun(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	c := workerStatus(pod)
	return c != nil && (c.State.Running != nil || c.State.Terminated != nil)
}

// obstacle returns what keeps a run from starting, as far as its Pod shows. It is hopeless if
// waiting cannot change it.
func obstacle(job *batchv1.Job, pod *corev1.Pod, refusal string) (v *verdict, hopeless bool) {
	if pod == nil {
		return noPod(job, refusal), false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &verdict{Reason: v1alpha1.ReasonUnschedulable, Message: "no node takes the pod: " + clean(cmp.Or(c.Message, c.Reason))}, false
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if w := list[i].State.Waiting; w != nil {
				if v, hopeless := waiting(&list[i], w); v != nil {
					return v, hopeless
				}
			}
		}
	}
	return &verdict{Reason: v1alpha1.ReasonStartTimedOut, Message: fmt.Sprintf("pod %s did not start in time", pod.Name)}, false
}

// noPod says why there is no pod, as far as the cluster reported it. The text before the part about the quota
// is dropped: it names a pod, with a different name each time.
func noPod(job *batchv1.Job, refusal string) *verdict {
	v := &verdict{Reason: v1alpha1.ReasonPodNotCreated, Message: fmt.Sprintf("no pod of Job %s could be created", job.Name)}
	if at := strings.Index(refusal, "exceeded quota"); at >= 0 {
		return &verdict{Reason: v1alpha1.ReasonQuotaExceeded, Message: "the quota of the namespace leaves no room: " + clean(refusal[at:])}
	}
	if refusal != "" {
		v.Message += ": " + clean(refusal)
	}
	return v
}

// waiting says what a container waits for, unless that is a usual step of a start.
func waiting(c *corev1.ContainerStatus, w *corev1.ContainerStateWaiting) (v *verdict, hopeless bool) {
	switch w.Reason {
	case "InvalidImageName", "ErrImageNeverPull":
		hopeless = true
		fallthrough
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return &verdict{Reason: v1alpha1.ReasonImagePullFailed, Message: fmt.Sprintf("image %s: %s: %s", c.Image, w.Reason, clean(w.Message))}, hopeless
	case "CreateContainerConfigError", "CreateContainerError", "PreCreateHookError", "RunContainerError":
		return &verdict{Reason: v1alpha1.ReasonContainerConfigInvalid, Message: fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, clean(w.Message))}, false
	}
	return nil, false
}
