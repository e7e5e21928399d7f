// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/workerpod"
)

// overdueAfter is how long after the end of its grace period a pod may end before its node is
// considered lost. It allows for clocks that differ.
const overdueAfter = 30 * time.Second

// assessment is the state of a run at one moment, as concluded from its Job and its Pod.
type assessment struct {
	state executor.State
	// again is the time after which to assess the run again if nothing happens; 0 means never.
	again time.Duration
	// verdict says why the run has to be ended; nil if it need not be.
	verdict *verdict
	// pod is the Pod that was accepted, nil if there is none. refused says why others were not accepted.
	pod     *corev1.Pod
	refused []error
}

// assess concludes the state of a run from a Job and the Pods that claim to belong to it.
func (e *Executor) assess(job *batchv1.Job, pods []corev1.Pod) assessment {
	if last, ok := e.lastPods.Get(job.UID); ok {
		if pod, ok := last.(*corev1.Pod); ok && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == pod.UID }) {
			pods = append(slices.Clip(pods), *pod)
		}
	}
	pod, refused := workerpod.First(job, pods)
	a := assess(job, pod, e.verdictOn(job), e.refusal(job), e.opts.Clock.Now(), patience{start: e.opts.StartTimeout, unreachable: e.opts.UnreachableTimeout})
	a.pod, a.refused = pod, refused
	if pod != nil {
		a.state.PodName, a.state.PodUID = pod.Name, pod.UID
	} else if len(refused) > 0 && a.state.Phase == executor.Running {
		v := &verdict{Reason: v1alpha1.ReasonPodNotAccepted, Message: clean(refused[0].Error())}
		a.state.Waiting = executor.Waiting{Reason: v.Reason, Message: v.Message}
		if a.verdict != nil {
			a.verdict = v
		}
	}
	return a
}

// patience is how long a run may take to start, and how long its node may fail to answer.
type patience struct{ start, unreachable time.Duration }

// assess concludes the state of a run from a Job and its Pod. given says why the executor gave the run up, nil if it
// did not. refusal is the most recent reason why the Job's Pod could not be created, empty if there is none.
func assess(job *batchv1.Job, pod *corev1.Pod, given *verdict, refusal string, now time.Time, p patience) assessment {
	s := executor.State{ID: runID(job), UID: job.UID, Phase: executor.Running, StartedAt: job.CreationTimestamp.Time}
	if pod != nil && pod.Status.StartTime != nil {
		s.StartedAt = pod.Status.StartTime.Time
	}
	given = cmp.Or(given, unreachable(job, pod))
	switch {
	case job.Annotations[annotationStopped] != "":
		s.Cause = executor.CauseStopped
	case given == nil && failure(job) != nil && failure(job).Reason == batchv1.JobReasonDeadlineExceeded:
		s.Cause = executor.CauseDeadline
	}
	switch {
	case over(job, pod, now):
		conclude(&s, job, pod, given, now)
	case pod != nil && pod.DeletionTimestamp != nil:
		if left := endOf(pod).Sub(now); left > 0 {
			return assessment{state: s, again: left}
		}
		s.Phase, s.Reason, s.FinishedAt = executor.Lost, v1alpha1.ReasonNodeLost, now
		s.Message = fmt.Sprintf("node %s does not answer: pod %s should have ended at %s", pod.Spec.NodeName, pod.Name, graceEnd(pod).UTC().Format(time.RFC3339))
	case given == nil && job.DeletionTimestamp == nil && failure(job) == nil:
		return look(s, job, pod, refusal, now, p)
	}
	s.NeverBegan = s.Phase != executor.Running && neverBegan(job, pod, given)
	if s.Phase != executor.Running && given != nil && !s.Succeeded() {
		s.Reason, s.Message = given.Reason, given.Message
		if given.Reason != v1alpha1.ReasonNodeLost {
			s.Phase = executor.Exited // it never ran
		}
	}
	return assessment{state: s}
}

