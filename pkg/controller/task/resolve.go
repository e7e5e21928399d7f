// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/reader"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/support"
)

// refusal is why a task cannot run as it is written.
type refusal struct {
	reason  string
	message string
	// missing is set where the cause is an object that may still come.
	missing bool
}

func (r *refusal) Error() string { return r.message }

func missing(reason, format string, args ...any) error {
	return &refusal{reason: reason, message: messagef(format, args...), missing: true}
}

func refuse(reason, format string, args ...any) error {
	return &refusal{reason: reason, message: messagef(format, args...)}
}

// resolved is what a run of a task is started with, of what its plan says.
type resolved struct {
	agentName    string
	providerName string
	model        string
	resources    *corev1.ResourceRequirements
	// placement and agentSecret are the Agent's.
	placement   *v1alpha1.ExecutionPlacement
	agentSecret string
	// credentials are the values that the run needs, or secrets are the references.
	credentials runspec.Credentials
	secrets     []executor.Secret
	// configMaps are those whose values are not among the credentials.
	configMaps []executor.ConfigMap
	// mayPark reports whether the run may have to wait for a person.
	mayPark bool
	// left is what the run does not get, and does without.
	left []string
}

// resolver plans a task for the place where its run would be, and collects the credentials of the run.
type resolver struct {
	// cached is asked first, live for what is not there.
	cached, live client.Reader
	place        plan.Place
	searchKey    string
	// byReference leaves the values of secrets where they are.
	byReference bool
	// local is set where runs are processes of this machine.
	local bool
}

// newResolver makes the resolver of a controller's options.
func newResolver(o Options, cached, live client.Reader) *resolver {
	r := &resolver{
		cached: cached, live: live, searchKey: o.SearchKey, byReference: o.Executor.ByReference(), local: o.LocalRuns,
		place: plan.Place{
			OtherNamespaces: o.CrossNamespaceRefs, Pods: o.Executor.ByReference(),
			NoContainers: o.ContainerRefusal, NoImages: o.ImageRefusal, NoPrograms: o.ProgramRefusal, NoMounts: o.MountRefusal,
		},
	}
	if o.LocalRuns {
		r.place.NoPodFields = "runs of this server are commands of its own machine; set value, or use a Secret or a ConfigMap"
	}
	if host, ok := o.Executor.(executor.ToolHost); ok {
		r.place.Lacks = host.Lacks
	}
	return r
}

// resolve gives a refusal when the task cannot run, and another error when that is not known.
func (r *resolver) resolve(ctx context.Context, t *v1alpha1.Task) (*resolved, error) {
	res := &resolved{}
	from := reader.Reader{Cached: r.cached, Live: r.live}
	if !r.byReference {
		from.OnSecret = res.credential
	}
	p, err := plan.Make(ctx, from, r.place, t)
	if refused, ok := errors.AsType[*plan.RefusedError](err); ok {
		return nil, &refusal{reason: refused.Reason, message: refused.Message, missing: refused.Missing}
	}
	if err != nil {
		return nil, err
	}
	res.mayPark, res.left = p.MayPark, p.Notes
	if a := p.Agent; a != nil {
		res.agentName, res.resources, res.placement = a.Name, a.Spec.Resources, a.Spec.Execution
		if a.Spec.SecretRef != nil {
			res.agentSecret = a.Spec.SecretRef.Name
		}
	}
	if len(p.Candidates) > 0 {
		res.providerName, res.model = p.Candidates[0].Provider.Name, p.Candidates[0].Model
	}
	if r.byReference {
		res.secrets = references(p.Secrets)
		for _, m := range p.ConfigMaps {
			res.configMaps = append(res.configMaps, executor.ConfigMap{Name: m.Name, Key: m.Key})
		}
	} else {
		res.values(p.ConfigMaps)
		if t.Spec.Type == v1alpha1.TaskTypeAI {
			res.credentials.SearchKey = r.searchKey
		}
	}
	r.note(t, res)
	return res, nil
}

// credential keeps the value of a Secret for the run.
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
	case plan.ForTool:
		keep(&r.credentials.ToolKeys, key)
	case plan.ForVariable:
		keep(&r.credentials.Env, s.For.Name)
	case plan.ForMount:
	}
}

// values keeps the values of ConfigMaps for the run.
func (r *resolved) values(maps []plan.ConfigMap) {
	if len(maps) > 0 {
		r.credentials.ConfigMaps = map[string]string{}
	}
	for _, m := range maps {
		r.credentials.ConfigMaps[runspec.ConfigMapKey(m.Namespace, m.Name, m.Key)] = m.Value
	}
}

// references are the Secrets that the executor's host brings to a worker. Variables and mounts are in the Pod's own terms.
func references(secrets []plan.Secret) []executor.Secret {
	var list []executor.Secret
	for _, s := range secrets {
		switch s.Use {
		case plan.ForProvider:
			list = append(list, executor.Secret{Use: executor.ForProvider, For: s.For, Ref: s.Ref})
		case plan.ForTool:
			list = append(list, executor.Secret{Use: executor.ForTool, For: s.For, Ref: s.Ref})
		case plan.ForVariable, plan.ForMount:
		}
	}
	return list
}

// note adds what the run does without because this is not a cluster.
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
