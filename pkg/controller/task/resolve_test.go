// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor/kubernetes"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/runspec"
)

func testClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Session{}, &v1alpha1.Task{}).WithIndex(&v1alpha1.Task{}, sessionIndex, sessionOf).
		WithIndex(&v1alpha1.Task{}, parentIndex, parentOf).Build()
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func aiTask(change func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	return task(func(t *v1alpha1.Task) {
		t.Spec = v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "hello"}
		change(&t.Spec)
	})
}

func ref(name string) *v1alpha1.NamespacedReference {
	return &v1alpha1.NamespacedReference{Name: name}
}

func fromSecret(name, secret, key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key, Optional: &optional,
	}}}
}

func TestResolve(t *testing.T) {
	secret := func(name, key, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: in("n", name), Data: map[string][]byte{key: []byte(value)}}
	}
	provider := func(name, secret, model string, typ v1alpha1.ProviderType) *v1alpha1.Provider {
		p := &v1alpha1.Provider{ObjectMeta: in("n", name), Spec: v1alpha1.ProviderSpec{
			Type: typ, DefaultModel: model, SecretRef: v1alpha1.ProviderSecretReference{Name: secret},
		}}
		if typ == v1alpha1.ProviderAzureOpenAI {
			p.Spec.BaseURL, p.Spec.Azure = "https://azure.example", &v1alpha1.AzureProvider{DeploymentName: "d"}
		}
		return p
	}
	agent := func(name string, spec v1alpha1.AgentSpec) *v1alpha1.Agent {
		return &v1alpha1.Agent{ObjectMeta: in("n", name), Spec: spec}
	}
	objects := []client.Object{
		secret("keys", "api-key", "k1"), secret("more", "api-key", "k2"), secret("empty", "other", "x"), secret("toolkey", "token", "tk"),
		provider("p", "keys", "m1", v1alpha1.ProviderOpenAI), provider("q", "more", "", "azure-openai"), provider("unspoken", "more", "m", "strange"),
		provider("nokey", "empty", "m", "azure-openai"), provider("nosecret", "gone", "m", "azure-openai"),
		&v1alpha1.Provider{ObjectMeta: in("other", "p"), Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI}},
		&v1alpha1.Skill{ObjectMeta: in("n", "s")},
		&corev1.ConfigMap{ObjectMeta: in("n", "c"), Data: map[string]string{"text": "x"}},
		&v1alpha1.Tool{ObjectMeta: in("n", "weather"), Spec: v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{URL: "https://weather.example", AuthSecretRef: &v1alpha1.KeyReference{Name: "toolkey", Key: "token"}}}},
		&v1alpha1.Tool{ObjectMeta: in("n", "open"), Spec: v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{URL: "https://open.example"}}},
		agent("a", v1alpha1.AgentSpec{
			ProviderRef: ref("p"), Model: &v1alpha1.AgentModel{Name: "m2", Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: ref("q"), Model: "f"}}},
			Tools:  []v1alpha1.AgentTool{{Name: "weather"}, {Name: "file_read"}, {Name: "open"}},
			Skills: []v1alpha1.SkillReference{{Name: "s"}, {ConfigMapRef: &v1alpha1.KeyReference{Name: "c", Key: "text"}}},
		}),
		agent("off", v1alpha1.AgentSpec{ProviderRef: ref("p"), Tools: []v1alpha1.AgentTool{{Name: "weather", Enabled: new(false)}}}),
		agent("runtime", v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeClaude}}),
		agent("noskill", v1alpha1.AgentSpec{ProviderRef: ref("p"), Skills: []v1alpha1.SkillReference{{Name: "gone"}}}),
		agent("noprompt", v1alpha1.AgentSpec{ProviderRef: ref("p"), SystemPrompt: &v1alpha1.AgentSystemPrompt{ConfigMapRef: &v1alpha1.KeyReference{Name: "c", Key: "gone"}}}),
		agent("nosecret", v1alpha1.AgentSpec{ProviderRef: ref("p"), SecretRef: &v1alpha1.LocalReference{Name: "gone"}}),
		agent("bytype", v1alpha1.AgentSpec{Model: &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI}}),
	}
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		want    *resolved
		reason  string
		missing bool
	}{
		{"agent", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("a") }), &resolved{mayPark: true, agentName: "a", providerName: "p", model: "m2", skills: []types.NamespacedName{{Namespace: "n", Name: "s"}}, credentials: runspec.Credentials{
			ConfigMaps:   map[string]string{"n/c/text": "x"},
			ProviderKeys: map[string]string{"n/p": "k1", "n/q": "k2"}, ToolKeys: map[string]string{"n/weather": "tk"},
		}}, "", false},
		{"task wins", aiTask(func(s *v1alpha1.TaskSpec) {
			s.AgentRef = ref("off")
			s.AI = &v1alpha1.TaskAI{ProviderRef: ref("q"), Model: "m9", Tools: []string{"weather"}}
		}), &resolved{mayPark: true, agentName: "off", providerName: "q", model: "m9", credentials: runspec.Credentials{
			ProviderKeys: map[string]string{"n/q": "k2"}, ToolKeys: map[string]string{"n/weather": "tk"},
		}}, "", false},
		{
			"disabled tool", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("off") }),
			&resolved{mayPark: true, agentName: "off", providerName: "p", model: "m1", credentials: runspec.Credentials{ProviderKeys: map[string]string{"n/p": "k1"}}}, "", false,
		},
		{
			"by vendor", aiTask(func(s *v1alpha1.TaskSpec) { s.AI = &v1alpha1.TaskAI{Provider: v1alpha1.ProviderOpenAI} }),
			&resolved{mayPark: true, providerName: "p", model: "m1", credentials: runspec.Credentials{ProviderKeys: map[string]string{"n/p": "k1"}}}, "", false,
		},
		{
			"by vendor of the agent", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("bytype") }),
			&resolved{mayPark: true, agentName: "bytype", providerName: "p", model: "m1", credentials: runspec.Credentials{ProviderKeys: map[string]string{"n/p": "k1"}}}, "", false,
		},
		{"two of a vendor", aiTask(func(s *v1alpha1.TaskSpec) { s.AI = &v1alpha1.TaskAI{Provider: "azure-openai"} }), nil, "AmbiguousProvider", false},
		{"no agent", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("gone") }), nil, "AgentNotFound", true},
		{"agent with a runtime", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("runtime") }), nil, "IncompatibleAgent", false},
		{"no prompt", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("a"); s.Prompt = "" }), nil, "NoPrompt", false},
		{"no provider named", aiTask(func(*v1alpha1.TaskSpec) {}), nil, "NoProvider", false},
		{"no such provider", aiTask(func(s *v1alpha1.TaskSpec) { s.AI = &v1alpha1.TaskAI{ProviderRef: ref("gone")} }), nil, "ProviderNotFound", true},
		{"unspoken", aiTask(func(s *v1alpha1.TaskSpec) { s.AI = &v1alpha1.TaskAI{ProviderRef: ref("unspoken")} }), nil, "ProviderUnsupported", false},
		{"no secret", aiTask(func(s *v1alpha1.TaskSpec) { s.AI = &v1alpha1.TaskAI{ProviderRef: ref("nosecret")} }), nil, "SecretNotFound", true},
		{"no key", aiTask(func(s *v1alpha1.TaskSpec) { s.AI = &v1alpha1.TaskAI{ProviderRef: ref("nokey")} }), nil, "SecretKeyNotFound", true},
		{"no skill", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("noskill") }), nil, "SkillNotFound", true},
		{"no prompt key", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("noprompt") }), nil, "ConfigMapKeyNotFound", true},
		{"no agent secret", aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("nosecret") }), nil, "SecretNotFound", true},
		{"no task secret", aiTask(func(s *v1alpha1.TaskSpec) { s.SecretRef = ref("gone") }), nil, "SecretNotFound", true},
		{"secret to mount", aiTask(func(s *v1alpha1.TaskSpec) { s.SecretRef = ref("toolkey") }), nil, "Refused", false},
		{"other namespace", aiTask(func(s *v1alpha1.TaskSpec) {
			s.AI = &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Namespace: "other", Name: "p"}}
		}), nil, "NamespaceIsolationViolation", false},
		{"agent task", task(func(t *v1alpha1.Task) { t.Spec.Type = v1alpha1.TaskTypeAgent }), nil, "RuntimeNotAvailable", false},
		{"container task", task(), nil, "HostCommandsNotAllowed", false},
		{"environment", aiTask(func(s *v1alpha1.TaskSpec) {
			s.AI = &v1alpha1.TaskAI{ProviderRef: ref("p")}
			s.Env = []corev1.EnvVar{{Name: "PLAIN", Value: "x"}, fromSecret("A", "toolkey", "token", false), fromSecret("B", "gone", "x", true)}
		}), &resolved{mayPark: true, providerName: "p", model: "m1", credentials: runspec.Credentials{ProviderKeys: map[string]string{"n/p": "k1"}, Env: map[string]string{"A": "tk"}}, absent: []v1alpha1.KeyReference{{Name: "gone", Key: "x"}}}, "", false},
		{"no secret of the environment", aiTask(func(s *v1alpha1.TaskSpec) { s.Env = []corev1.EnvVar{fromSecret("B", "gone", "x", false)} }), nil, "SecretNotFound", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := testClient(t, objects...)
			r := resolver{cached: c, live: c, place: plan.Place{NoContainers: "not allowed here", NoMounts: "not here"}}
			got, err := r.resolve(t.Context(), tc.task)
			refused, ok := errors.AsType[*refusal.Error](err)
			if tc.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(resolved{})); d != "" {
					t.Error(d)
				}
				return
			}
			if !ok || refused.Reason != tc.reason || refused.Missing != tc.missing || refused.Message == "" {
				t.Errorf("got %v, %+v", err, refused)
			}
		})
	}
	r := resolver{}
	if _, err := r.resolve(t.Context(), task()); err != nil {
		t.Errorf("allowed container task: %v", err)
	}
}

