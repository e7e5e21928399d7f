// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// lookedFor turns the error of a read into a refusal.Error if the object does not exist. Other errors say nothing
// about the task; they are returned with the kind and name of the object.
func lookedFor(err error, kind string, key types.NamespacedName) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return refusal.Missing(v1alpha1.ReasonNotFound(kind), "%s %q does not exist in namespace %q", kind, key.Name, key.Namespace)
	default:
		return fmt.Errorf("%s %s: %w", kind, key, err)
	}
}