// look assesses a run that is not over: it proceeds normally, it waits for something, or it has
// to be ended because it waited too long.
func look(s executor.State, job *batchv1.Job, pod *corev1.Pod, refusal string, now time.Time, p patience) assessment {
	if begun(pod) {
		since, ok := unreachableSince(pod)
		if !ok {
			return assessment{state: s}
		}
		return patient(s, nodeLost(pod, since), since.Add(p.unreachable).Sub(now))
	}
	since := job.CreationTimestamp.Time
	if pod != nil {
		since = pod.CreationTimestamp.Time // the wait for the quota does not count as waiting for the pod
		switch from, to := preparedFrom(pod); {
		case !to.IsZero():
			since = to
		case !from.IsZero():
			return patient(s, notPrepared(pod), from.Add(prepareTime).Sub(now))
		}
	}
	v, hopeless := obstacle(job, pod, refusal)
	s.Waiting = executor.Waiting{Reason: v.Reason, Message: v.Message}
	switch {
	case hopeless:
		return assessment{state: s, verdict: v}
	case v.Reason == v1alpha1.ReasonQuotaExceeded: // a change of the Job or its Pod will trigger the next look
		return assessment{state: s}
	}
	a := patient(s, v, since.Add(p.start).Sub(now))
	if v.Reason == v1alpha1.ReasonStartTimedOut || pod == nil && refusal == "" { // nothing is wrong so far
		a.state.Waiting = executor.Waiting{}
		soon := since.Add(slowStart).Sub(now)
		switch {
		case soon > 0:
			a.again = min(a.again, soon)
		case pod != nil:
			a.state.Waiting = slow(pod)
		}
	}
	return a
}

// slowStart is how long an ordinary start takes at most. The status shows a start that takes longer.
const slowStart = 10 * time.Second

// slow says what a pod that takes long to start is waiting for.
func slow(pod *corev1.Pod) executor.Waiting {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse {
			return executor.Waiting{Reason: v1alpha1.ReasonMounting, Message: fmt.Sprintf("volumes and network of pod %s are being set up", pod.Name)}
		}
	}
	return executor.Waiting{Reason: v1alpha1.ReasonImagePulling, Message: fmt.Sprintf("the images of pod %s are being pulled", pod.Name)}
}

// patient sets the verdict v, which gives the run up, if no time is left.
func patient(s executor.State, v *verdict, left time.Duration) assessment {
	if left <= 0 {
		return assessment{state: s, verdict: v}
	}
	return assessment{state: s, again: left}
}

// neverBegan reports whether the worker of a run that is over is known not to have begun.
func neverBegan(job *batchv1.Job, pod *corev1.Pod, given *verdict) bool {
	switch {
	case given != nil:
		return given.Reason != v1alpha1.ReasonNodeLost
	case pod != nil:
		from, _ := preparedFrom(pod)
		return !begun(pod) && from.IsZero() && (workerStatus(pod) != nil || pod.Spec.NodeName == "")
	}
	f := failure(job)
	return f != nil && f.Reason == batchv1.JobReasonDeadlineExceeded && job.Status.Failed == 0 && terminating(job) == 0
}

