// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// Subresources of connections.
const (
	subAuthorize = "authorize"
	subComplete  = "complete"
)

// subjectLabel is how many digits of the digest of a person the label has.
const subjectLabel = 32

// connections returns the resource connections.
func (o *Options) connections() resource.Resource {
	return &resource.Definition[*v1alpha1.Connection]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("connections"),
		Kind:       "Connection",
		Singular:   "connection",
		ShortNames: []string{"conn"},
		Categories: []string{category},
		Roles:      resource.Roles{Readers: resource.Users(resource.Person), Writers: []resource.Role{resource.Person, resource.Operator}},
		Scopes:     &external.Scopes{Of: connectionScopes},
		Stored:     o.Stored.Connections,
		Guard:      o.ownerGuard(),
		Fields: []resource.Field[*v1alpha1.Connection]{
			{Path: "spec.providerRef.name", Value: func(c *v1alpha1.Connection) string { return c.Spec.ProviderRef.Name }},
			{Path: "status.state", Value: func(c *v1alpha1.Connection) string { return string(c.Status.State) }},
		},
		Columns: []resource.Column[*v1alpha1.Connection]{
			{Name: "Provider", Description: "Where the account is.", Value: func(c *v1alpha1.Connection) any { return c.Spec.ProviderRef.Name }},
			{Name: "Mode", Description: "What it is used for.", Value: func(c *v1alpha1.Connection) any { return string(c.Spec.Mode) }},
			{Name: "State", Description: "Whether it can be used.", Value: func(c *v1alpha1.Connection) any { return string(c.Status.State) }},
			{Name: "Subject", Wide: true, Description: "Whose it is.", Value: func(c *v1alpha1.Connection) any { return c.Spec.Subject.Subject }},
			{Name: "Scopes", Wide: true, Description: "What was granted.", Value: func(c *v1alpha1.Connection) any { return strings.Join(c.Status.GrantedScopes, ",") }},
		},
		Shape: resource.Kept[*v1alpha1.Connection]{
			PrepareForCreate: o.prepare,
			PrepareForUpdate: o.keep,
			Validate:         validateConnection,
			ValidateUpdate:   o.validateChange,
			Deleting:         func(c *v1alpha1.Connection) { connector.Leave(c, "it is being disconnected", o.Clock.Now()) },
		},
		Subresources: []resource.Subresource[*v1alpha1.Connection]{
			{
				Name: subAuthorize, Creators: []resource.Role{resource.Person},
				New: func() runtime.Object { return &v1alpha1.ConnectionAuthorization{} }, Create: o.authorize,
			},
			{
				Name: subComplete, Creators: []resource.Role{resource.Person},
				New: func() runtime.Object { return &v1alpha1.ConnectionCompletion{} }, Create: o.complete,
			},
			// Connect and not Create, because nothing is created in a namespace that is being deleted, which waits for its connections.
			{Name: "release", Methods: []string{http.MethodPost}, Connect: o.release},
		},
	}
}

// connectionScopes returns what a transaction token needs. Only the owner connects, changes and disconnects.
func connectionScopes(a authorizer.Attributes) (families []string, ok bool) {
	switch sub := a.GetSubresource(); {
	case external.Reads(a.GetVerb()):
		return []string{scopeRead}, true
	case sub == "" || sub == subAuthorize || sub == subComplete:
		return []string{scopeManage}, true
	}
	return nil, false
}

// prepare makes a new connection what it has to be.
func (o *Options) prepare(ctx context.Context, c *v1alpha1.Connection) {
	mark(c)
	protect(c)
	o.settle(ctx, c)
}

// keep keeps what an update may not change, and settles a connection with another mode at once.
func (o *Options) keep(ctx context.Context, c, old *v1alpha1.Connection) {
	mark(c)
	// A finalizer cannot be lost by an update that leaves it out: without it, tokens would be left behind.
	if old.DeletionTimestamp == nil && slices.Contains(old.Finalizers, v1alpha1.FinalizerConnection) {
		protect(c)
	}
	if c.Spec.Mode != old.Spec.Mode {
		c.Generation = old.Generation + 1 // which it will have
		o.settle(ctx, c)
	}
}