// TestResolveTools: a tool that cannot work is refused with what it lacks, whether the task or its agent names it.
// A disabled tool is not checked.
func TestResolveTools(t *testing.T) {
	off := false
	agent := func(name string, tools ...v1alpha1.AgentTool) *v1alpha1.Agent {
		return &v1alpha1.Agent{ObjectMeta: in("n", name), Spec: v1alpha1.AgentSpec{ProviderRef: ref("p"), Tools: tools}}
	}
	c := testClient(t,
		&corev1.Secret{ObjectMeta: in("n", "keys"), Data: map[string][]byte{"api-key": []byte("k")}},
		&v1alpha1.Provider{ObjectMeta: in("n", "p"), Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "keys"}}},
		agent("coder", v1alpha1.AgentTool{Name: "code_exec"}), agent("reader", v1alpha1.AgentTool{Name: "code_exec", Enabled: &off}, v1alpha1.AgentTool{Name: "file_read"}),
	)
	bare, err := kubernetes.New(kubernetes.Options{Client: clientset.NewClientset(), WorkerImage: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	full, err := kubernetes.New(kubernetes.Options{Client: clientset.NewClientset(), WorkerImage: "worker", AIImage: "python", SearchURL: "https://search.example"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		agent   string
		tools   []string
		refused string // part of why, where runs use the worker's own image and nothing is set up
	}{
		{"coder", nil, "--ai-worker-image"},
		{"reader", nil, ""},
		{"reader", []string{"web_search"}, ""},
		{"reader", []string{"code_exec"}, "code_exec cannot work here"},
		{"reader", []string{"nobody_knows"}, ""},
	} {
		task := aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef, s.AI = ref(tc.agent), &v1alpha1.TaskAI{Tools: tc.tools} })
		res, err := (&resolver{cached: c, live: c, place: plan.Place{Lacks: bare.Lacks}}).resolve(t.Context(), task)
		if slices.Contains(tc.tools, "web_search") && (err != nil || len(res.left) != 1 || !strings.Contains(res.left[0], "--search-url")) {
			t.Errorf("%+v: left out: %+v", tc, res)
		}
		refused, ok := errors.AsType[*refusal.Error](err)
		if tc.refused == "" && err != nil || tc.refused != "" && (!ok || refused.Reason != v1alpha1.ReasonToolUnavailable || refused.Missing || !strings.Contains(refused.Message, tc.refused)) {
			t.Errorf("%+v: %v", tc, err)
		}
		if _, err := (&resolver{cached: c, live: c, place: plan.Place{Lacks: full.Lacks}}).resolve(t.Context(), task); err != nil {
			t.Errorf("%+v, where all is set up: %v", tc, err)
		}
	}
}

