// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

var rewrite = flag.Bool("rewrite", false, "write the expected files anew")

const (
	workerImage = "platform.ai/platform-worker:dev"
	agentImage  = "registry.example/codex@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func testExecutor(t *testing.T, change func(*Options)) *Executor {
	t.Helper()
	o := Options{WorkerImage: workerImage, Client: &clientset.Clientset{}}
	if change != nil {
		change(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func runOf(name string, spec v1alpha1.TaskSpec, change ...func(*executor.Run)) executor.Run {
	t := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, Spec: spec}
	r := executor.Run{
		Ref: executor.Ref{Namespace: t.Namespace, Name: t.Name, UID: t.UID, Attempt: 1}, Task: t, ID: "run-id", Resources: spec.Resources,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func jobCases() map[string]struct {
	options func(*Options)
	run     executor.Run
} {
	type testCase = struct {
		options func(*Options)
		run     executor.Run
	}
	return map[string]testCase{
		"container": {run: runOf("build", v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeContainer, Image: "docker.io/library/alpine:3.22", Command: []string{"make"}, Args: []string{"all"},
			Env: []corev1.EnvVar{
				{Name: "PLAIN", Value: "x"},
				{Name: "HOME", Value: "/tmp/home"},
				{Name: runspec.EnvTaskName, Value: "forged"},
				{Name: runspec.EnvSecretEnv, Value: "forged"},
				{Name: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.66"},
				{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "k"}}},
				{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
			},
			SecretRef: &v1alpha1.NamespacedReference{Name: "files"},
			Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		}, func(r *executor.Run) {
			r.Timeout = 90*time.Second + time.Millisecond
		})},
		"ai": {
			options: func(o *Options) { o.SearchURL, o.WebFetchAllow = "https://search.example", []string{"10.0.0.1:80"} },
			run: runOf("primes", v1alpha1.TaskSpec{
				Type: v1alpha1.TaskTypeAI, Prompt: "hello", AgentRef: &v1alpha1.NamespacedReference{Name: "assistant"},
				SessionRef: &v1alpha1.TaskSessionReference{Name: "s"}, Env: []corev1.EnvVar{{Name: "PLAIN", Value: "x"}},
			}, func(r *executor.Run) {
				r.Attempt = 2
				r.Task.Annotations = map[string]string{v1alpha1.AnnotationParentTaskName: "parent"}
				r.AgentSecret = "agent-files"
				r.ConfigMaps = []plan.ConfigMap{{NamespacedName: types.NamespacedName{Namespace: "team", Name: "texts"}, Key: "prompt"}}
				r.Secrets = []plan.Secret{
					{Use: plan.ForProvider, For: types.NamespacedName{Namespace: "team", Name: "openai"}, Ref: v1alpha1.KeyReference{Name: "keys", Key: "api-key"}, Hosts: egress.Hosts{Rule: "api.openai.com", Set: true}},
					{Use: plan.ForTool, For: types.NamespacedName{Namespace: "team", Name: "weather"}, Ref: v1alpha1.KeyReference{Name: "weather", Key: "token"}},
				}
				r.Placement = v1alpha1.ExecutionPlacement{
					RuntimeClassName: new("gvisor"), NodeSelector: map[string]string{"pool": "agents"},
					Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}},
					Affinity:    &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
				}
			}),
		},
		"transaction": {
			options: func(o *Options) {
				o.Exchange = tokenexchange.Options{Endpoint: "https://tts.example/token", ChildScope: "work", CA: "-----BEGIN CERTIFICATE-----"}
			},
			run: runOf("delegate", v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "hello", Transaction: &v1alpha1.TaskTransaction{
				Profile: "transaction-token", ID: "txn-1", Issuer: "https://tts.example", Subject: "$$(HOME)", RequestingWorkload: "gateway", Scope: "work more", Scopes: []string{"work", "more"},
			}}, func(r *executor.Run) { r.TransactionSecret = "delegate-txn-1" }),
		},
		"workspace": {
			options: func(o *Options) { o.RepositoryAllow = []string{"git.internal:443"} },
			run: runOf("count", v1alpha1.TaskSpec{
				Type: v1alpha1.TaskTypeContainer, Image: "docker.io/library/alpine:3.22", Command: []string{"ls"},
				Env:       []corev1.EnvVar{{Name: runspec.EnvWorkspaceAnswer, Value: "/workspace/forged.json"}},
				Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("64Mi"), "example.com/gpu": resource.MustParse("1")}},
				Workspace: &v1alpha1.TaskWorkspace{
					GitRepo: "https://git.internal/shop", Branch: "price-$(HOME)-$$", SubPath: "api", ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader", Key: "token"},
				},
			}, func(r *executor.Run) {
				r.Attempt = 2
				r.Task.Status.Delivery = &v1alpha1.TaskDelivery{StartingSHA: "0123456789abcdef0123456789abcdef01234567"}
				r.Secrets = []plan.Secret{{Use: plan.ForRepository, For: types.NamespacedName{Namespace: "team", Name: "count"}, Ref: v1alpha1.KeyReference{Name: "reader", Key: "token"}, Hosts: egress.Hosts{Rule: "git.internal", Set: true}}}
			}),
		},
		"agent": {
			options: func(o *Options) {
				o.AIImage, o.SearchURL = "registry.example/tools:1", "https://search.example"
				o.AgentImages = agentprogram.Images{v1alpha1.RuntimeCodex: new(agentImage)}
			},
			run: runOf("mend", v1alpha1.TaskSpec{
				Type: v1alpha1.TaskTypeAgent, Prompt: "mend it", AgentRef: &v1alpha1.NamespacedReference{Name: "coder"},
				Env: []corev1.EnvVar{{Name: "PLAIN", Value: "x"}, {Name: runspec.EnvAgentImage, Value: "forged"}},
				Workspace: &v1alpha1.TaskWorkspace{
					GitRepo: "https://git.example/shop", Branch: "main", Intent: v1alpha1.WorkspaceWrite, ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"},
					PublicationReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"}, PublicationCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "pusher"},
				},
			}, func(r *executor.Run) {
				r.Runtime, r.AgentSecret = v1alpha1.RuntimeCodex, "agent-files"
				of := types.NamespacedName{Namespace: "team", Name: "mend"}
				r.Secrets = []plan.Secret{
					{Use: plan.ForRepository, For: of, Ref: v1alpha1.KeyReference{Name: "reader", Key: "token"}},
					{Use: plan.ForPublicationRead, For: of, Ref: v1alpha1.KeyReference{Name: "reader", Key: "token"}},
					{Use: plan.ForPublication, For: of, Ref: v1alpha1.KeyReference{Name: "pusher", Key: "token"}},
				}
			}),
		},
		"ai-own-image": {
			options: func(o *Options) { o.AIImage = "registry.example/tools:1" },
			run:     runOf(strings.Repeat("long-", 20)+"name", v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "hello"}),
		},
	}
}