// settle writes what follows from the provider into the status. If the provider cannot be read, the controller does it later.
func (o *Options) settle(ctx context.Context, c *v1alpha1.Connection) {
	p, err := o.Stored.Providers.Get(resource.AsServer(ctx, request.NamespaceValue(ctx)), c.Spec.ProviderRef.Name)
	if apierrors.IsNotFound(err) {
		p, err = nil, nil
	}
	if err == nil {
		connector.Settle(c, p, o.Clock.Now())
	}
}

// protect adds the finalizer.
func protect(c *v1alpha1.Connection) {
	if !slices.Contains(c.Finalizers, v1alpha1.FinalizerConnection) {
		c.Finalizers = append(c.Finalizers, v1alpha1.FinalizerConnection)
	}
}

// mark sets the labels.
func mark(c *v1alpha1.Connection) {
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	c.Labels[v1alpha1.LabelConnectionSubject] = connector.SubjectDigest(c.Spec.Subject.Issuer, c.Spec.Subject.Subject)[:subjectLabel]
	c.Labels[v1alpha1.LabelConnectorProvider] = c.Spec.ProviderRef.Name
}

// validateConnection checks that the name is that of the person and the provider.
func validateConnection(_ context.Context, c *v1alpha1.Connection) field.ErrorList {
	var errs field.ErrorList
	subject := field.NewPath("spec", "subject")
	for _, f := range []struct{ name, value string }{{"issuer", c.Spec.Subject.Issuer}, {"subject", c.Spec.Subject.Subject}} {
		if strings.TrimSpace(f.value) == "" {
			errs = append(errs, field.Required(subject.Child(f.name), ""))
		}
	}
	if want := connector.Name(c.Spec.ProviderRef.Name, c.Spec.Subject.Issuer, c.Spec.Subject.Subject); c.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be "+want+", which follows from the person and the provider"))
	}
	return errs
}

// validateChange refuses a change of the mode by anybody but the owner.
func (o *Options) validateChange(ctx context.Context, c, old *v1alpha1.Connection) field.ErrorList {
	if c.Spec.Mode == old.Spec.Mode || isServer(ctx) || identity(ctx) != nil { // the guard has seen that it is the owner
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "mode"), errNobody.Error())}
}

// authorize serves POST of authorize.
func (o *Options) authorize(ctx context.Context, p resource.Parent[*v1alpha1.Connection], obj runtime.Object) (runtime.Object, error) {
	a, ok := obj.(*v1alpha1.ConnectionAuthorization)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a ConnectionAuthorization")
	}
	if ref := a.Spec.ProviderRef; ref != nil && ref.Name != p.Object.Spec.ProviderRef.Name {
		return nil, apierrors.NewBadRequest("spec.providerRef.name: is not that of the connection")
	}
	status, err := o.Hub.Authorize(ctx, p.Object, a.Spec.Mode, p.DryRun)
	if err != nil {
		return nil, err
	}
	return answer(a, status), nil
}

// complete serves POST of complete. The answer does not repeat the token.
func (o *Options) complete(ctx context.Context, p resource.Parent[*v1alpha1.Connection], obj runtime.Object) (runtime.Object, error) {
	a, ok := obj.(*v1alpha1.ConnectionCompletion)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a ConnectionCompletion")
	}
	c, err := o.Hub.Complete(ctx, p.Object, a.Spec.Completion, p.DryRun)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.ConnectionCompletion{Status: v1alpha1.ConnectionCompletionStatus{Connection: c}}
	out.Name, out.Namespace = c.Name, c.Namespace
	return out, nil
}

// release serves POST of release, for controllers. The body counts for nothing.
func (o *Options) release(_ context.Context, p resource.Parent[*v1alpha1.Connection], respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if len(wellformed.Query(r)["dryRun"]) == 0 {
			if err := o.Hub.Release(r.Context(), p.Object); err != nil {
				respond.Error(err)
				return
			}
		}
		respond.Object(http.StatusOK, p.Object.DeepCopy())
	}), nil
}
