// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Gateways make the guards of tasks that answer events of gateways. By REST, who reads such a task must be allowed to get its gateway, and
// who does more with it to get and to update the gateway. Workers are exempt. All fields are required.
type Gateways struct {
	// REST reports whether a request was made by REST.
	REST       func(ctx context.Context) bool
	Authorizer authorizer.Authorizer
	// Task reads a task, in the namespace of the context.
	Task func(ctx context.Context, name string) (*v1alpha1.Task, error)
}

// Tasks is the guard of tasks. next decides about workers.
func (g *Gateways) Tasks(next resource.Guard[*v1alpha1.Task]) resource.Guard[*v1alpha1.Task] {
	return &owned[*v1alpha1.Task]{g, v1alpha1.Resource("tasks"), next, func(_ context.Context, t *v1alpha1.Task) (string, error) { return gatewayOf(t), nil }}
}

// Approvals is the guard of approvals, which belong to the gateway of their task. next decides about workers.
func (g *Gateways) Approvals(next resource.Guard[*v1alpha1.Approval]) resource.Guard[*v1alpha1.Approval] {
	return &owned[*v1alpha1.Approval]{g, v1alpha1.Resource("approvals"), next, func(ctx context.Context, a *v1alpha1.Approval) (string, error) {
		t, err := g.Task(ctx, a.Spec.TaskName)
		switch {
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", err
		case t.UID != a.Spec.TaskUID:
			return "", nil
		}
		return gatewayOf(t), nil
	}}
}

// Sees returns a func that reports which tasks the caller may read.
func (g *Gateways) Sees(ctx context.Context) func(*v1alpha1.Task) (bool, error) {
	if !g.REST(ctx) {
		return func(*v1alpha1.Task) (bool, error) { return true, nil }
	}
	may := g.remembered(ctx, reading())
	return func(t *v1alpha1.Task) (bool, error) { return may(gatewayOf(t)) }
}

// gatewayOf returns the gateway whose event a task answers; empty if it answers none.
func gatewayOf(t *v1alpha1.Task) string { return t.Annotations[v1alpha1.AnnotationGatewayName] }

func reading() []string   { return []string{"get"} }
func operating() []string { return []string{"get", "update"} }

// may reports whether the caller has rights on a gateway, or on all of the namespace if name is empty.
func (g *Gateways) may(ctx context.Context, name string, verbs []string) (bool, error) {
	for _, verb := range verbs {
		ok, err := May(ctx, g.Authorizer, authorizer.AttributesRecord{Verb: verb, Namespace: request.NamespaceValue(ctx), Resource: "gateways", Name: name})
		if !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// remembered does what may does, asks once for each gateway, and permits what belongs to none.
func (g *Gateways) remembered(ctx context.Context, verbs []string) func(gateway string) (bool, error) {
	known := map[string]bool{"": true}
	return func(gateway string) (bool, error) {
		if ok, asked := known[gateway]; asked {
			return ok, nil
		}
		ok, err := g.may(ctx, gateway, verbs)
		if err == nil {
			known[gateway] = ok
		}
		return ok, err
	}
}

// owned is the guard of objects that may belong to gateways.
type owned[T resource.Object] struct {
	g        *Gateways
	resource schema.GroupResource
	next     resource.Guard[T]
	owner    func(ctx context.Context, obj T) (gateway string, err error)
}

// Held reports whether the caller is a worker, or may not do what it asks for with all gateways.
func (o *owned[T]) Held(ctx context.Context) bool {
	if o.next.Held(ctx) {
		return true
	}
	if !o.g.REST(ctx) {
		return false
	}
	verb := ""
	if info, ok := request.RequestInfoFrom(ctx); ok {
		verb = info.Verb
	}
	all, err := o.g.may(ctx, "", needed(verb))
	return !all || err != nil
}

// needed returns the verbs on a gateway that a verb on its task needs.
func needed(verb string) []string {
	switch verb {
	case "get", "list", "watch":
		return reading()
	}
	return operating()
}

// Object decides on a request about one object.
func (o *owned[T]) Object(ctx context.Context, a resource.Access, obj T) error {
	if o.next.Held(ctx) {
		return o.next.Object(ctx, a, obj)
	}
	gateway, err := o.owner(ctx, obj)
	if gateway == "" || err != nil {
		return err
	}
	for _, verb := range needed(a.Verb) {
		may, err := o.g.may(ctx, gateway, []string{verb})
		if err != nil {
			return err
		}
		if !may {
			return apierrors.NewForbidden(o.resource, obj.GetName(), fmt.Errorf("it belongs to a gateway, so this needs the right to %s the gateway, too", verb))
		}
	}
	return nil
}

// Collection decides on a list or a watch.
func (o *owned[T]) Collection(ctx context.Context, a resource.Access, opts *metainternalversion.ListOptions) (func(T) bool, error) {
	if o.next.Held(ctx) {
		return o.next.Collection(ctx, a, opts)
	}
	may := o.g.remembered(ctx, needed(a.Verb))
	return func(obj T) bool {
		gateway, err := o.owner(ctx, obj)
		if err != nil {
			return false
		}
		ok, err := may(gateway)
		return ok && err == nil
	}, nil
}