// TestAbsentSecrets: an optional variable whose Secret did not exist when the run was planned is not in the Pod, where it would get
// the value of a Secret that appears later.
func TestAbsentSecrets(t *testing.T) {
	variable := func(name, secret string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "k", Optional: new(true),
		}}}
	}
	for _, kind := range []v1alpha1.TaskType{v1alpha1.TaskTypeContainer, v1alpha1.TaskTypeAI} {
		run := runOf("build", v1alpha1.TaskSpec{Type: kind, Env: []corev1.EnvVar{variable("LATER", "later"), variable("THERE", "there")}}, func(r *executor.Run) {
			r.Absent = []v1alpha1.KeyReference{{Name: "later", Key: "k"}}
		})
		var named []string
		for _, v := range testExecutor(t, nil).environ(run) {
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
				named = append(named, v.ValueFrom.SecretKeyRef.Name)
			}
			if v.Name == runspec.EnvSecretEnv && strings.Contains(v.Value, "LATER") {
				t.Errorf("%s: %s is %q", kind, v.Name, v.Value)
			}
		}
		if !slices.Equal(named, []string{"there"}) {
			t.Errorf("%s: the Pod refers to %v", kind, named)
		}
	}
}

func TestJob(t *testing.T) {
	for name, tc := range jobCases() {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(testExecutor(t, tc.options).job(tc.run))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".yaml")
			if *rewrite {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("run with -rewrite if this is right:\n%s", d)
			}
		})
	}
}

// TestJobIsFound: a Job identifies its attempt and task, and is not mistaken for another.
func TestJobIsFound(t *testing.T) {
	for name, tc := range jobCases() {
		job := testExecutor(t, tc.options).job(tc.run)
		if !isJobOf(job, tc.run.Ref) || runID(job) != tc.run.ID {
			t.Errorf("%s: not found as %v", name, tc.run.Ref)
		}
		for _, other := range []func(*executor.Ref){
			func(r *executor.Ref) { r.UID = "other" }, func(r *executor.Ref) { r.Attempt++ }, func(r *executor.Ref) { r.Name = "other" },
		} {
			ref := tc.run.Ref
			if other(&ref); isJobOf(job, ref) {
				t.Errorf("%s: taken for %v", name, ref)
			}
		}
		if len(job.Name) > 63 || len(job.Labels[v1alpha1.LabelTask]) > 63 {
			t.Errorf("%s: name %s, label %s", name, job.Name, job.Labels[v1alpha1.LabelTask])
		}
	}
}

// TestNoValueOfASecret: no value of Credentials appears in a Job.
func TestNoValueOfASecret(t *testing.T) {
	run := jobCases()["ai"].run
	run.Credentials = runspec.Credentials{Token: "canary-1", ProviderKeys: map[string]string{"openai": "canary-2"}, SearchKey: "canary-3"}
	got, err := yaml.Marshal(testExecutor(t, nil).job(run))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(got), "canary") {
		t.Errorf("a value is in the Job:\n%s", got)
	}
}

func TestResources(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		if cpu != "" {
			l[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	for _, tc := range []struct {
		name string
		in   *corev1.ResourceRequirements
		want corev1.ResourceRequirements
	}{
		{"defaults", nil, corev1.ResourceRequirements{Requests: list("100m", "128Mi"), Limits: list("", "1Gi")}},
		{"small limits", &corev1.ResourceRequirements{Limits: list("50m", "64Mi")}, corev1.ResourceRequirements{Requests: list("50m", "64Mi"), Limits: list("50m", "64Mi")}},
		{"large request", &corev1.ResourceRequirements{Requests: list("2", "8Gi")}, corev1.ResourceRequirements{Requests: list("2", "8Gi"), Limits: list("", "8Gi")}},
	} {
		got := testExecutor(t, nil).resources(executor.Run{Resources: tc.in})
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}
