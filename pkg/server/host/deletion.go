// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/server/host/garbage"
	"github.com/platform-ai/platform/pkg/server/host/namespace"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// deleter deletes objects as one of the host's controllers. The policies see the user name that this controller has in a cluster,
// so a policy that exempts it there does so here.
type deleter struct {
	s    *storages
	user user.Info
}

func (s *storages) deleter(controller string) deleter {
	return deleter{s, &user.DefaultInfo{
		Name: serviceaccount.MakeUsername(metav1.NamespaceSystem, controller),
		// Only masters may write roles here.
		Groups: append(serviceaccount.MakeGroupNames(metav1.NamespaceSystem), user.AllAuthenticated, user.SystemPrivilegedGroup),
	}}
}

// delete deletes an object if the policies allow that.
func (d deleter) delete(ctx context.Context, k kept, namespace, name string, options *metav1.DeleteOptions) error {
	ctx = request.WithUser(request.WithNamespace(ctx, namespace), d.user)
	_, _, err := k.Delete(ctx, name, d.ask(k, options), options)
	return err
}

// ask returns what asks the policies about a deletion, as the handler of a request does.
func (d deleter) ask(k kept, options *metav1.DeleteOptions) rest.ValidateObjectFunc {
	if d.s.admission == nil {
		return rest.ValidateAllObjectFunc
	}
	return func(ctx context.Context, obj runtime.Object) error {
		m, err := meta.Accessor(obj)
		if err != nil {
			return fmt.Errorf("deletion of %T: %w", obj, err)
		}
		a := admission.NewAttributesRecord(nil, obj, k.kind, m.GetNamespace(), m.GetName(), k.resource, "", admission.Delete, options, false, d.user)
		return rest.AdmissionToValidateObjectDeleteFunc(d.s.admission, a, d.s.objects)(ctx, obj)
	}
}

// contents returns the namespaced resources whose objects are stored, by name.
func (s *storages) contents() []namespace.Content {
	d := s.deleter("namespace-controller")
	var out []namespace.Content
	for _, k := range s.kept {
		if k.namespaced {
			out = append(out, namespace.Content{
				Resource:  k.resource.GroupResource(),
				DeleteAll: func(ctx context.Context, ns string) error { return d.deleteAll(ctx, k, ns) },
				Count:     func(ctx context.Context, ns string) (int, error) { return count(request.WithNamespace(ctx, ns), k) },
			})
		}
	}
	slices.SortFunc(out, func(a, b namespace.Content) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return out
}

// deleteAll deletes the objects of a namespace one by one, so that one that a policy keeps does not keep the others.
func (d deleter) deleteAll(ctx context.Context, k kept, ns string) error {
	var names []string
	err := resource.EachObject(request.WithNamespace(ctx, ns), k, &metainternal.ListOptions{}, func(o metav1.Object) {
		if o.GetDeletionTimestamp() == nil {
			names = append(names, o.GetName())
		}
	})
	if err != nil {
		return err
	}
	policy := metav1.DeletePropagationBackground
	options := metav1.NewDeleteOptions(0)
	options.PropagationPolicy = &policy
	failed, first := 0, error(nil)
	for _, name := range names {
		if err := d.delete(ctx, k, ns, name, options); err != nil && !apierrors.IsNotFound(err) {
			failed++
			if first == nil {
				first = err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if failed > 1 {
		return errors.Join(first, fmt.Errorf("%d more were not deleted", failed-1))
	}
	return first
}

// count counts objects without reading more than one.
func count(ctx context.Context, l rest.Lister) (int, error) {
	list, err := l.List(ctx, &metainternal.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return 0, err
	}
	n := meta.LenList(list)
	if more := m.GetRemainingItemCount(); more != nil {
		n += int(*more)
	}
	return n, nil
}

// collector makes the collector of what owner references lead to. Events are not collected, as in Kubernetes, and neither are the records of
// gateways, which may be millions: their own lifetime removes them.
func (h *Host) collector() *garbage.Collector {
	d := h.storage.deleter("generic-garbage-collector")
	var kinds []garbage.Kind
	for _, k := range h.storage.kept {
		if slices.Contains([]schema.GroupVersionResource{eventsResource, gatewayEventsResource, deliveriesResource}, k.resource) {
			continue
		}
		kinds = append(kinds, garbage.Kind{
			Kind: k.kind, Namespaced: k.namespaced,
			Objects: reads(k, garbage.Metadata, garbage.MetadataEvent),
			Get: func(ctx context.Context, ns, name string) (metav1.Object, error) {
				obj, err := k.Get(request.WithNamespace(ctx, ns), name, &metav1.GetOptions{})
				if err != nil {
					return nil, err
				}
				return meta.Accessor(obj)
			},
			Delete: func(ctx context.Context, ns, name string, options *metav1.DeleteOptions) error {
				if k.resource.GroupResource() == namespacesResource && slices.Contains(Namespaces(), name) {
					return apierrors.NewForbidden(namespacesResource, name, errors.New("this namespace may not be deleted; remove its ownerReferences"))
				}
				return d.delete(ctx, k, ns, name, options)
			},
			Change: func(ctx context.Context, ns, name string, mutate func(metav1.Object)) error {
				ctx = object.Discarding(request.WithNamespace(asAdmin(ctx), ns)) // it lets go what is deleted, also on a full disk
				_, err := change(ctx, k, name, func(o resource.Object) { mutate(o) })
				return err
			},
		})
	}
	return garbage.New(kinds, h.c.Clock)
}
