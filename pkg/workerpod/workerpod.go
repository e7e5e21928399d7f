// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workerpod decides whether a Pod matches the template of its Job. The controller accepts no other Pod for a
// run, and the server accepts no other Pod as a worker.
//
// A Pod names its Job in labels and an owner reference, which anyone who may create Pods can set. The Pod's spec is
// therefore compared with the Job's template, which is immutable; the controller recorded the UID of the Job. A Pod
// that somebody else created but that runs exactly what the template says does no more than the run would have done.
package workerpod

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Check returns an error that says how a Pod differs from the Job's template, or nil if it matches.
//
// Placement, resources and the way images are pulled may differ: the cluster decides them when it admits Pods.
// Everything else must match the template. A webhook that changes images, commands, environment, volumes or
// containers must therefore change Jobs, or exclude the Pods of runs.
func Check(job *batchv1.Job, pod *corev1.Pod) error {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "Job" || owner.UID != job.UID {
		return fmt.Errorf("pod %s is not controlled by Job %s", pod.Name, job.Name)
	}
	want, got := job.Spec.Template.Spec.DeepCopy(), pod.Spec.DeepCopy()
	for _, c := range []struct {
		field     string
		want, got *[]corev1.Container
	}{
		{"initContainers", &want.InitContainers, &got.InitContainers},
		{"containers", &want.Containers, &got.Containers},
	} {
		if field := containers(*c.want, *c.got); field != "" {
			return differs(job, pod, c.field+field)
		}
		*c.want, *c.got = nil, nil
	}
	for _, f := range []struct {
		field string
		same  bool
	}{
		{"serviceAccountName", want.ServiceAccountName == got.ServiceAccountName},
		{"volumes", equality.Semantic.DeepEqual(want.Volumes, got.Volumes)},
		{"terminationGracePeriodSeconds", equality.Semantic.DeepEqual(want.TerminationGracePeriodSeconds, got.TerminationGracePeriodSeconds)},
	} {
		if !f.same {
			return differs(job, pod, f.field)
		}
	}
	theClusters(want)
	theClusters(got)
	if !equality.Semantic.DeepEqual(want, got) {
		return differs(job, pod, "other fields (security, host namespaces, network or lifetime)")
	}
	return nil
}

func differs(job *batchv1.Job, pod *corev1.Pod, what string) error {
	return fmt.Errorf("pod %s is not what Job %s made: its %s differ from the Job's template", pod.Name, job.Name, what)
}

// containers returns the name of the first container that differs; empty if none does.
func containers(want, got []corev1.Container) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			return fmt.Sprintf("[%s]", got[i].Name)
		case i >= len(got):
			return fmt.Sprintf("[%s]", want[i].Name)
		}
		a, b := want[i].DeepCopy(), got[i].DeepCopy()
		for _, c := range []*corev1.Container{a, b} {
			c.Resources, c.ResizePolicy, c.ImagePullPolicy = corev1.ResourceRequirements{}, nil, ""
			if c.SecurityContext != nil {
				c.SecurityContext.SELinuxOptions = nil
			}
		}
		if !equality.Semantic.DeepEqual(a, b) {
			return fmt.Sprintf("[%s]", want[i].Name)
		}
	}
	return ""
}

// theClusters clears the fields that the cluster may decide for a Pod.
func theClusters(s *corev1.PodSpec) {
	s.NodeName, s.NodeSelector, s.Affinity, s.Tolerations, s.TopologySpreadConstraints = "", nil, nil, nil, nil
	s.Priority, s.PriorityClassName, s.PreemptionPolicy, s.SchedulerName, s.SchedulingGates = nil, "", nil, "", nil
	s.ImagePullSecrets, s.Overhead, s.Resources, s.ReadinessGates, s.ResourceClaims = nil, nil, nil, nil, nil
	s.EphemeralContainers = nil // cannot be given to a Pod when it is created
	if s.SecurityContext != nil {
		s.SecurityContext.SELinuxOptions = nil
	}
}

// First returns the oldest Pod of the Job that Check accepts, nil if there is none, and why each other Pod is
// refused. A Job has a single Pod, unless somebody else created more.
func First(job *batchv1.Job, pods []corev1.Pod) (first *corev1.Pod, refused []error) {
	sorted := make([]*corev1.Pod, len(pods))
	for i := range pods {
		sorted[i] = &pods[i]
	}
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) // timestamps have a resolution of one second
	})
	for _, p := range sorted {
		switch err := Check(job, p); {
		case err != nil:
			refused = append(refused, err)
		case first == nil:
			first = p
		default:
			refused = append(refused, fmt.Errorf("pod %s is not the first of Job %s, which is pod %s", p.Name, job.Name, first.Name))
		}
	}
	return first, refused
}
