// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/reader"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/support"
)

// resolved is the part of a task's plan that its run is started with.
type resolved struct {
	agentName    string
	providerName string
	model        string
	resources    *corev1.ResourceRequirements
	// placement and agentSecret come from the Agent.
	placement   *v1alpha1.ExecutionPlacement
	agentSecret string
	// runtime is the type of coding agent that the Agent is; empty for none.
	runtime v1alpha1.AgentRuntimeType
	// remote is the registered runtime at which the coding agent is; nil for none.
	remote *runspec.Remote
	// credentials holds the values that the run needs. If the executor works by reference, secrets holds references
	// instead.
	credentials runspec.Credentials
	secrets     []plan.Secret
	// absent are the keys of Secrets that did not exist, and that the run does without.
	absent []v1alpha1.KeyReference
	// transactionSecret is the Secret with the task's transaction token; empty if it has none.
	transactionSecret string
	// configMaps are the keys whose values are not among the credentials.
	configMaps []plan.ConfigMap
	// mayPark reports whether the run may have to wait for a person.
	mayPark bool
	// autonomous is set if the attempt is an iteration of an autonomous task.
	autonomous bool
	// bindings are the linked accounts that its tools use.
	bindings []v1alpha1.TaskConnectionBinding
	// left lists what was asked for and the run does not get.
	left []string
	// skills are those that the run loads.
	skills []types.NamespacedName
}

// resolver plans a task for the place where its run would be, and collects the credentials of the run.
type resolver struct {
	// cached is read first, and live for what it lacks.
	cached, live client.Reader
	place        plan.Place
	searchKey    string
	// byReference collects references to secrets in place of their values.
	byReference bool
	// local is set if runs are processes on this machine.
	local bool
}

// newResolver makes a resolver from the controller's options.
func newResolver(o Options, cached, live client.Reader) *resolver {
	return &resolver{
		cached: cached, live: live, searchKey: o.SearchKey, byReference: o.Executor.ByReference(), local: o.LocalRuns,
		place: PlaceOf(o),
	}
}

// PlaceOf returns the place where the tasks of a controller run. The status of Agents is decided for it as well.
func PlaceOf(o Options) plan.Place {
	p := plan.Place{
		Pods:         o.Executor.ByReference(),
		RequireHosts: o.RequireSecretHosts, NoContainers: o.ContainerRefusal, NoImages: o.ImageRefusal, NoPrograms: o.ProgramRefusal, NoNetwork: o.NetworkRefusal, NoMounts: o.MountRefusal,
		NoRepositories: o.RepositoryRefusal, NoPublication: o.PublicationRefusal,
	}
	if o.LocalRuns {
		p.NoPodFields = "runs of this server are commands of its own machine; set value, or use a Secret or a ConfigMap"
	}
	if host, ok := o.Executor.(executor.ToolHost); ok {
		p.Lacks = host.Lacks
	}
	if host, ok := o.Executor.(executor.AgentHost); ok {
		p.Runtime = host.LacksAgent
	}
	return p
}

// resolve returns a *refusal.Error if the task cannot run, and another error if that could not be decided.
func (r *resolver) resolve(ctx context.Context, t *v1alpha1.Task) (*resolved, error) {
	res := &resolved{}
	from := reader.Reader{Cached: r.cached, Live: r.live}
	if !r.byReference {
		from.OnSecret = res.credential
	}
	p, err := plan.Make(ctx, from, r.place, t)
	if err != nil {
		return nil, err
	}
	res.absent, res.bindings = p.Absent, p.Bindings
	res.mayPark, res.left, res.autonomous = p.MayPark, p.Notes, p.Autonomous
	for _, s := range p.Skills {
		res.skills = append(res.skills, client.ObjectKeyFromObject(s))
	}
	if a := p.Agent; a != nil {
		res.agentName, res.resources, res.placement = a.Name, a.Spec.Resources, a.Spec.Execution
		if a.Spec.SecretRef != nil {
			res.agentSecret = a.Spec.SecretRef.Name
		}
		if a.Spec.Runtime != nil {
			res.runtime = a.Spec.Runtime.Type
		}
	}
	res.remote = remoteOf(p.Runtime)
	if len(p.Candidates) > 0 {
		res.providerName, res.model = p.Candidates[0].Provider.Name, p.Candidates[0].Model
	}
	if r.byReference {
		res.secrets, res.configMaps = p.Secrets, p.ConfigMaps
	} else {
		res.values(p.ConfigMaps)
		if t.Spec.Type == v1alpha1.TaskTypeAI {
			res.credentials.SearchKey = r.searchKey
		}
	}
	r.note(t, res)
	return res, r.transactionToken(ctx, t, res)
}

// credential adds the value of a Secret to the run's credentials.
func (r *resolved) credential(s plan.Secret, value []byte) {
	keep := func(values *map[string]string, key string) {
		if *values == nil {
			*values = map[string]string{}
		}
		(*values)[key] = string(value)
	}
	switch key := runspec.CredentialKey(s.For.Namespace, s.For.Name); s.Use {
	case plan.ForProvider:
		keep(&r.credentials.ProviderKeys, key)
		r.credentials.Hosts.Provider(key, s.Hosts)
	case plan.ForTool:
		keep(&r.credentials.ToolKeys, key)
		r.credentials.Hosts.Tool(key, s.Hosts)
	case plan.ForVariable:
		keep(&r.credentials.Env, s.For.Name)
	case plan.ForRepository:
		r.credentials.RepositoryToken, r.credentials.Hosts.Repository = string(value), s.Hosts
	case plan.ForRuntimeToken:
		r.credentials.RuntimeToken = string(value)
	case plan.ForRuntimeKey:
		r.credentials.RuntimeKey = string(value)
	case plan.ForMount, plan.ForPublicationRead, plan.ForPublication, plan.ForForge:
	}
}

// values adds the values of ConfigMaps to the run's credentials.
func (r *resolved) values(maps []plan.ConfigMap) {
	if len(maps) > 0 {
		r.credentials.ConfigMaps = map[string]string{}
	}
	for _, m := range maps {
		r.credentials.ConfigMaps[runspec.ConfigMapKey(m.Namespace, m.Name, m.Key)] = m.Value
	}
}

// note adds which settings have no effect because this is not a cluster.
func (r *resolver) note(t *v1alpha1.Task, res *resolved) {
	if !r.local {
		return
	}
	resources := t.Spec.Resources
	if resources == nil {
		resources = res.resources
	}
	res.left = append(support.Local("spec", placement(t.Spec.Execution, res.placement), resources), res.left...)
}
