// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// node is an object that has owners, or that waits for the collector.
type node struct {
	uid             types.UID
	kind            schema.GroupVersionKind
	namespace, name string
	owners          []metav1.OwnerReference
	// waits says that the object is being deleted and has a finalizer of the collector.
	waits bool
}

func nodeOf(kind schema.GroupVersionKind, o metav1.Object) *node {
	return &node{
		uid: o.GetUID(), kind: kind, namespace: o.GetNamespace(), name: o.GetName(), owners: o.GetOwnerReferences(),
		waits: o.GetDeletionTimestamp() != nil && (has(o, metav1.FinalizerOrphanDependents) || has(o, metav1.FinalizerDeleteDependents)),
	}
}

// Matters reports whether the collector has to remember an object.
func Matters(o metav1.Object) bool {
	return len(o.GetOwnerReferences()) > 0 || nodeOf(schema.GroupVersionKind{}, o).waits
}

func has(o metav1.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}

// ownedBy returns the reference to an owner; nil if there is none.
func (n *node) ownedBy(uid types.UID) *metav1.OwnerReference {
	i := slices.IndexFunc(n.owners, func(o metav1.OwnerReference) bool { return o.UID == uid })
	if i < 0 {
		return nil
	}
	return &n.owners[i]
}

// blocks reports whether the deletion of an owner in the foreground waits for the object.
func (n *node) blocks(owner types.UID) bool {
	ref := n.ownedBy(owner)
	return ref != nil && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// graph is what the collector remembers: the objects that have owners or wait, and which objects name an owner. Most objects do
// neither and take no memory.
type graph struct {
	mu         sync.Mutex
	nodes      map[types.UID]*node
	dependents map[types.UID]map[types.UID]struct{} // by the UID of the owner, whether that exists or not
}

func newGraph() *graph {
	return &graph{nodes: map[types.UID]*node{}, dependents: map[types.UID]map[types.UID]struct{}{}}
}

// set takes over the present state of an object. It returns whose situation that changes: the object itself, and the owners that
// it does not name any more.
func (g *graph) set(kind schema.GroupVersionKind, o metav1.Object) (changed []types.UID) {
	n := nodeOf(kind, o)
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.nodes[n.uid]
	if old != nil {
		if old.waits == n.waits && equal(old.owners, n.owners) {
			return nil
		}
		for _, ref := range old.owners {
			g.forget(ref.UID, n.uid)
			changed = append(changed, ref.UID)
		}
	}
	if !Matters(o) {
		delete(g.nodes, n.uid)
		return changed
	}
	g.nodes[n.uid] = n
	for _, ref := range n.owners {
		if g.dependents[ref.UID] == nil {
			g.dependents[ref.UID] = map[types.UID]struct{}{}
		}
		g.dependents[ref.UID][n.uid] = struct{}{}
	}
	return append(changed, n.uid)
}

func equal(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.OwnerReference) bool {
		blocks := func(o metav1.OwnerReference) bool { return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion }
		return a.UID == b.UID && a.Kind == b.Kind && a.APIVersion == b.APIVersion && a.Name == b.Name && blocks(a) == blocks(b)
	})
}

// forget removes a dependent of an owner. The caller holds the lock.
func (g *graph) forget(owner, dependent types.UID) {
	delete(g.dependents[owner], dependent)
	if len(g.dependents[owner]) == 0 {
		delete(g.dependents, owner)
	}
}

// remove forgets an object that is gone. It returns whose situation that changes: its owners and what it owned.
func (g *graph) remove(uid types.UID) (changed []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[uid]; n != nil {
		delete(g.nodes, uid)
		for _, ref := range n.owners {
			g.forget(ref.UID, uid)
			changed = append(changed, ref.UID)
		}
	}
	return slices.AppendSeq(changed, maps.Keys(g.dependents[uid]))
}

// missing returns the objects of a kind that are not in the set of those that exist, and the objects with an owner of that kind,
// which may be gone, too.
func (g *graph) missing(kind schema.GroupVersionKind, exist map[types.UID]bool) (gone, suspects []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for uid, n := range g.nodes {
		if n.kind == kind && !exist[uid] {
			gone = append(gone, uid)
		}
		if slices.ContainsFunc(n.owners, func(o metav1.OwnerReference) bool { return kindOf(o) == kind }) {
			suspects = append(suspects, uid)
		}
	}
	return gone, suspects
}

// get returns a node, which does not change; nil if there is none.
func (g *graph) get(uid types.UID) *node {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.nodes[uid]
}

// of returns what an object owns.
func (g *graph) of(owner types.UID) []*node {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*node, 0, len(g.dependents[owner]))
	for uid := range g.dependents[owner] {
		list = append(list, g.nodes[uid])
	}
	return list
}

// kindOf returns the kind of an owner.
func kindOf(o metav1.OwnerReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}
