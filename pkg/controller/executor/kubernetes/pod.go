// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
)

// Paths in the worker's container, and the volume of the first.
const (
	workVolume     = "workspace"
	workDir        = "/workspace"
	homeDir        = "/home/worker"
	tempDir        = "/tmp"
	artifactsDir   = "/artifacts"
	spoolDir       = "/spool"
	secretTaskDir  = "/secrets/task"
	secretAgentDir = "/secrets/agent"
	transactionDir = "/secrets/transaction"
	credentialsDir = "/secrets/run"
	apiDir         = "/var/run/secrets/platform.ai"
	programDir     = "/platform"
	terminationLog = "/dev/termination-log"
)

const (
	// userID is the user and the group of the worker.
	userID = 1000
	// deliverySeconds is how long a worker whose work was over when it got SIGTERM, for example at its deadline, may go on
	// delivering to a server that is away.
	deliverySeconds = 300
	// graceSeconds is the time between SIGTERM and SIGKILL. A worker whose work is not over needs at most 10 s of it.
	graceSeconds = deliverySeconds + 15
	// tokenSeconds is the lifetime of a projected token. The kubelet renews it at 80% of that.
	tokenSeconds = 3600
	// searchKey is the key in Options.SearchSecret.
	searchKey = "api-key"
)

// pod makes the Pod of a run.
func (e *Executor) pod(run executor.Run) corev1.PodSpec {
	p := &podBuilder{} // no volume name may look like that of a secret: messages about the volume would be redacted
	p.emptyDir("tmp", tempDir, "4Gi")
	p.emptyDir(workVolume, workDir, "10Gi")
	p.emptyDir("home", homeDir, "1Gi")
	p.emptyDir("artifacts", artifactsDir, "1Gi")
	p.emptyDir("spool", spoolDir, "512Mi")
	p.project("platform-api", apiDir, apiAccess())
	if sources := e.credentials(run); len(sources) > 0 {
		p.project("run-files", credentialsDir, sources)
	}
	if ref := run.Task.Spec.SecretRef; ref != nil {
		p.secret("task-files", secretTaskDir, ref.Name)
	}
	if run.AgentSecret != "" {
		p.secret("agent-files", secretAgentDir, run.AgentSecret)
	}
	if run.TransactionSecret != "" {
		p.secret("transaction-files", transactionDir, run.TransactionSecret)
	}
	worker := corev1.Container{
		Name: containerName, Image: e.image(run), ImagePullPolicy: corev1.PullIfNotPresent,
		Env: e.environ(run), Resources: e.resources(run), SecurityContext: hardened(),
		TerminationMessagePath: terminationLog, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: new(int64(graceSeconds)),
		ServiceAccountName:            executor.ServiceAccount(run.Task.Spec.Type),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		RuntimeClassName:              run.Placement.RuntimeClassName,
		NodeSelector:                  run.Placement.NodeSelector,
		Affinity:                      run.Placement.Affinity,
		Tolerations:                   e.tolerations(run.Placement.Tolerations),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(userID)), RunAsGroup: new(int64(userID)), FSGroup: new(int64(userID)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if worker.Image != e.opts.WorkerImage {
		p.emptyDir("program", programDir, "512Mi")
		spec.InitContainers = []corev1.Container{e.install(p.mounts[len(p.mounts)-1])}
		p.mounts[len(p.mounts)-1].ReadOnly = true
		worker.Command = []string{path.Join(programDir, runspec.ProgramName)}
	}
	if run.Task.Spec.Workspace != nil {
		spec.InitContainers = append(spec.InitContainers, e.prepare(run, p, worker.Resources))
	}
	worker.VolumeMounts = p.mounts
	spec.Volumes, spec.Containers = p.volumes, []corev1.Container{worker}
	return spec
}

// image is that of the worker's container.
func (e *Executor) image(run executor.Run) string {
	switch spec := run.Task.Spec; spec.Type {
	case v1alpha1.TaskTypeContainer:
		return cmp.Or(spec.Image, e.opts.GeneralImage)
	case v1alpha1.TaskTypeAgent:
		if run.Remote != nil { // the agent is elsewhere
			return e.opts.WorkerImage
		}
		return e.opts.AgentImages.Of(run.Runtime)
	default:
		return e.opts.AIImage
	}
}

// install returns the init container that copies the worker program to where the image of the run can start it.
func (e *Executor) install(to corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name: "install-worker", Image: e.opts.WorkerImage, ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{"install", programDir}, VolumeMounts: []corev1.VolumeMount{to}, SecurityContext: hardened(),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// hardened returns what the Pod Security level restricted demands of a container, and a root file system that cannot be written.
func hardened() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(userID)), RunAsGroup: new(int64(userID)),
		ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false), Privileged: new(false),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// podBuilder collects volumes with their mounts.
