// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Place is what only the place where tasks run knows. Each No… is why something is refused there, in the words of the
// operator's host, and empty where it is not. The zero Place refuses references to other namespaces and nothing else.
type Place struct {
	// OtherNamespaces allows references to Agents, Providers and Secrets of other namespaces.
	OtherNamespaces bool
	// Pods is set where runs are Pods, which get Secrets and ConfigMaps of their own namespace only.
	Pods bool
	// NoContainers refuses tasks of type container.
	NoContainers string
	// NoImages refuses tasks of type container that name an image.
	NoImages string
	// NoPrograms refuses whatever runs programs: tasks of type container, and the tool code_exec.
	NoPrograms string
	// NoMounts refuses Secrets that are to be mounted.
	NoMounts string
	// NoPodFields refuses variables of a command that come from the fields of a Pod.
	NoPodFields string
	// Lacks says what a built-in tool lacks there, and how it can be had; empty for nothing. It is nil where nobody knows.
	Lacks func(tool string) string
	// Started is set by a run about itself. Its environment and its mounts were decided before it was started, and are
	// not looked for again.
	Started bool
}

// Reader reads what tasks refer to. An object that does not exist is an error that apierrors.IsNotFound recognises; any
// other error says nothing about the task, and Make returns it as it is.
type Reader interface {
	Agent(ctx context.Context, key types.NamespacedName) (*v1alpha1.Agent, error)
	Provider(ctx context.Context, key types.NamespacedName) (*v1alpha1.Provider, error)
	// Providers returns all Providers of a namespace.
	Providers(ctx context.Context, namespace string) ([]v1alpha1.Provider, error)
	Skill(ctx context.Context, key types.NamespacedName) (*v1alpha1.Skill, error)
	Tool(ctx context.Context, key types.NamespacedName) (*v1alpha1.Tool, error)
	// ConfigMapKey returns the value of a key; false where the ConfigMap lacks it.
	ConfigMapKey(ctx context.Context, key types.NamespacedName, name string) (string, bool, error)
	// HasSecret reports whether there is a value: false where the Secret lacks the key or the value is empty. Of a Secret
	// that is to be mounted it reports true if it exists.
	HasSecret(ctx context.Context, s Secret) (bool, error)
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
	// ForVariable: the value of a variable of the task.
	ForVariable SecretUse = "Variable"
	// ForMount: the whole Secret, as files.
	ForMount SecretUse = "Mount"
)

// Secret is a key of a Secret that a run needs.
type Secret struct {
	Use SecretUse
	// For is the Provider or the Tool, or the task's namespace and the name of the variable; empty for a mount.
	For types.NamespacedName
	// Namespace is that of the Secret.
	Namespace string
	// Ref names the Secret and its key; a mount has no key.
	Ref v1alpha1.KeyReference
}