// TestResolveByReference: if the host supplies secrets to a run, none is read.
func TestResolveByReference(t *testing.T) {
	c := testClient(t,
		&corev1.Secret{ObjectMeta: in("n", "keys"), Data: map[string][]byte{"api-key": []byte("canary"), "token": []byte("canary")}},
		&corev1.Secret{ObjectMeta: in("other", "keys"), Data: map[string][]byte{"api-key": []byte("canary")}},
		&v1alpha1.Provider{ObjectMeta: in("n", "p"), Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "keys"}}},
		&v1alpha1.Provider{ObjectMeta: in("other", "p"), Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "keys"}}},
		&v1alpha1.Tool{ObjectMeta: in("n", "weather"), Spec: v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{URL: "https://weather.example", AuthSecretRef: &v1alpha1.KeyReference{Name: "keys", Key: "token"}}}},
		&corev1.ConfigMap{ObjectMeta: in("n", "texts"), Data: map[string]string{"prompt": "say yes"}},
		&corev1.ConfigMap{ObjectMeta: in("other", "texts"), Data: map[string]string{"prompt": "say no"}},
		&v1alpha1.Agent{ObjectMeta: in("other", "a"), Spec: v1alpha1.AgentSpec{
			SystemPrompt: &v1alpha1.AgentSystemPrompt{ConfigMapRef: &v1alpha1.KeyReference{Name: "texts", Key: "prompt"}},
		}},
		&v1alpha1.Agent{ObjectMeta: in("n", "a"), Spec: v1alpha1.AgentSpec{
			ProviderRef: ref("p"), Model: &v1alpha1.AgentModel{Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: ref("p")}}},
			SystemPrompt: &v1alpha1.AgentSystemPrompt{ConfigMapRef: &v1alpha1.KeyReference{Name: "texts", Key: "prompt"}},
			Tools:        []v1alpha1.AgentTool{{Name: "weather"}}, SecretRef: &v1alpha1.LocalReference{Name: "keys"},
			Execution: &v1alpha1.ExecutionPlacement{NodeSelector: map[string]string{"pool": "agents"}},
		}},
	)
	r := resolver{cached: c, live: c, byReference: true, searchKey: "canary", place: plan.Place{OtherNamespaces: true, Pods: true}}
	got, err := r.resolve(t.Context(), aiTask(func(s *v1alpha1.TaskSpec) {
		s.AgentRef = ref("a")
		s.Env = []corev1.EnvVar{fromSecret("A", "keys", "token", false)}
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := &resolved{
		mayPark:   true,
		agentName: "a", providerName: "p", model: "m", agentSecret: "keys", placement: &v1alpha1.ExecutionPlacement{NodeSelector: map[string]string{"pool": "agents"}},
		secrets: []plan.Secret{
			{Use: plan.ForVariable, For: types.NamespacedName{Namespace: "n", Name: "A"}, Namespace: "n", Ref: v1alpha1.KeyReference{Name: "keys", Key: "token"}},
			{Use: plan.ForMount, Namespace: "n", Ref: v1alpha1.KeyReference{Name: "keys"}},
			{Use: plan.ForProvider, For: types.NamespacedName{Namespace: "n", Name: "p"}, Namespace: "n", Ref: v1alpha1.KeyReference{Name: "keys", Key: "api-key"}},
			{Use: plan.ForTool, For: types.NamespacedName{Namespace: "n", Name: "weather"}, Namespace: "n", Ref: v1alpha1.KeyReference{Name: "keys", Key: "token"}},
		},
		configMaps: []plan.ConfigMap{{NamespacedName: types.NamespacedName{Namespace: "n", Name: "texts"}, Key: "prompt", Value: "say yes"}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(resolved{})); d != "" {
		t.Error(d)
	}
	for name, change := range map[string]func(*v1alpha1.TaskSpec){
		"of another namespace": func(s *v1alpha1.TaskSpec) {
			s.AI = &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Namespace: "other", Name: "p"}}
		},
		"text of another namespace": func(s *v1alpha1.TaskSpec) {
			s.AgentRef = &v1alpha1.NamespacedReference{Namespace: "other", Name: "a"}
			s.AI = &v1alpha1.TaskAI{ProviderRef: ref("p")}
		},
		"mounted, of another namespace": func(s *v1alpha1.TaskSpec) {
			s.SecretRef = &v1alpha1.NamespacedReference{Namespace: "other", Name: "keys"}
		},
	} {
		_, err := r.resolve(t.Context(), aiTask(change))
		if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Reason != v1alpha1.ReasonRefused || refused.Missing {
			t.Errorf("%s: %v", name, err)
		}
	}
	noCommand := task(func(t *v1alpha1.Task) { t.Spec.Image, t.Spec.Command = "alpine", nil })
	if _, err := r.resolve(t.Context(), noCommand); err == nil || !strings.Contains(err.Error(), "spec.command") {
		t.Errorf("an image without a command: %v", err)
	}
}

// TestRuntimeOfACodingAgent: a run is told which coding agent its Agent is, if the place has that one.
func TestRuntimeOfACodingAgent(t *testing.T) {
	c := testClient(t, &v1alpha1.Agent{ObjectMeta: in("n", "coder"), Spec: v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}}})
	images := agentprogram.Images{v1alpha1.RuntimeCodex: new("codex")}
	r := resolver{cached: c, live: c, byReference: true, place: plan.Place{Runtime: images.Lacks}}
	coding := aiTask(func(s *v1alpha1.TaskSpec) { s.Type, s.AgentRef = v1alpha1.TaskTypeAgent, ref("coder") })
	if got, err := r.resolve(t.Context(), coding); err != nil || got.runtime != v1alpha1.RuntimeCodex {
		t.Errorf("%+v, %v", got, err)
	}
	r.place.Runtime = agentprogram.Images{}.Lacks
	_, err := r.resolve(t.Context(), coding)
	if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Reason != v1alpha1.ReasonRuntimeNotAvailable || !strings.Contains(err.Error(), "--acp-codex-runtime-image") {
		t.Errorf("without an image: %v", err)
	}
}

