// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repositorymonitor serves repository monitors and their records.
//
// People write monitors. Everything else is records that a controller keeps, and that people read: the runs, the items (pull requests and
// issues), the commands, the work and the mutations. Two of them begin here, because they may be asked for by people and by webhooks: a run
// (runs.go) and a command (commands.go). What a controller does on the code host it asks for here (codehost.go), because the credentials of
// a monitor stay in this server.
//
// The name of a record is derived from what it is about, so that what is asked for twice is there once: the schedule's time, the head of a
// pull request, the delivery that brought a command.
package repositorymonitor

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/repomonitor"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Stored is what is stored of monitors and of their records.
type Stored struct {
	Monitors  *resource.Stored[*v1alpha1.RepositoryMonitor]
	Runs      *resource.Stored[*v1alpha1.MonitorRun]
	Items     *resource.Stored[*v1alpha1.MonitorItem]
	Commands  *resource.Stored[*v1alpha1.MonitorCommand]
	Works     *resource.Stored[*v1alpha1.MonitorWorkAction]
	Mutations *resource.Stored[*v1alpha1.MonitorMutation]
}

// NewStored returns what is stored of the monitors of one server.
func NewStored() Stored {
	return Stored{
		Monitors:  resource.NewStored[*v1alpha1.RepositoryMonitor](v1alpha1.Resource("repositorymonitors")),
		Runs:      resource.NewStored[*v1alpha1.MonitorRun](v1alpha1.Resource("monitorruns")),
		Items:     resource.NewStored[*v1alpha1.MonitorItem](v1alpha1.Resource("monitoritems")),
		Commands:  resource.NewStored[*v1alpha1.MonitorCommand](v1alpha1.Resource("monitorcommands")),
		Works:     resource.NewStored[*v1alpha1.MonitorWorkAction](v1alpha1.Resource("monitorworkactions")),
		Mutations: resource.NewStored[*v1alpha1.MonitorMutation](v1alpha1.Resource("monitormutations")),
	}
}

// Options are what monitors need. All fields are required except Links.
type Options struct {
	Stored Stored
	// Access makes calls on code hosts.
	Access *hostaccess.Access
	Clock  clock.PassiveClock
	// Links returns the links of tasks of a namespace to pull requests of a repository (OWNER/NAME) that are not known to be merged, the
	// oldest observation first. Without it there are none.
	Links func(ctx context.Context, namespace, repository string) (*v1alpha1.UsageLinkPage, error)
}

// Resource is the resource repositorymonitors, and what their records begin with.
type Resource struct {
	resource.Resource
	o Options
	// asking is held while it is decided whether a run may be asked for.
	asking sync.Mutex
}

// recordRetention is how long a record is kept after its end.
const recordRetention = 30 * 24 * time.Hour

// New makes the resource repositorymonitors.
func New(o Options) *Resource {
	r := &Resource{o: o}
	r.Resource = &resource.Definition[*v1alpha1.RepositoryMonitor]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("repositorymonitors"),
		Kind:       "RepositoryMonitor",
		Singular:   "repositorymonitor",
		ShortNames: []string{"rmon"},
		Categories: []string{"platform"},
		Roles:      resource.Roles{Readers: resource.Users(), Writers: resource.Writers()},
		Scopes:     &external.Scopes{Of: scopes},
		Stored:     o.Stored.Monitors,
		Fields: []resource.Field[*v1alpha1.RepositoryMonitor]{
			{Path: fieldRepository, Value: func(m *v1alpha1.RepositoryMonitor) string { return repositoryKey(m.Spec.RepoURL) }, Indexed: true},
			{Path: "status.phase", Value: func(m *v1alpha1.RepositoryMonitor) string { return string(m.Status.Phase) }},
		},
		Columns: columns(),
		Shape: resource.Kept[*v1alpha1.RepositoryMonitor]{
			Validate: validate, ValidateName: validateName, Warnings: warnings,
			Frozen: []resource.Frozen[*v1alpha1.RepositoryMonitor]{{Path: specPath.Child("repoURL"), Value: func(m *v1alpha1.RepositoryMonitor) any { return m.Spec.RepoURL }}},
		},
		Subresources: []resource.Subresource[*v1alpha1.RepositoryMonitor]{
			{Name: "runs", New: func() runtime.Object { return &v1alpha1.MonitorRunRequest{} }, Create: r.requestRun, Creators: resource.Writers()},
			{Name: "commands", New: func() runtime.Object { return &v1alpha1.MonitorCommandRequest{} }, Create: r.requestCommand, Creators: resource.Writers()},
			{Name: "codehost", MaxBody: maxCall, New: func() runtime.Object { return &v1alpha1.MonitorCodeHostCall{} }, Create: r.call},
			{Name: "links", New: func() runtime.Object { return &v1alpha1.UsageLinkPage{} }, Get: r.links},
		},
	}
	return r
}

// fieldRepository is the field by which monitors of a repository are found.
const fieldRepository = "repository"

// repositoryKey returns what all addresses of a repository have in common.
func repositoryKey(url string) string {
	at, err := codehost.ParseAddress(url)
	if err != nil {
		return ""
	}
	return at.Key()
}

// scopes returns what a transaction token needs for a request about monitors.
func scopes(a authorizer.Attributes) (families []string, ok bool) {
	switch sub := a.GetSubresource(); {
	case sub == "runs" || sub == "commands":
		return []string{"monitors:operate"}, true
	case sub == "codehost" || sub == "links":
		return nil, false
	case external.Reads(a.GetVerb()):
		return []string{"monitors:read"}, true
	}
	return []string{"monitors:write"}, true
}

// OfRepository calls f with each monitor of a repository, in all namespaces, whose own credential has read the repository as its spec is now.
// So who may write a monitor somewhere learns nothing of a repository that they may not read.
func (s Stored) OfRepository(ctx context.Context, url string, f func(*v1alpha1.RepositoryMonitor) error) error {
	key := repositoryKey(url)
	if key == "" {
		return nil
	}
	return s.Monitors.Select(ctx, "", fields.OneTermEqualSelector(fieldRepository, key), func(m *v1alpha1.RepositoryMonitor) error {
		if !repomonitor.Accessible(m) {
			return nil
		}
		return f(m)
	})
}
