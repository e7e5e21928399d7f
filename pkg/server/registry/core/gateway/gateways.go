// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// FieldClass is the field by which the gateways of a class are found.
const FieldClass = "spec.gatewayClassName"

// gateways returns the resource gateways.
func (o *Options) gateways() resource.Resource {
	return &resource.Definition[*v1alpha1.Gateway]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("gateways"),
		Kind:       "Gateway",
		Singular:   "gateway",
		ShortNames: []string{"gw"},
		Categories: []string{category},
		Roles:      writers(),
		Scopes:     &external.Scopes{Of: gatewayScopes},
		Stored:     o.Stored.Gateways,
		Fields: []resource.Field[*v1alpha1.Gateway]{
			{Path: FieldClass, Indexed: true, Value: func(g *v1alpha1.Gateway) string { return g.Spec.GatewayClassName }},
		},
		Columns: []resource.Column[*v1alpha1.Gateway]{
			{Name: "Class", Description: "Its class.", Value: func(g *v1alpha1.Gateway) any { return g.Spec.GatewayClassName }},
			{Name: "Connected", Type: "boolean", Description: "Whether the adapter answers as it should.", Value: func(g *v1alpha1.Gateway) any { return g.Status.Connected }},
			{Name: "Ready", Type: "boolean", Description: "Whether events are accepted and answers are delivered.", Value: func(g *v1alpha1.Gateway) any { return g.Status.Ready }},
			{Name: "Endpoint", Wide: true, Description: "Where the adapter is.", Value: func(g *v1alpha1.Gateway) any {
				return cmp.Or(g.Status.ResolvedEndpoint, g.Spec.Adapter.Endpoint)
			}},
			{Name: "Message", Wide: true, Description: "What is wrong.", Value: func(g *v1alpha1.Gateway) any { return g.Status.Message }},
		},
		Shape: resource.Kept[*v1alpha1.Gateway]{
			Validate: validateGateway,
			AfterDelete: func(ctx context.Context, g *v1alpha1.Gateway) {
				if o.Forget != nil {
					o.Forget(ctx, g)
				}
			},
		},
		Subresources: []resource.Subresource[*v1alpha1.Gateway]{
			{Name: "probe", New: func() runtime.Object { return &v1alpha1.GatewayProbe{} }, Create: o.probe},
		},
	}
}

// probe serves POST of probe, for controllers.
func (o *Options) probe(ctx context.Context, p resource.Parent[*v1alpha1.Gateway], _ runtime.Object) (runtime.Object, error) {
	if o.Probe == nil {
		return nil, unavailable()
	}
	g := p.Object
	found := &v1alpha1.GatewayProbe{Generation: g.Generation}
	if !p.DryRun { // the adapter is not asked in a dry run
		var err error
		if found, err = o.Probe(ctx, g); err != nil {
			return nil, err
		}
	}
	found.ObjectMeta = metav1.ObjectMeta{Name: g.Name, Namespace: g.Namespace}
	return found, nil
}

// gatewayScopes returns what a transaction token needs. To update a gateway is what operating it needs: see mayOperate.
func gatewayScopes(a authorizer.Attributes) (families []string, ok bool) {
	switch {
	case external.Reads(a.GetVerb()):
		return []string{scopeRead}, true
	case a.GetVerb() == "update" && a.GetSubresource() == "":
		return []string{scopeOperate}, true
	}
	return nil, false
}