// unreachableSince returns when the cluster noticed that the pod's node does not answer. The
// cluster then sets the condition Ready of the pod to false although its container is ready; a
// working kubelet would set it to true again. If all nodes of a cluster are gone, for example
// its only one, the cluster does no more than that.
func unreachableSince(pod *corev1.Pod) (time.Time, bool) {
	c := workerStatus(pod)
	if c == nil || c.State.Running == nil || !c.Ready {
		return time.Time{}, false
	}
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionFalse {
			return cond.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// endOf returns when a pod that is being deleted must have ended. A pod that is known to be
// unreachable gets no more than its grace period.
func endOf(pod *corev1.Pod) time.Time {
	if _, ok := unreachableSince(pod); ok {
		return graceEnd(pod)
	}
	return graceEnd(pod).Add(overdueAfter)
}

// graceEnd returns when the grace period of a pod that is being deleted ends. The part of it that is for a delivery does
// not count if the pod has ended or is known to be unreachable.
func graceEnd(pod *corev1.Pod) time.Time {
	end := pod.DeletionTimestamp.Time
	_, silent := unreachableSince(pod)
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace > deliverySeconds && (silent || ended(pod)) {
		end = end.Add(-deliverySeconds * time.Second)
	}
	return end
}

// over reports whether nothing of the run is alive. If somebody deletes a pod, it ends before
// its Job says why, so over waits a while for the Job.
func over(job *batchv1.Job, pod *corev1.Pod, now time.Time) bool {
	switch {
	case condition(job, batchv1.JobFailed) != nil, condition(job, batchv1.JobComplete) != nil && (pod == nil || ended(pod)):
		return true
	case pod == nil:
		return job.DeletionTimestamp != nil && job.Status.Active == 0 && terminating(job) == 0
	case !ended(pod):
		return false
	case succeeded(pod), pod.DeletionTimestamp == nil, job.DeletionTimestamp != nil:
		return true
	}
	return !now.Before(endOf(pod))
}

// ended reports whether all containers of a pod have ended for good.
func ended(pod *corev1.Pod) bool { return succeeded(pod) || pod.Status.Phase == corev1.PodFailed }

// succeeded reports whether the worker of a pod has ended well. That can be seen before the pod's phase says so, which the kubelet writes
// after it has removed network and volumes. Why a worker failed is known with the phase.
func succeeded(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	t := terminated(pod)
	return t != nil && t.ExitCode == runspec.ExitSucceeded && len(pod.Spec.Containers) <= 1
}

func terminating(job *batchv1.Job) int32 {
	if job.Status.Terminating == nil {
		return 0
	}
	return *job.Status.Terminating
}

// failure returns the condition that says why the Job failed or is about to fail; nil if there is none.
func failure(job *batchv1.Job) *batchv1.JobCondition {
	if c := condition(job, batchv1.JobFailed); c != nil {
		return c
	}
	return condition(job, batchv1.JobFailureTarget)
}

// condition returns the Job's condition of that type if it is true; nil otherwise.
func condition(job *batchv1.Job, typ batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == typ && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// conclude fills in how a run that is over has ended.
func conclude(s *executor.State, job *batchv1.Job, pod *corev1.Pod, given *verdict, now time.Time) {
	s.Phase, s.FinishedAt = executor.Exited, now
	f := failure(job)
	switch {
	case pod != nil:
		concludePod(s, pod)
	case s.Cause == executor.CauseDeadline, given != nil:
		s.ExitCode = -1
	default:
		s.Phase = executor.Lost
		s.Message = fmt.Sprintf("the pod of Job %s is gone", job.Name)
		if f != nil {
			s.Message += fmt.Sprintf("; the Job says: %s: %s", f.Reason, f.Message)
		}
		if f != nil && f.Reason == batchv1.JobReasonPodFailurePolicy && strings.Contains(f.Message, string(corev1.DisruptionTarget)) {
			s.Reason = v1alpha1.ReasonEvicted
		}
	}
}

func concludePod(s *executor.State, pod *corev1.Pod) {
	ended := terminated(pod)
	if ended != nil {
		exit(s, ended)
	} else {
		s.ExitCode = -1
	}
	if pod.Status.Phase == corev1.PodSucceeded || s.Succeeded() {
		return
	}
	disruption := disruptionOf(pod)
	switch {
	case disruption != nil:
		s.Reason, s.Message = disruption.Reason, disruption.Message
	case s.Cause != "":
	case ended != nil && ended.Reason == v1alpha1.ReasonOOMKilled:
		s.Reason, s.Message = v1alpha1.ReasonOOMKilled, memoryExceeded(pod)
	case ended != nil && (ended.Reason == "ContainerStatusUnknown" || ended.Reason == "Unknown"): // the first is the kubelet's reason, the second is containerd's after its own end
		s.Phase = executor.Lost
		s.Message = fmt.Sprintf("node %s does not know how the container of pod %s ended: %s", pod.Spec.NodeName, pod.Name, clean(cmp.Or(ended.Message, "it was gone when the node came back")))
	case ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun"):
		s.Reason, s.Message = v1alpha1.ReasonStartFailed, fmt.Sprintf("the container could not be started: %s", clean(ended.Message))
	case ended == nil && failedInit(pod) != nil:
		unprepared(s, pod, failedInit(pod))
	case ended == nil:
		s.Reason = v1alpha1.ReasonStartFailed
		s.Message = fmt.Sprintf("pod %s failed before its worker ran: %s", pod.Name, clean(strings.Trim(pod.Status.Reason+": "+pod.Status.Message, ": ")))
	}
}

// exit fills in how the worker's container ended. Codes above 128 mean a signal: the worker
// itself does not use such codes.
func exit(s *executor.State, t *corev1.ContainerStateTerminated) {
	s.ExitCode = int(t.ExitCode)
	if !t.FinishedAt.IsZero() {
		s.FinishedAt = t.FinishedAt.Time
	}
	if t.ExitCode > 128 && t.ExitCode < 128+65 {
		s.ExitCode, s.Signal = -1, syscall.Signal(t.ExitCode-128).String()
	}
	report := &runspec.Termination{}
	if json.Unmarshal([]byte(t.Message), report) == nil && report.Reason != "" {
		report.Reason, report.Message = clean(report.Reason), clean(report.Message)
		s.Termination = report
		return
	}
	s.Message = clean(t.Message) // the end of the log, if there is no report
}

// maxText is the longest text of a host or a run that is kept, in bytes.
const maxText = 2048

// clean makes a text of a host or a run fit for a status: it redacts the text, then cuts it.
func clean(text string) string {
	text, _ = redact.Text(strings.ToValidUTF8(strings.TrimSpace(text), "?"))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[len(text)-maxText:], "")
	}
	return text
}

// terminated returns how the worker's container ended; nil while it has not.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if c := workerStatus(pod); c != nil {
		return c.State.Terminated
	}
	return nil
}

func workerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Name == containerName {
			return c
		}
	}
	return nil
}

func failedInit(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if c := &pod.Status.InitContainerStatuses[i]; c.State.Terminated != nil && c.State.Terminated.ExitCode != 0 {
			return c
		}
	}
	return nil
}

func memoryExceeded(pod *corev1.Pod) string {
	return "the run needed more memory than its limit of " + memoryLimitOf(pod.Spec.Containers, containerName)
}

// memoryLimitOf returns the memory limit of the container of that name.
func memoryLimitOf(containers []corev1.Container, name string) string {
	for i := range containers {
		if c := &containers[i]; c.Name == name {
			return c.Resources.Limits.Memory().String()
		}
	}
	return "an unknown size"
}

// disruptionOf returns why the cluster ended a pod; nil if it did not.
func disruptionOf(pod *corev1.Pod) *verdict {
	if pod.Status.Reason == "Evicted" {
		return &verdict{Reason: v1alpha1.ReasonEvicted, Message: "the pod was evicted: " + clean(pod.Status.Message)}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		message := fmt.Sprintf("node %s: %s", pod.Spec.NodeName, clean(c.Message))
		switch c.Reason {
		case corev1.PodReasonPreemptionByScheduler:
			return &verdict{Reason: v1alpha1.ReasonPreempted, Message: message}
		case "DeletionByPodGC":
			return &verdict{Reason: v1alpha1.ReasonNodeLost, Message: message}
		default: // DeletionByTaintManager, EvictionByEvictionAPI, TerminationByKubelet
			return &verdict{Reason: v1alpha1.ReasonEvicted, Message: message}
		}
	}
	return nil
}
