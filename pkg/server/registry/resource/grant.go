// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

// Role is a role that the platform makes by itself, for each namespace where somebody is bound to it.
type Role string

// The roles, by what they are for.
const (
	// Viewer sees everything and changes nothing.
	Viewer Role = "platform-viewer"
	// Editor runs tasks and keeps what they need.
	Editor Role = "platform-editor"
	// Approver decides on what agents ask for.
	Approver Role = "platform-approver"
	// Operator is an editor that may also correct what controllers wrote.
	Operator Role = "platform-operator"
	// Worker is the process that runs a task.
	Worker Role = "platform-worker"
)

// Users are the roles of people who see everything, and more roles.
func Users(more ...Role) []Role { return append([]Role{Viewer, Editor, Operator}, more...) }

// Writers are the roles of people who run tasks.
func Writers() []Role { return []Role{Editor, Operator} }

// Grant says which roles may use a subresource by default.
type Grant struct {
	// Resource is the path, such as "tasks/log".
	Resource string
	// Readers may get it and Creators may create it.
	Readers, Creators []Role
}

// Grants are those of the subresources, in their order.
func (d *Definition[T]) Grants() []Grant {
	var out []Grant
	for _, s := range d.Subresources {
		if len(s.Readers)+len(s.Creators) > 0 {
			out = append(out, Grant{Resource: d.Resource.Resource + "/" + s.Name, Readers: s.Readers, Creators: s.Creators})
		}
	}
	return out
}
