// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan/command"
)

// Place describes what the place where tasks run supports. Each No… field is the message with which something is
// refused there, and empty if it is allowed. The zero Place refuses references to other namespaces and nothing else.
type Place struct {
	// OtherNamespaces allows references to Agents, Providers and Secrets of other namespaces.
	OtherNamespaces bool
	// Pods is set where runs are Pods, which get Secrets and ConfigMaps of their own namespace only.
	Pods bool
	// NoContainers refuses tasks of type container.
	NoContainers string
	// NoImages refuses tasks of type container that name an image.
	NoImages string
	// NoPrograms refuses everything that runs programs: tasks of type container, and the tool code_exec.
	NoPrograms string
	// NoNetwork refuses the tool code_exec for Agents whose programs are to have the network, and the commands that they delegate.
	NoNetwork string
	// NoMounts refuses tasks that mount a Secret. Where runs are processes, its files would lie in the folder of the run, beside what the
	// run leaves; spec.env passes single values.
	NoMounts string
	// NoRepositories refuses tasks with a workspace.
	NoRepositories string
	// NoPublication refuses tasks that change their repository.
	NoPublication string
	// NoPodFields refuses variables of a task that come from the fields of a Pod.
	NoPodFields string
	// Lacks returns what a built-in tool lacks there and how to provide it; empty if it lacks nothing. It is nil if
	// this is not known.
	Lacks func(tool string) string
	// Runtime returns why coding agents of a type cannot be run there, and what to do; empty if they can. It is nil where none can.
	Runtime func(t v1alpha1.AgentRuntimeType) string
	// RequireHosts refuses Secrets that do not name the hosts to which their values may be sent.
	RequireHosts bool
	// Started is set by a worker that plans its own run. The environment and the mounts were decided before the run
	// was started, and are not checked again.
	Started bool
}

// command returns what concerns tasks of type container.
func (p Place) command() command.Place {
	return command.Place{NoContainers: p.NoContainers, NoPrograms: p.NoPrograms, NoImages: p.NoImages, NoPodFields: p.NoPodFields, NoNetwork: p.NoNetwork}
}

// Reader reads what tasks refer to. If an object does not exist, the error is one that apierrors.IsNotFound
// recognises. Make returns any other error as it is: it says nothing about the task.
type Reader interface {
	Agent(ctx context.Context, key types.NamespacedName) (*v1alpha1.Agent, error)
	Provider(ctx context.Context, key types.NamespacedName) (*v1alpha1.Provider, error)
	// Providers returns all Providers of a namespace.
	Providers(ctx context.Context, namespace string) ([]v1alpha1.Provider, error)
	Skill(ctx context.Context, key types.NamespacedName) (*v1alpha1.Skill, error)
	Tool(ctx context.Context, key types.NamespacedName) (*v1alpha1.Tool, error)
	// ConnectorProviders returns those of a namespace; for a worker, those that the bindings of its task name.
	ConnectorProviders(ctx context.Context, namespace string) ([]v1alpha1.ConnectorProvider, error)
	// Connection is not asked of the Reader of a worker.
	Connection(ctx context.Context, key types.NamespacedName) (*v1alpha1.Connection, error)
	AgentRuntime(ctx context.Context, key types.NamespacedName) (*v1alpha1.AgentRuntime, error)
	// ConfigMapKey returns the value of a key; false if the ConfigMap lacks it.
	ConfigMapKey(ctx context.Context, key types.NamespacedName, name string) (string, bool, error)
	// HasSecret reports whether the Secret has the key with a value that is not empty, and to which hosts the value may
	// be sent. For a Secret that is to be mounted it reports whether the Secret exists.
	HasSecret(ctx context.Context, s Secret) (bool, egress.Hosts, error)
}

// ConfigMap is a key of a ConfigMap that a run needs.
type ConfigMap struct {
	types.NamespacedName
	Key, Value string
}

// SecretUse is what a run needs a Secret for.
type SecretUse string

// Uses of Secrets.
const (
	// ForProvider: the API key of a Provider.
	ForProvider SecretUse = "Provider"
	// ForTool: the credential of a Tool.
	ForTool SecretUse = "Tool"
	// ForRuntimeToken and ForRuntimeKey: the controller token and the operation key of an AgentRuntime. The key is sent nowhere.
	ForRuntimeToken SecretUse = "RuntimeToken"
	ForRuntimeKey   SecretUse = "RuntimeKey"
	// ForVariable: the value of a variable of the task.
	ForVariable SecretUse = "Variable"
	// ForRepository: the credential that the task's repository is read with.
	ForRepository SecretUse = "Repository"
	// ForPublicationRead, ForPublication and ForForge: the credentials that the publication branch is looked at with, is moved with, and
	// that pull requests are made with. No run gets them.
	ForPublicationRead SecretUse = "PublicationRead"
	ForPublication     SecretUse = "Publication"
	ForForge           SecretUse = "Forge"
	// ForMount: the whole Secret, as files.
	ForMount SecretUse = "Mount"
)

// Secret is a key of a Secret that a run needs.
type Secret struct {
	Use SecretUse
	// For names the Provider, the Tool or the AgentRuntime, or holds the task's namespace and the name of the variable. It is empty for
	// a mount.
	For types.NamespacedName
	// Namespace is the namespace of the Secret.
	Namespace string
	// Ref names the Secret and its key; a mount has no key.
	Ref v1alpha1.KeyReference
	// Hosts is where the value may be sent. Make sets it.
	Hosts egress.Hosts
}
