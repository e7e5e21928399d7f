// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

func validate(_ context.Context, r *v1alpha1.AgentRuntime) field.ErrorList {
	spec := field.NewPath("spec")
	// Without TLS the runtime's tokens could be read on the way.
	errs := rule.URL{Schemes: []string{"https"}}.Check(r.Spec.Deployment.Endpoint, spec.Child("deployment", "endpoint"))
	errs = append(errs, validateAuth(r, spec.Child("clientAuth"))...)
	c := r.Spec.Capabilities
	if c == nil {
		return errs
	}
	path := spec.Child("capabilities")
	if c.Profile != nil {
		errs = append(errs, rule.Profile(c.Profile, path.Child("profile"))...)
	}
	if g := c.WorkspaceGovernance; g != nil && g.Mode == v1alpha1.GovernanceTrusted && !g.Trusted {
		errs = append(errs, field.Invalid(path.Child("workspaceGovernance", "trusted"), false, "must be true with mode trusted-non-governed"))
	}
	if l := c.Limits; l != nil && l.MinPromptLeaseMillis != nil && l.MaxPromptLeaseMillis != nil && *l.MinPromptLeaseMillis > *l.MaxPromptLeaseMillis {
		errs = append(errs, field.Invalid(path.Child("limits", "minPromptLeaseMillis"), *l.MinPromptLeaseMillis, "must not exceed maxPromptLeaseMillis"))
	}
	return errs
}

// validateAuth requires exactly the Secrets of the contract's version.
func validateAuth(r *v1alpha1.AgentRuntime, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	version, auth := r.Spec.ContractVersion, &r.Spec.ClientAuth
	for _, s := range []struct {
		name string
		ref  *v1alpha1.KeyReference
		of   v1alpha1.RuntimeContractVersion
	}{
		{"bearerTokenSecretRef", auth.BearerTokenSecretRef, v1alpha1.HarnessV1},
		{"controllerBearerTokenSecretRef", auth.ControllerBearerTokenSecretRef, v1alpha1.HarnessV2},
		{"operationCapabilitySecretRef", auth.OperationCapabilitySecretRef, v1alpha1.HarnessV2},
	} {
		switch {
		case s.ref == nil && s.of == version:
			errs = append(errs, field.Required(path.Child(s.name), "with contractVersion "+string(version)))
		case s.ref != nil && s.of != version:
			errs = append(errs, field.Forbidden(path.Child(s.name), "is for contractVersion "+string(s.of)))
		}
	}
	return errs
}
