// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/support"
	tools "github.com/platform-ai/platform/pkg/worker/tool"
)

// toolPrograms is the built-in tool that runs programs.
const toolPrograms = "code_exec"

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

// resolved is what a task refers to.
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
	// mayPark tells that the run may have to wait for a person.
	mayPark bool
	// left is what the run does not get, and does without.
	left []string
}

// liveReader reads through a cache where there is one, and from the server on demand.
type liveReader interface {
	client.Reader
	// GetLive reads from the server.
	GetLive(ctx context.Context, key types.NamespacedName, o client.Object) error
}

// GetLive reads from the server.
func (w *wire) GetLive(ctx context.Context, key types.NamespacedName, o client.Object) error {
	return w.live.Get(ctx, key, o)
}

// resolver finds what a task refers to, and collects the credentials of its run.
type resolver struct {
	reader           liveReader
	crossNamespace   bool
	containerRefusal string
	imageRefusal     string
	programRefusal   string
	mountRefusal     string
	searchKey        string
	// byReference leaves the values of secrets where they are.
	byReference bool
	// lacks says what a built-in tool lacks where runs are, and is nil where nobody knows.
	lacks func(tool string) string
	// local is set where runs are processes of this machine.
	local bool
}

// resolve gives a refusal when the task cannot run, and another error when that is not known.
func (r *resolver) resolve(ctx context.Context, t *v1alpha1.Task) (*resolved, error) {
	if s := t.Spec.SecretRef; s != nil {
		key, err := r.key(t.Namespace, s, "Secret")
		if err != nil {
			return nil, err
		}
		if err := r.mounted(ctx, t.Namespace, key); err != nil {
			return nil, err
		}
	}
	res := &resolved{}
	if err := supported(support.Refused(support.Task(t)), ""); err != nil {
		return nil, err
	}
	if err := r.env(ctx, t, res); err != nil {
		return nil, err
	}
	switch t.Spec.Type {
	case v1alpha1.TaskTypeContainer:
		err := r.container(t)
		r.note(t, res)
		return res, err
	case v1alpha1.TaskTypeAI:
		err := r.ai(ctx, t, res)
		r.note(t, res)
		return res, err
	case v1alpha1.TaskTypeAgent:
		return nil, refuse(v1alpha1.ReasonRuntimeNotAvailable, "tasks of type agent need an agent runtime, and this server has none")
	default:
		return nil, refuse(v1alpha1.ReasonUnknownType, "tasks of type %q are not known", t.Spec.Type)
	}
}

// supported refuses gaps; a task that was stored before they were refused when written comes here. owner is the
// agent that they are of, or empty.
func supported(gaps []support.Gap, owner string) error {
	if len(gaps) == 0 {
		return nil
	}
	if owner != "" {
		owner = fmt.Sprintf("agent %q: ", owner)
	}
	return refuse(v1alpha1.ReasonNotSupported, "%s%s", owner, gaps[0])
}

// note collects what the run does without, where this is not a cluster.
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

func (r *resolver) container(t *v1alpha1.Task) error {
	switch {
	case r.containerRefusal != "":
		return refuse(v1alpha1.ReasonRefused, "%s", r.containerRefusal)
	case r.programRefusal != "":
		return refuse(v1alpha1.ReasonSandboxUnavailable, "%s", r.programRefusal)
	case r.imageRefusal != "" && t.Spec.Image != "":
		return refuse(v1alpha1.ReasonImageNotUsed, "spec.image is %s: %s", t.Spec.Image, r.imageRefusal)
	case len(t.Spec.Command) == 0:
		return refuse(v1alpha1.ReasonCommandRequired, "spec.command is required: the worker runs the command, and cannot know what an image would run by itself")
	}
	return nil
}

