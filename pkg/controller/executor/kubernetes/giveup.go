// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// giveUpSeconds is the deadline that is set for a Job that is given up, in seconds from its start.
const giveUpSeconds = 1

// giveUp ends a run that does not start or is unreachable. It makes the Job fail at once by a short deadline, which
// must then not be reported as the reason. The verdict is stored first, so that nobody sees the end without it.
func (e *Executor) giveUp(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, v *verdict) error {
	switch v.Reason {
	case v1alpha1.ReasonPodNotCreated:
		e.explain(ctx, v, job.Namespace, job.UID)
	case v1alpha1.ReasonStartTimedOut:
		e.explain(ctx, v, pod.Namespace, pod.UID)
	}
	e.remember(job.UID, v)
	err := e.patch(ctx, job, map[string]any{
		"metadata": map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion},
		"spec":     map[string]any{"activeDeadlineSeconds": giveUpSeconds},
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // certainly not done; after any other error it may have been done
		e.takeBack(job.UID, v)
	}
	return err
}

// remember keeps the verdict on a run until its Job is gone. The first one counts: a run may be given up again before the executor sees
// that it was, and the conflict of that must not take the reason away.
func (e *Executor) remember(uid types.UID, v *verdict) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.verdicts[uid] == nil {
		e.verdicts[uid] = v
	}
}

// takeBack removes a verdict that ended nothing.
func (e *Executor) takeBack(uid types.UID, v *verdict) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.verdicts[uid] == v {
		delete(e.verdicts, uid)
	}
}

// explain adds the last warnings about an object to a verdict. They are for people, so an error
// counts as no warning.
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

// annotate sets annotations of the Job, if it still has the same UID; nil values remove them.
func (e *Executor) annotate(ctx context.Context, job *batchv1.Job, annotations map[string]any) error {
	return e.patch(ctx, job, map[string]any{"metadata": map[string]any{"uid": job.UID, "annotations": annotations}})
}