type podBuilder struct {
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
}

func (p *podBuilder) add(name, path string, readOnly bool, source corev1.VolumeSource) {
	p.volumes = append(p.volumes, corev1.Volume{Name: name, VolumeSource: source})
	p.mounts = append(p.mounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
}

// emptyDir is bounded, so that one run cannot fill the disk of its node.
func (p *podBuilder) emptyDir(name, path, limit string) {
	p.add(name, path, false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse(limit))}})
}

// secretMode lets the worker's group read.
const secretMode = 0o440

func (p *podBuilder) project(name, path string, sources []corev1.VolumeProjection) {
	p.add(name, path, true, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: new(int32(secretMode))}})
}

func (p *podBuilder) secret(name, path, secret string) {
	p.add(name, path, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(secretMode))}})
}

// apiAccess is a token of the Pod and the CA bundle of the API server.
func apiAccess() []corev1.VolumeProjection {
	return []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenSeconds))}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
	}
}

// credentials projects the keys of providers and tools, the key of the search service if it exists, and the
// ConfigMaps that the run needs.
func (e *Executor) credentials(run executor.Run) []corev1.VolumeProjection {
	var sources []corev1.VolumeProjection
	add := func(secret, key, to string, optional *bool) {
		sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret},
			Items:                []corev1.KeyToPath{{Key: key, Path: to}}, Optional: optional,
		}})
	}
	for _, s := range run.Secrets {
		switch key := runspec.CredentialKey(s.For.Namespace, s.For.Name); s.Use {
		case plan.ForProvider:
			add(s.Ref.Name, s.Ref.Key, path.Join(runspec.CredentialProviders, key), nil)
		case plan.ForTool:
			add(s.Ref.Name, s.Ref.Key, path.Join(runspec.CredentialTools, key), nil)
		case plan.ForRuntimeToken:
			add(s.Ref.Name, s.Ref.Key, runspec.CredentialRuntimeToken, nil)
		case plan.ForRuntimeKey:
			add(s.Ref.Name, s.Ref.Key, runspec.CredentialRuntimeKey, nil)
		case plan.ForRepository: // for an init container alone
		case plan.ForVariable, plan.ForMount: // the Pod refers to them itself
		case plan.ForPublicationRead, plan.ForPublication, plan.ForForge: // no run gets them
		}
	}
	if run.Task.Spec.Type == v1alpha1.TaskTypeAI && e.opts.SearchURL != "" {
		add(e.opts.SearchSecret, searchKey, runspec.CredentialSearch, new(true))
	}
	for _, m := range run.ConfigMaps {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Name},
			Items:                []corev1.KeyToPath{{Key: m.Key, Path: path.Join(runspec.CredentialConfigMaps, runspec.ConfigMapKey(m.Namespace, m.Name, m.Key))}},
		}})
	}
	return sources
}