// TestCredentialsOfTwoNamespaces: two Providers with the same name in two namespaces keep their own keys.
func TestCredentialsOfTwoNamespaces(t *testing.T) {
	of := func(namespace string) []client.Object {
		return []client.Object{
			&corev1.Secret{ObjectMeta: in(namespace, "keys"), Data: map[string][]byte{"api-key": []byte("key of " + namespace)}},
			&v1alpha1.Provider{ObjectMeta: in(namespace, "p"), Spec: v1alpha1.ProviderSpec{
				Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "keys"},
			}},
		}
	}
	c := testClient(t, append(append(of("n"), of("other")...), &v1alpha1.Agent{ObjectMeta: in("n", "a"), Spec: v1alpha1.AgentSpec{
		ProviderRef: ref("p"),
		Model:       &v1alpha1.AgentModel{Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: &v1alpha1.NamespacedReference{Namespace: "other", Name: "p"}}}},
	}})...)
	got, err := (&resolver{cached: c, live: c, place: plan.Place{OtherNamespaces: true}}).resolve(t.Context(), aiTask(func(s *v1alpha1.TaskSpec) { s.AgentRef = ref("a") }))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"n/p": "key of n", "other/p": "key of other"}
	if d := cmp.Diff(want, got.credentials.ProviderKeys); d != "" {
		t.Error(d)
	}
}

