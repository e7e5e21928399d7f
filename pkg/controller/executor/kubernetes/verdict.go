// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// verdict is why a run was ended that did not come to start, or is out of reach.
type verdict struct {
	// Reason is one of the reasons of the API that come from where a run is.
	Reason string `json:"reason"`
	// Message is redacted text for people.
	Message string `json:"message"`
}

// verdictOf is the verdict that was written to the Job; nil for none.
func verdictOf(job *batchv1.Job) *verdict {
	v := &verdict{}
	if text, ok := job.Annotations[annotationVerdict]; !ok || json.Unmarshal([]byte(text), v) != nil {
		return nil
	}
	return v
}

// begun tells whether the worker's container was ever started.
func begun(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	c := workerStatus(pod)
	return c != nil && (c.State.Running != nil || c.State.Terminated != nil)
}

// obstacle is what keeps a run from starting, as far as its Pod tells. Hopeless
// is what no waiting can change.
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

// noPod is why there is no pod, as far as the cluster said. Text before that on the quota names a pod, which is
// another one each time.
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

// waiting says what a container waits for, where that is no usual step of a start.
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

// giveUp ends a run that does not come to start or is out of reach. Verdict and end are one patch:
// the Job fails at once by its deadline, which then is not the reason.
func (e *Executor) giveUp(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, v *verdict) error {
	switch v.Reason {
	case v1alpha1.ReasonPodNotCreated:
		e.explain(ctx, v, job.Namespace, job.UID)
	case v1alpha1.ReasonStartTimedOut:
		e.explain(ctx, v, pod.Namespace, pod.UID)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("verdict: %w", err)
	}
	return e.patch(ctx, job, map[string]any{
		"metadata": map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion, "annotations": map[string]any{annotationVerdict: string(text)}},
		"spec":     map[string]any{"activeDeadlineSeconds": 1},
	})
}

// explain adds the last warnings about an object to a verdict. They are only
// told to people, so an error is the same as none.
func (e *Executor) explain(ctx context.Context, v *verdict, namespace string, uid types.UID) {
	list, err := e.opts.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}.String(),
	})
	if err != nil {
		return
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return eventTime(&a).Compare(eventTime(&b)) })
	said := ""
	for i := range list.Items {
		ev := &list.Items[i]
		switch {
		case strings.HasPrefix(ev.Reason, "FailedMount"), strings.HasPrefix(ev.Reason, "FailedAttach"):
			v.Reason = v1alpha1.ReasonMountFailed
		case ev.Reason == "InspectFailed", strings.HasPrefix(ev.Message, "Failed to pull image"):
			v.Reason = v1alpha1.ReasonImagePullFailed
		case ev.Reason == "Failed", strings.Contains(ev.Reason, "DNS"):
			continue // repeats another one, or has nothing to do with it
		}
		said = ev.Message
	}
	if said = clean(said); said != "" && !strings.Contains(v.Message, said) {
		v.Message += ": " + said
	}
}

func eventTime(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// patch merges a change into the Job.
func (e *Executor) patch(ctx context.Context, job *batchv1.Job, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("patch of Job %s: %w", job.Name, err)
	}
	if _, err := e.opts.Client.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch Job %s: %w", job.Name, err)
	}
	return nil
}

// annotate sets annotations of the Job of that UID; nil values remove them.
func (e *Executor) annotate(ctx context.Context, job *batchv1.Job, annotations map[string]any) error {
	return e.patch(ctx, job, map[string]any{"metadata": map[string]any{"uid": job.UID, "annotations": annotations}})
}