// environ returns the worker's environment. It contains the variables of a task of type container, which the platform's
// override. Those of other tasks are for the programs that they run and not for the worker, which has the keys of the
// run, so they have other names here.
func (e *Executor) environ(run executor.Run) []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: "HOME", Value: homeDir}, {Name: "TMPDIR", Value: tempDir}}
	contained := run.Task.Spec.Type == v1alpha1.TaskTypeContainer
	own := e.ownEnv(run, contained)
	add := func(v corev1.EnvVar) bool {
		same := func(o corev1.EnvVar) bool { return o.Name == v.Name }
		if v.Name == runspec.EnvSecretEnv || strings.HasPrefix(v.Name, "KUBERNETES_SERVICE_") || slices.ContainsFunc(own, same) {
			return false
		}
		env = append(slices.DeleteFunc(env, same), v)
		return true
	}
	var secret []string
	for _, v := range run.Task.Spec.Env {
		if absent(run, v) {
			continue
		}
		if !contained {
			v.Name = runspec.EnvTaskVariable + v.Name
		}
		if add(v) && v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			secret = append(secret, v.Name)
		}
	}
	env = append(env, own...)
	return append(env, corev1.EnvVar{Name: runspec.EnvSecretEnv, Value: strings.Join(secret, ",")})
}

// absent reports whether a variable is that of a Secret's key which did not exist when the run was planned. The kubelet would look
// it up again, without the rules that the plan applies.
func absent(run executor.Run, v corev1.EnvVar) bool {
	if v.ValueFrom == nil || v.ValueFrom.SecretKeyRef == nil {
		return false
	}
	r := v.ValueFrom.SecretKeyRef
	return slices.Contains(run.Absent, v1alpha1.KeyReference{Name: r.Name, Key: r.Key})
}