func (r *resolver) ai(ctx context.Context, t *v1alpha1.Task, res *resolved) error {
	if !r.byReference {
		res.credentials.SearchKey = r.searchKey
	}
	agent, err := r.agent(ctx, t)
	if err != nil {
		return err
	}
	ai := t.Spec.AI
	if ai == nil {
		ai = &v1alpha1.TaskAI{}
	}
	var spec v1alpha1.AgentSpec
	agentNamespace := t.Namespace
	if agent != nil {
		spec, agentNamespace = agent.Spec, agent.Namespace
		if err := supported(support.AgentOf(t, &spec), agent.Name); err != nil {
			return err
		}
		res.agentName, res.resources, res.placement = agent.Name, spec.Resources, spec.Execution
		if spec.SecretRef != nil {
			res.agentSecret = spec.SecretRef.Name
		}
		res.mayPark = spec.Coordination != nil && len(spec.Coordination.ApprovalRequiredTools) > 0
		if spec.Runtime != nil {
			return refuse(v1alpha1.ReasonIncompatibleAgent, "agent %q has a runtime; a task of type ai needs an agent with a provider", agent.Name)
		}
	}
	if t.Spec.Prompt == "" && ai.Prompt == "" && (t.Spec.SessionRef == nil || !t.Spec.SessionRef.PromptIncluded) {
		return refuse(v1alpha1.ReasonNoPrompt, "the task has no prompt")
	}
	if err := r.provider(ctx, t, ai, spec, agentNamespace, res); err != nil {
		return err
	}
	if err := r.texts(ctx, t.Namespace, ai, agentNamespace, spec); err != nil {
		return err
	}
	return r.tools(ctx, t, ai, agentNamespace, spec, res)
}

