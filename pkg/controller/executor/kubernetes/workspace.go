// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/workspace"
)

// Paths in the init container that prepares the repository. The worker's container has preparedDir, where it can only read.
const (
	gitDir      = "/secrets/git"
	gitToken    = "token"
	fetchedDir  = "/fetched"
	preparedDir = "/prepared"
	baselineDir = "/baseline"
	answerFile  = preparedDir + "/answer.json"
)

const (
	// fetchedSize is the limit of what a git server sends, which is as much as a tree may have, and of its index.
	fetchedSize = "11Gi"
	// prepareMemory is the least memory limit of the init container. 100,000 files take about 200 MB.
	prepareMemory = "512Mi"
	// prepareTime ends a preparation. A server that sends nothing is given up by the program itself long before.
	prepareTime = time.Hour
)

// prepare returns the init container that fetches the task's repository into the working folder. It alone mounts the credential, and
// it has ended before the worker's container is started.
func (e *Executor) prepare(run executor.Run, p *podBuilder, worker corev1.ResourceRequirements) corev1.Container {
	order := workspace.For(run.Task)
	order.Allow, order.Dir, order.Temp, order.MaxBytes = e.opts.RepositoryAllow, workDir, fetchedDir, runspec.DefaultDiskBytes
	own := &podBuilder{}
	own.emptyDir("fetched", fetchedDir, fetchedSize)
	tokenFile := ""
	if i := slices.IndexFunc(run.Secrets, func(s plan.Secret) bool { return s.Use == plan.ForRepository }); i >= 0 {
		s := run.Secrets[i]
		order.Hosts = s.Hosts
		own.add("git-files", gitDir, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: s.Ref.Name, Items: []corev1.KeyToPath{{Key: s.Ref.Key, Path: gitToken}}, DefaultMode: new(int32(secretMode)),
		}})
		tokenFile = path.Join(gitDir, gitToken)
	}
	own.emptyDir("prepared", preparedDir, "1Mi")
	p.mounts = append(p.mounts, corev1.VolumeMount{Name: "prepared", MountPath: preparedDir, ReadOnly: true})
	if runspec.KeepsCommit(run.Task.Spec.Workspace, run.Remote) {
		order.Keep = baselineDir
		own.emptyDir("baseline", baselineDir, fetchedSize)
		p.mounts = append(p.mounts, corev1.VolumeMount{Name: "baseline", MountPath: baselineDir, ReadOnly: true})
	}
	p.volumes = append(p.volumes, own.volumes...)
	text, _ := json.Marshal(order) //nolint:errchkjson // it consists of strings and numbers alone
	return corev1.Container{
		Name: workspace.ContainerName, Image: e.opts.WorkerImage, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{workspace.ProgramPath, workspace.InitVerb},
		Env: []corev1.EnvVar{
			{Name: "HOME", Value: fetchedDir},
			{Name: "TMPDIR", Value: fetchedDir},
			{Name: runspec.EnvWorkspaceOrder, Value: literal(string(text))},
			{Name: runspec.EnvWorkspaceTokenFile, Value: tokenFile},
			{Name: runspec.EnvWorkspaceAnswer, Value: answerFile},
			{Name: runspec.EnvTerminationLog, Value: terminationLog},
		},
		VolumeMounts:    append(own.mounts, corev1.VolumeMount{Name: workVolume, MountPath: workDir}),
		SecurityContext: hardened(), Resources: preparing(worker),
		TerminationMessagePath: terminationLog, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// workspaceEnv returns the variables with which the worker finds what the init container left, and the program that makes the changes of
// another task and compares.
func (e *Executor) workspaceEnv(run executor.Run) (answer, baseline, program string) {
	ws := run.Task.Spec.Workspace
	if ws == nil {
		return "", "", ""
	}
	keeps := runspec.KeepsCommit(ws, run.Remote)
	if keeps {
		baseline = baselineDir
	}
	switch {
	case !keeps && run.Task.Status.PriorChangesDigest == "":
	case e.image(run) != e.opts.WorkerImage:
		program = path.Join(programDir, workspace.ProgramName)
	default:
		program = workspace.ProgramPath
	}
	return answerFile, baseline, program
}

// preparing returns the resources of the init container: those of the worker, and enough memory for a repository of some size. They
// add nothing to a run that has as much, because the worker begins when the init container has ended.
func preparing(worker corev1.ResourceRequirements) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, ok := worker.Requests[name]; ok {
			r.Requests[name] = q
		}
		if q, ok := worker.Limits[name]; ok {
			r.Limits[name] = q
		}
	}
	if least, limit := resource.MustParse(prepareMemory), r.Limits[corev1.ResourceMemory]; limit.Cmp(least) < 0 {
		r.Limits[corev1.ResourceMemory] = least
	}
	return r
}

// preparation returns the status of the init container that prepares the repository; nil if there is none.
func preparation(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		if c := &pod.Status.InitContainerStatuses[i]; c.Name == workspace.ContainerName {
			return c
		}
	}
	return nil
}

// preparedFrom returns when the preparation of the repository began, and when it ended; zero if it has not.
func preparedFrom(pod *corev1.Pod) (from, to time.Time) {
	c := preparation(pod)
	switch {
	case c == nil:
	case c.State.Running != nil:
		return c.State.Running.StartedAt.Time, time.Time{}
	case c.State.Terminated != nil:
		return c.State.Terminated.StartedAt.Time, c.State.Terminated.FinishedAt.Time
	}
	return time.Time{}, time.Time{}
}

// notPrepared returns the verdict on a run whose repository is being prepared for too long.
func notPrepared(pod *corev1.Pod) *verdict {
	return &verdict{Reason: v1alpha1.ReasonStartTimedOut, Message: fmt.Sprintf("the repository of pod %s was not fetched within %s", pod.Name, prepareTime)}
}

// unprepared fills in why an init container that failed ended a run.
func unprepared(s *executor.State, pod *corev1.Pod, c *corev1.ContainerStatus) {
	t := c.State.Terminated
	if c.Name == workspace.ContainerName {
		if t.Reason == v1alpha1.ReasonOOMKilled {
			s.Reason = v1alpha1.ReasonOOMKilled
			s.Message = fmt.Sprintf("fetching the repository needed more memory than its limit of %s, which is that of the run or %s if that is more", memoryLimitOf(pod.Spec.InitContainers, c.Name), prepareMemory)
			return
		}
		if report := failedPreparation(t); report != nil {
			s.ExitCode, s.Termination = int(t.ExitCode), report
			return
		}
	}
	s.Reason = v1alpha1.ReasonStartFailed
	s.Message = fmt.Sprintf("init container %s ended with exit code %d: %s", c.Name, t.ExitCode, clean(t.Message))
}

// failedPreparation reads the termination message of the init container; nil if that is not a failure for one of the reasons that a
// preparation has.
func failedPreparation(t *corev1.ContainerStateTerminated) *runspec.Termination {
	var answer workspace.Answer
	if json.Unmarshal([]byte(t.Message), &answer) != nil || answer.Failure == nil {
		return nil
	}
	switch f := answer.Failure; f.Reason {
	case v1alpha1.ReasonRepositoryNotRead, v1alpha1.ReasonRepositoryUnreachable, v1alpha1.ReasonWorkspaceRefused, v1alpha1.ReasonInternalError:
		return &runspec.Termination{Reason: f.Reason, Message: clean(f.Message), ExitCode: int(t.ExitCode), Ended: true}
	}
	return nil
}