// ownEnv returns the platform's variables, including empty ones, because a task may not set them.
func (e *Executor) ownEnv(run executor.Run, contained bool) []corev1.EnvVar {
	var credentials string
	if len(e.credentials(run)) > 0 {
		credentials = credentialsDir
	}
	secretDirs := []string{secretTaskDir, secretAgentDir}
	if run.TransactionSecret != "" {
		secretDirs = append(secretDirs, transactionDir)
	}
	answer, baseline, program := e.workspaceEnv(run)
	agentImage := ""
	if run.Task.Spec.Type == v1alpha1.TaskTypeAgent && run.Remote == nil {
		agentImage = e.image(run)
	}
	env := []corev1.EnvVar{
		{Name: runspec.EnvTaskName, Value: run.Name},
		{Name: runspec.EnvTaskNamespace, Value: run.Namespace},
		{Name: runspec.EnvTaskUID, Value: string(run.UID)},
		{Name: runspec.EnvAttempt, Value: strconv.Itoa(int(run.Attempt))},
	}
	for _, n := range runspec.Names(run.Task) {
		env = append(env, corev1.EnvVar{Name: n[0], Value: n[1]})
	}
	env = append(env, []corev1.EnvVar{
		{Name: runspec.EnvControllerURL, Value: e.opts.APIURL},
		{Name: runspec.EnvCAFile, Value: path.Join(apiDir, "ca.crt")},
		{Name: runspec.EnvTokenPath, Value: path.Join(apiDir, "token")},
		{Name: runspec.EnvCredentials, Value: credentials},
		{Name: runspec.EnvSecretHosts, Value: secretHosts(run.Secrets)},
		{Name: runspec.EnvSecretDirs, Value: strings.Join(secretDirs, ":")},
		{Name: runspec.EnvWorkDir, Value: workDir},
		{Name: runspec.EnvArtifactsDir, Value: artifactsDir},
		{Name: runspec.EnvTerminationLog, Value: terminationLog},
		{Name: runspec.EnvSpoolDir, Value: spoolDir},
		{Name: runspec.EnvDeliver, Value: "false"},
		{Name: runspec.EnvDeliveryTime, Value: (deliverySeconds * time.Second).String()},
		{Name: runspec.EnvContained, Value: strconv.FormatBool(contained)},
		{Name: runspec.EnvHostCommands, Value: "false"},
		{Name: runspec.EnvSandbox, Value: e.sandbox()},
	}...)
	for _, name := range runspec.OperatorEnv() {
		value := map[string]string{
			runspec.EnvWebFetchAllow: strings.Join(e.opts.WebFetchAllow, ","), runspec.EnvSearchURL: e.opts.SearchURL, runspec.EnvWorkspaceAnswer: answer,
			runspec.EnvWorkspaceBaseline: baseline, runspec.EnvWorkspaceProgram: program, runspec.EnvAgentImage: agentImage, runspec.EnvRemote: literal(executor.RemoteEnv(run)),
		}[name]
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	transaction := executor.TransactionEnv(run, e.opts.Exchange, path.Join(transactionDir, v1alpha1.TransactionTokenKey))
	for _, name := range slices.Sorted(maps.Keys(transaction)) { // so that a Job looks the same each time it is built
		env = append(env, corev1.EnvVar{Name: name, Value: literal(transaction[name])})
	}
	return append(env, corev1.EnvVar{Name: "POD_NAMESPACE", Value: run.Namespace})
}

// literal returns the value of a variable in which the kubelet, which replaces $(NAME) and $$, finds the text.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// secretHosts returns a runspec.SecretHosts, as JSON with its keys in order, or an empty text if no Secret has a rule.
func secretHosts(secrets []plan.Secret) string {
	var hosts runspec.SecretHosts
	for _, s := range secrets {
		switch key := runspec.CredentialKey(s.For.Namespace, s.For.Name); s.Use {
		case plan.ForProvider:
			hosts.Provider(key, s.Hosts)
		case plan.ForTool:
			hosts.Tool(key, s.Hosts)
		case plan.ForRepository, plan.ForRuntimeToken, plan.ForRuntimeKey: // which are sent to one address, if anywhere
		case plan.ForPublicationRead, plan.ForPublication, plan.ForForge:
		case plan.ForVariable, plan.ForMount: // programs get these values, and could send them anywhere
		}
	}
	if hosts.Providers == nil && hosts.Tools == nil {
		return ""
	}
	text, _ := json.Marshal(hosts) //nolint:errchkjson // it consists of strings alone
	return string(text)
}

// sandbox returns a runspec.Sandbox as constant text, so that a Job looks the same each time it is built.
func (e *Executor) sandbox() string {
	if e.opts.SandboxOff {
		return `{"off":true}`
	}
	return ""
}

// resources returns the resources of the run, completed by defaults. A default never contradicts what was given.
func (e *Executor) resources(run executor.Run) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{}
	if run.Resources != nil {
		r = *run.Resources.DeepCopy()
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	if _, ok := r.Limits[corev1.ResourceMemory]; !ok {
		limit := e.opts.MemoryLimit.DeepCopy()
		if run.MemoryBytes > 0 {
			limit = *resource.NewQuantity(run.MemoryBytes, resource.BinarySI)
		}
		if request, ok := r.Requests[corev1.ResourceMemory]; ok && request.Cmp(limit) > 0 {
			limit = request
		}
		r.Limits[corev1.ResourceMemory] = limit
	}
	for name, least := range map[corev1.ResourceName]string{corev1.ResourceCPU: "100m", corev1.ResourceMemory: "128Mi"} {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		request := resource.MustParse(least)
		if limit, ok := r.Limits[name]; ok && limit.Cmp(request) < 0 {
			request = limit
		}
		r.Requests[name] = request
	}
	return r
}

// tolerations returns the run's tolerations, and those that say how long its pod stays on a node that does not
// answer.
func (e *Executor) tolerations(own []corev1.Toleration) []corev1.Toleration {
	all := slices.Clone(own)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(own, func(t corev1.Toleration) bool {
			return t.Key == key && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute)
		})
		if !tolerated {
			all = append(all, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(e.opts.UnreachableTimeout / time.Second)),
			})
		}
	}
	return all
}