func (r *resolver) agent(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Agent, error) {
	if t.Spec.AgentRef == nil {
		return nil, nil //nolint:nilnil // a task needs no agent
	}
	key, err := r.key(t.Namespace, t.Spec.AgentRef, "Agent")
	if err != nil {
		return nil, err
	}
	a := &v1alpha1.Agent{}
	if err := r.get(ctx, key, a, "Agent"); err != nil {
		return nil, err
	}
	if a.Spec.SecretRef != nil {
		if err := r.mounted(ctx, t.Namespace, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.SecretRef.Name}); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// provider finds the model and the keys of all providers that the run may use.
func (r *resolver) provider(ctx context.Context, t *v1alpha1.Task, ai *v1alpha1.TaskAI, agent v1alpha1.AgentSpec, agentNamespace string, res *resolved) error {
	model := agent.Model
	if model == nil {
		model = &v1alpha1.AgentModel{}
	}
	var p *v1alpha1.Provider
	var err error
	switch {
	case ai.ProviderRef != nil:
		p, err = r.namedProvider(ctx, t.Namespace, ai.ProviderRef)
	case ai.Provider == "" && agent.ProviderRef != nil:
		p, err = r.namedProvider(ctx, agentNamespace, agent.ProviderRef)
	case ai.Provider != "":
		p, err = r.onlyProvider(ctx, t.Namespace, ai.Provider)
	case model.Provider != "":
		p, err = r.onlyProvider(ctx, agentNamespace, model.Provider)
	default:
		err = refuse(v1alpha1.ReasonNoProvider, "neither the task nor its agent names a provider")
	}
	if err != nil {
		return err
	}
	res.providerName = p.Name
	if res.model = firstOf(ai.Model, model.Name, p.Spec.DefaultModel); res.model == "" && p.Spec.Azure != nil {
		res.model = p.Spec.Azure.DeploymentName
	}
	if res.model == "" {
		return refuse(v1alpha1.ReasonNoModel, "no model is named: not by the task, its agent or provider %q", p.Name)
	}
	if err := r.providerKey(ctx, t, p, res); err != nil {
		return err
	}
	for _, f := range model.Fallbacks {
		if f.ProviderRef == nil {
			continue
		}
		fp, err := r.namedProvider(ctx, agentNamespace, f.ProviderRef)
		if err != nil {
			return err
		}
		if err := r.providerKey(ctx, t, fp, res); err != nil {
			return err
		}
	}
	return nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func (r *resolver) namedProvider(ctx context.Context, namespace string, ref *v1alpha1.NamespacedReference) (*v1alpha1.Provider, error) {
	key, err := r.key(namespace, ref, "Provider")
	if err != nil {
		return nil, err
	}
	p := &v1alpha1.Provider{}
	return p, r.get(ctx, key, p, "Provider")
}

// onlyProvider is the one Provider of a vendor's protocol in a namespace.
func (r *resolver) onlyProvider(ctx context.Context, namespace string, typ v1alpha1.ProviderType) (*v1alpha1.Provider, error) {
	var list v1alpha1.ProviderList
	if err := r.reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	var found *v1alpha1.Provider
	for i := range list.Items {
		if list.Items[i].Spec.Type != typ {
			continue
		}
		if found != nil {
			return nil, refuse(v1alpha1.ReasonAmbiguousProvider, "more than one Provider has type %q; name one with providerRef", typ)
		}
		found = &list.Items[i]
	}
	if found == nil {
		return nil, missing(v1alpha1.ReasonProviderNotFound, "no Provider of type %q exists in namespace %q", typ, namespace)
	}
	return found, nil
}

func (r *resolver) providerKey(ctx context.Context, t *v1alpha1.Task, p *v1alpha1.Provider, res *resolved) error {
	ref := v1alpha1.KeyReference{Name: p.Spec.SecretRef.Name, Key: firstOf(p.Spec.SecretRef.Key, "api-key")}
	return r.keep(ctx, t, res, p.Namespace, executor.Secret{Use: executor.ForProvider, For: p.Name, Ref: ref})
}

// texts checks that skills and prompts are there. The worker reads them itself.
func (r *resolver) texts(ctx context.Context, namespace string, ai *v1alpha1.TaskAI, agentNamespace string, agent v1alpha1.AgentSpec) error {
	if p := agent.SystemPrompt; p != nil && p.ConfigMapRef != nil && ai.SystemPrompt == "" {
		if err := r.configMap(ctx, agentNamespace, p.ConfigMapRef); err != nil {
			return err
		}
	}
	for _, of := range []struct {
		namespace string
		skills    []v1alpha1.SkillReference
	}{{agentNamespace, agent.Skills}, {namespace, ai.Skills}} {
		for _, s := range of.skills {
			var err error
			if s.ConfigMapRef != nil {
				err = r.configMap(ctx, of.namespace, s.ConfigMapRef)
			} else {
				err = r.get(ctx, types.NamespacedName{Namespace: of.namespace, Name: s.Name}, &v1alpha1.Skill{}, "Skill")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tools refuses tools that cannot work, and collects the credentials of custom
// ones. Names that are no Tool are built in, or unknown to everybody, which is tolerated.
func (r *resolver) tools(ctx context.Context, t *v1alpha1.Task, ai *v1alpha1.TaskAI, agentNamespace string, agent v1alpha1.AgentSpec, res *resolved) error {
	for _, name := range ai.Tools {
		if err := r.tool(ctx, t, t.Namespace, name, res); err != nil {
			return err
		}
	}
	for _, tool := range agent.Tools {
		if tool.Enabled != nil && !*tool.Enabled {
			continue
		}
		if err := r.tool(ctx, t, agentNamespace, tool.Name, res); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) tool(ctx context.Context, t *v1alpha1.Task, namespace, name string, res *resolved) error {
	if r.lacks != nil {
		if what := r.lacks(name); what != "" {
			return refuse(v1alpha1.ReasonToolUnavailable, "the tool %s cannot work here: %s; or take it from the tools of the task and its agent", name, what)
		}
	}
	return r.toolKey(ctx, t, namespace, name, res)
}

func (r *resolver) toolKey(ctx context.Context, t *v1alpha1.Task, namespace, name string, res *resolved) error {
	if name == toolPrograms && r.programRefusal != "" {
		return refuse(v1alpha1.ReasonSandboxUnavailable, "tool %s: %s", name, r.programRefusal)
	}
	tool := &v1alpha1.Tool{}
	err := r.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, tool)
	if apierrors.IsNotFound(err) {
		if !tools.Builtin(name) {
			res.left = append(res.left, support.UnknownTool("tools", name))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("tool: %w", err)
	}
	if tool.Spec.HTTP == nil || tool.Spec.HTTP.AuthSecretRef == nil {
		return nil
	}
	return r.keep(ctx, t, res, namespace, executor.Secret{Use: executor.ForTool, For: name, Ref: *tool.Spec.HTTP.AuthSecretRef})
}
