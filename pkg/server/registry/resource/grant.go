// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

// Role is a role that the platform creates by itself, in each namespace where somebody is bound to
// it.
type Role string

// The roles that the platform creates.
const (
	// Viewer may read everything and change nothing.
	Viewer Role = "platform-viewer"
	// Editor may run tasks and manage the objects that tasks need.
	Editor Role = "platform-editor"
	// Approver may decide on the approvals that agents request.
	Approver Role = "platform-approver"
	// Operator is an editor that may also correct what controllers wrote.
	Operator Role = "platform-operator"
	// Person may link own accounts. Everybody with a verified identity from outside has this role.
	Person Role = "platform-connections"
	// Worker is the role of the process that runs a task.
	Worker Role = "platform-worker"
)

// Users returns the roles of people who may read everything, followed by more.
func Users(more ...Role) []Role { return append([]Role{Viewer, Editor, Operator}, more...) }

// Writers returns the roles of people who run tasks.
func Writers() []Role { return []Role{Editor, Operator} }

// Roles lists the roles that may use the objects of a kind by default. Verbs that its Shape does not serve are not granted. A kind
// without roles is for administrators, and for those to whom they give roles of their own.
type Roles struct {
	// Readers may get, list and watch objects.
	Readers []Role
	// Creators may create objects.
	Creators []Role
	// Makers may create objects and delete them by name. The Guard says which they may delete.
	Makers []Role
	// Writers may create, change and delete objects, one by one or all at once.
	Writers []Role
}

// KindGrant is what roles may do by default with the objects of a kind.
type KindGrant struct {
	Roles
	// Resource is the plural, such as "tasks".
	Resource string
	// Status is set if there is a status subresource. Viewer, Editor and Operator read it, and Operator changes it.
	Status bool
	// ClusterScoped is set for objects outside namespaces, which only a ClusterRoleBinding opens.
	ClusterScoped bool
	// Unwatched is set if objects can be listed and not watched.
	Unwatched bool
}

// KindGrant returns the grant of the objects themselves.
func (d *Definition[T]) KindGrant() KindGrant {
	g := KindGrant{Roles: d.Roles, Resource: d.Resource.Resource, ClusterScoped: d.ClusterScoped}
	switch s := d.Shape.(type) {
	case Kept[T]:
		g.Status = partsOf[T]().status != nil && !s.NoStatus
	case StateLedger[T]:
		g.Status = true
	case View[T]:
		g.Unwatched = s.Watch == nil
	}
	return g
}

// Grant lists the roles that may use a subresource by default.
type Grant struct {
	// Resource is the path, such as "tasks/log".
	Resource string
	// Readers may get the subresource and Creators may create it.
	Readers, Creators []Role
}

// Grants returns the grants of the subresources, in the order of Definition.Subresources.
func (d *Definition[T]) Grants() []Grant {
	var out []Grant
	for _, s := range d.Subresources {
		if len(s.Readers)+len(s.Creators) > 0 {
			out = append(out, Grant{Resource: d.Resource.Resource + "/" + s.Name, Readers: s.Readers, Creators: s.Creators})
		}
	}
	return out
}
