// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// AdmitCreate runs Admission for an object as for a create of its resource by the caller of the request, in whatever way the object
// arrived, so that policies on the resource apply to every way. Admission may change the object. The error is an API error.
func (c Config) AdmitCreate(ctx context.Context, obj Object, kind schema.GroupVersionKind, resource schema.GroupVersionResource, options *metav1.CreateOptions) error {
	if c.Admission == nil || !c.Admission.Handles(admission.Create) {
		return nil
	}
	caller, _ := request.UserFrom(ctx)
	a := admission.NewAttributesRecord(obj, nil, kind, obj.GetNamespace(), obj.GetName(), resource, "", admission.Create, options, dryrun.IsDryRun(options.DryRun), caller)
	o := admission.NewObjectInterfacesFromScheme(c.Scheme)
	if m, ok := c.Admission.(admission.MutationInterface); ok {
		if err := m.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	if v, ok := c.Admission.(admission.ValidationInterface); ok {
		return v.Validate(ctx, a, o)
	}
	return nil
}
