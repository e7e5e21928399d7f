// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// process does what an object needs now.
func (c *Collector) process(ctx context.Context, uid types.UID) error {
	n := c.graph.get(uid)
	if n == nil {
		return nil
	}
	live, err := c.read(ctx, n)
	if err != nil || live == nil { // the watch will report that it is gone
		return err
	}
	switch {
	case live.GetDeletionTimestamp() == nil:
		err = c.collect(ctx, n, live)
	case has(live, metav1.FinalizerOrphanDependents):
		err = c.orphan(ctx, n)
	case has(live, metav1.FinalizerDeleteDependents):
		err = c.await(ctx, n)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", n.kind.Kind, klog.KRef(n.namespace, n.name), err)
	}
	return nil
}

// read reads the object of a node from the store; nil if it does not exist any more.
func (c *Collector) read(ctx context.Context, n *node) (metav1.Object, error) {
	live, err := c.kinds[n.kind].Get(ctx, n.namespace, n.name)
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != n.uid {
		return nil, nil //nolint:nilnil // none
	}
	return live, err
}

// owners sorts the owners of an object: those that are there to stay, those that wait for the object to go, and those that are
// gone.
func (c *Collector) owners(ctx context.Context, live metav1.Object) (stay, wait, absent []types.UID, err error) {
	for _, ref := range live.GetOwnerReferences() {
		k, known := c.kinds[kindOf(ref)]
		if !known || k.Namespaced && live.GetNamespace() == "" {
			stay = append(stay, ref.UID) // written before such references were refused
			continue
		}
		namespace := ""
		if k.Namespaced {
			namespace = live.GetNamespace()
		}
		owner, err := c.read(ctx, &node{kind: k.Kind, namespace: namespace, name: ref.Name, uid: ref.UID})
		switch {
		case err != nil:
			return nil, nil, nil, err
		case owner == nil:
			absent = append(absent, ref.UID)
		case owner.GetDeletionTimestamp() != nil && has(owner, metav1.FinalizerDeleteDependents):
			wait = append(wait, ref.UID)
		default:
			stay = append(stay, ref.UID)
		}
	}
	return stay, wait, absent, nil
}

// collect deletes an object that no owner keeps. If some do, it removes the references to the others, so that these do not wait.
func (c *Collector) collect(ctx context.Context, n *node, live metav1.Object) error {
	if len(live.GetOwnerReferences()) == 0 {
		return nil
	}
	stay, wait, absent, err := c.owners(ctx, live)
	if err != nil {
		return err
	}
	if len(stay) > 0 {
		if len(wait)+len(absent) == 0 {
			return nil
		}
		return c.disown(ctx, n, append(wait, absent...))
	}
	policy := metav1.DeletePropagationBackground
	switch owned := c.graph.of(n.uid); {
	case len(wait) > 0 && len(owned) > 0: // so that the owner waits for these, too
		policy = metav1.DeletePropagationForeground
		if slices.ContainsFunc(owned, func(d *node) bool { return d.waits }) { // they may wait for each other
			if err := c.unblock(ctx, n); err != nil {
				return err
			}
		}
	case has(live, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case has(live, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	klog.FromContext(ctx).V(2).Info("Deleting an object that no owner keeps", "kind", n.kind.Kind, "object", klog.KRef(n.namespace, n.name), "policy", policy)
	return ifThere(c.kinds[n.kind].Delete(ctx, n.namespace, n.name, &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &n.uid}, PropagationPolicy: &policy,
	}))
}

// orphan lets an object go whose dependents stay.
func (c *Collector) orphan(ctx context.Context, n *node) error {
	for _, d := range c.graph.of(n.uid) {
		if err := c.disown(ctx, d, []types.UID{n.uid}); err != nil {
			return err
		}
	}
	return c.release(ctx, n, metav1.FinalizerOrphanDependents)
}

// await deletes what an object owns, and lets the object go when nothing of that blocks it any more.
func (c *Collector) await(ctx context.Context, n *node) error {
	owned := c.graph.of(n.uid)
	if !slices.ContainsFunc(owned, func(d *node) bool { return d.blocks(n.uid) }) {
		return c.release(ctx, n, metav1.FinalizerDeleteDependents)
	}
	for _, d := range owned {
		if !d.waits {
			c.enqueue(d.uid)
		}
	}
	return nil // the removal of each of them wakes the object
}

// disown removes the references of an object to owners.
func (c *Collector) disown(ctx context.Context, n *node, owners []types.UID) error {
	return c.change(ctx, n, func(o metav1.Object) {
		o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return slices.Contains(owners, ref.UID) }))
	})
}

// unblock lets the owners of an object go before it.
func (c *Collector) unblock(ctx context.Context, n *node) error {
	return c.change(ctx, n, func(o metav1.Object) {
		refs := o.GetOwnerReferences()
		for i := range refs {
			refs[i].BlockOwnerDeletion = nil
		}
		o.SetOwnerReferences(refs)
	})
}

// release removes a finalizer.
func (c *Collector) release(ctx context.Context, n *node, finalizer string) error {
	return c.change(ctx, n, func(o metav1.Object) {
		o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

func (c *Collector) change(ctx context.Context, n *node, mutate func(metav1.Object)) error {
	return ifThere(c.kinds[n.kind].Change(ctx, n.namespace, n.name, func(o metav1.Object) {
		if o.GetUID() == n.uid {
			mutate(o)
		}
	}))
}

// ifThere makes the absence of an object no error.
func ifThere(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
