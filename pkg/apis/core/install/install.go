// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install puts the API group core.platform.ai into a server's scheme.
package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Install adds every kind of the group to scheme, as v1alpha1 and as the
// internal version that generic servers convert to. Both are the same Go type,
// so no conversion code exists. Field selectors become known by the Register
// method of each resource's Definition.
func Install(scheme *runtime.Scheme) error {
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("add %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}, v1alpha1.KnownTypes()...)
	return scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion)
}
