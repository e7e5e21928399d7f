// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func job() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "t-1", UID: "job"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ServiceAccountName: "platform-ai-worker", AutomountServiceAccountToken: new(false), RestartPolicy: corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(15)), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true)},
			InitContainers: []corev1.Container{{Name: "install", Image: "worker"}},
			Containers:     []corev1.Container{{Name: "worker", Image: "image", SecurityContext: &corev1.SecurityContext{Privileged: new(false)}}},
			Volumes:        []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}}},
	}
}

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	j := job()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec:       j.Spec.Template.Spec,
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func TestCheck(t *testing.T) {
	worker := func(f func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { f(&p.Spec.Containers[0]) }
	}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string // a part of the error, empty for none
	}{
		{"as made", func(*corev1.Pod) {}, ""},
		{"placed and sized by the cluster", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.Priority, p.Spec.SchedulerName = "n", new(int32(5)), "default-scheduler"
			p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}}
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			p.Spec.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Level: "s0:c1"}
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		}, ""},
		{"of another Job", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, "is not controlled by Job t-1"},
		{"of nobody", func(p *corev1.Pod) { p.OwnerReferences = nil }, "is not controlled by Job t-1"},
		{"command", worker(func(c *corev1.Container) { c.Command = []string{"sh"} }), "its containers[worker] differ"},
		{"args", worker(func(c *corev1.Container) { c.Args = []string{"x"} }), "containers[worker]"},
		{"image", worker(func(c *corev1.Container) { c.Image = "other" }), "containers[worker]"},
		{"env", worker(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/x"}} }), "containers[worker]"},
		{"envFrom", worker(func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{Prefix: "x"}} }), "containers[worker]"},
		{"mounts", worker(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/platform"}}
		}), "containers[worker]"},
		{"privileged", worker(func(c *corev1.Container) { c.SecurityContext.Privileged = new(true) }), "containers[worker]"},
		{"working directory", worker(func(c *corev1.Container) { c.WorkingDir = "/x" }), "containers[worker]"},
		{"hooks", worker(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{} }), "containers[worker]"},
		{"init container", func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "other" }, "initContainers[install]"},
		{"no init container", func(p *corev1.Pod) { p.Spec.InitContainers = nil }, "initContainers[install]"},
		{"sidecar", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "more"}) }, "containers[more]"},
		{"volumes", func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "token"}) }, "its volumes differ"},
		{"account", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "other" }, "serviceAccountName"},
		{"grace", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) }, "terminationGracePeriodSeconds"},
		{"host's processes", func(p *corev1.Pod) { p.Spec.HostPID = true }, "other fields"},
		{"user", func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = new(int64(0)) }, "other fields"},
		{"shared processes", func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }, "other fields"},
		{"lifetime", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(9)) }, "other fields"},
		{"token of its own", func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }, "other fields"},
	} {
		if err := Check(job(), pod(tc.change)); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// TestFirst: the oldest Pod that matches the template is accepted, in whatever order Pods are listed.
func TestFirst(t *testing.T) {
	named := func(name string, age time.Duration, change ...func(*corev1.Pod)) corev1.Pod {
		p := pod(change...)
		p.Name, p.UID = name, types.UID(name)
		p.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0).Add(-age))
		return *p
	}
	forged := func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh"} }
	first, refused := First(job(), []corev1.Pod{named("late", 0), named("forged", time.Minute, forged), named("own", time.Second)})
	if first == nil || first.Name != "own" {
		t.Fatalf("got %v", first)
	}
	want := "[pod forged is not what Job t-1 made: its containers[worker] differ from the Job's template pod late is not the first of Job t-1, which is pod own]"
	if got := fmt.Sprint(refused); got != want {
		t.Errorf("refused %s\nwant    %s", got, want)
	}
	if first, refused := First(job(), nil); first != nil || refused != nil {
		t.Errorf("of none: %v, %v", first, refused)
	}
}