// TestPlacement: scalars of the task override the Agent's, and maps and lists replace them.
func TestPlacement(t *testing.T) {
	agent := &v1alpha1.ExecutionPlacement{
		RuntimeClassName: new("a"), NodeSelector: map[string]string{"a": "1"}, Tolerations: []corev1.Toleration{{Key: "a"}}, Affinity: &corev1.Affinity{},
	}
	own := v1alpha1.ExecutionPlacement{RuntimeClassName: new("t"), NodeSelector: map[string]string{"t": "1"}, Tolerations: []corev1.Toleration{{Key: "t"}}}
	for name, tc := range map[string]struct {
		own   *v1alpha1.TaskExecutionSpec
		agent *v1alpha1.ExecutionPlacement
		want  v1alpha1.ExecutionPlacement
	}{
		"none":  {},
		"agent": {agent: agent, want: *agent},
		"task":  {own: &v1alpha1.TaskExecutionSpec{ExecutionPlacement: own}, want: own},
		"both": {own: &v1alpha1.TaskExecutionSpec{ExecutionPlacement: own}, agent: agent, want: v1alpha1.ExecutionPlacement{
			RuntimeClassName: own.RuntimeClassName, NodeSelector: own.NodeSelector, Tolerations: own.Tolerations, Affinity: agent.Affinity,
		}},
		"unset": {own: &v1alpha1.TaskExecutionSpec{}, agent: agent, want: *agent},
	} {
		if d := cmp.Diff(tc.want, placement(tc.own, tc.agent)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
