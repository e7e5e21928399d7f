// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// maxToolTimeout limits one call of a tool.
const maxToolTimeout = 10 * time.Minute

var toolName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// linked are the tools of the platform that use the account of a person. Each works with github.com alone.
var linked = map[string]v1alpha1.ConnectorToolClass{
	builtin.ListPullRequests.Name:    v1alpha1.ConnectorToolRead,
	builtin.ListIssues.Name:          v1alpha1.ConnectorToolRead,
	builtin.GetIssue.Name:            v1alpha1.ConnectorToolRead,
	builtin.ReviewPullRequest.Name:   v1alpha1.ConnectorToolRead,
	builtin.CheckPullRequestCI.Name:  v1alpha1.ConnectorToolRead,
	builtin.CheckPRReviewMarker.Name: v1alpha1.ConnectorToolRead,
	builtin.CommentOnIssue.Name:      v1alpha1.ConnectorToolWrite,
	builtin.CreatePullRequest.Name:   v1alpha1.ConnectorToolWrite,
	builtin.PostReviewComment.Name:   v1alpha1.ConnectorToolWrite,
}

// BuiltinClass returns the class of a tool of the platform that uses a person's account, and false for all other names.
func BuiltinClass(name string) (v1alpha1.ConnectorToolClass, bool) {
	class, ok := linked[name]
	return class, ok
}

// HTTPTool returns the tool of source HTTP with a name; nil if the provider declares none.
func HTTPTool(p *v1alpha1.ConnectorProvider, name string) *v1alpha1.ConnectorTool {
	for i := range p.Spec.Tools {
		if t := &p.Spec.Tools[i]; t.Name == name && t.Source == v1alpha1.ConnectorSourceHTTP {
			return t
		}
	}
	return nil
}

// Definition returns a tool of source HTTP as a model sees it.
func Definition(t *v1alpha1.ConnectorTool) tool.Definition {
	d := tool.Definition{Name: t.Name, Description: t.Description}
	if t.Parameters != nil {
		d.Parameters = t.Parameters.Raw
	}
	return d
}

// everywhere is all places that have tools.
const everywhere = builtin.Runs | builtin.Chats | builtin.APIs | builtin.Agents

func checkTool(t *v1alpha1.ConnectorTool, o *v1alpha1.ConnectorOAuth, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !toolName.MatchString(t.Name) {
		errs = append(errs, field.Invalid(p.Child("name"), t.Name, "must be in lower snake case, such as list_files"))
	}
	switch t.Source {
	case v1alpha1.ConnectorSourceBuiltin:
		errs = append(errs, checkBuiltin(t, o, p)...)
	case v1alpha1.ConnectorSourceHTTP:
		errs = append(errs, checkHTTP(t, p)...)
	}
	return errs
}

func checkBuiltin(t *v1alpha1.ConnectorTool, o *v1alpha1.ConnectorOAuth, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	const defined = "the platform defines it for tools of source Builtin"
	for name, isSet := range map[string]bool{"description": t.Description != "", "http": t.HTTP != nil, "parameters": t.Parameters != nil} {
		if isSet {
			errs = append(errs, field.Forbidden(p.Child(name), defined))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	class, ok := BuiltinClass(t.Name)
	_, exists := builtin.FindIn(everywhere, t.Name)
	switch {
	case !ok:
		why := "the platform has no tool of that name"
		if exists {
			why = "the tool of the platform does not use the account of a person"
		}
		errs = append(errs, field.Invalid(p.Child("name"), t.Name, fmt.Sprintf("%s; those that do are %s", why, strings.Join(slices.Sorted(maps.Keys(linked)), ", "))))
	case t.Class != class:
		errs = append(errs, field.Invalid(p.Child("class"), t.Class, fmt.Sprintf("must be %s, which is the class of %s", class, t.Name)))
	case !onGitHub(o.AuthorizeURL) || !onGitHub(o.TokenURL):
		errs = append(errs, field.Invalid(p.Child("source"), t.Source, "the tools of the platform use accounts of github.com, so authorizeURL and tokenURL must be there"))
	}
	return errs
}

func onGitHub(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && strings.EqualFold(u.Hostname(), "github.com") && (u.Port() == "" || u.Port() == "443")
}

func checkHTTP(t *v1alpha1.ConnectorTool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, taken := builtin.FindIn(everywhere, t.Name); taken {
		errs = append(errs, field.Invalid(p.Child("name"), t.Name, "is the name of a tool of the platform, which models would mix up with it"))
	}
	if strings.TrimSpace(t.Description) == "" {
		errs = append(errs, field.Required(p.Child("description"), "tools of source HTTP need it, because models read it"))
	}
	switch parameters := p.Child("parameters"); {
	case t.Parameters == nil || len(t.Parameters.Raw) == 0:
		errs = append(errs, field.Required(parameters, `tools of source HTTP need it; without arguments it is {"type": "object"}`))
	default:
		err := canonical.Check(t.Parameters.Raw) // an approval is for a digest of the definition
		if err == nil {
			err = tool.CheckSchema(t.Parameters.Raw)
		}
		if err != nil {
			errs = append(errs, secretless(parameters, "must be a JSON Schema of an object: %v", err))
		}
	}
	at, h := p.Child("http"), t.HTTP
	if h == nil {
		return append(errs, field.Required(at, "tools of source HTTP need it"))
	}
	if err := CheckToolAddress(h.URL); err != nil {
		errs = append(errs, secretless(at.Child("url"), "%v", err))
	}
	if h.Timeout != nil {
		if d, err := h.Timeout.Parse(); err != nil || d <= 0 || d > maxToolTimeout {
			errs = append(errs, field.Invalid(at.Child("timeout"), *h.Timeout, fmt.Sprintf("must be a duration above 0 of at most %s, such as 30s", maxToolTimeout)))
		}
	}
	return append(errs, checkHeaders(h.Headers, at.Child("headers"))...)
}
