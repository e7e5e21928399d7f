// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogtool serves the catalogue of tools of a namespace: the built-in ones, as package builtin defines them,
// followed by the Tool objects.
package catalogtool

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// Definition returns the resource catalogtools.
func Definition(tools *resource.Stored[*v1alpha1.Tool], guard resource.Guard[*v1alpha1.CatalogTool]) *resource.Definition[*v1alpha1.CatalogTool] {
	c := catalogue{tools: tools}
	return &resource.Definition[*v1alpha1.CatalogTool]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("catalogtools"),
		Kind:       "CatalogTool",
		Singular:   "catalogtool",
		Roles:      resource.Roles{Readers: resource.Users()},
		Scopes:     &external.Scopes{Read: "tools:read"},
		ShortNames: []string{"ctl"},
		WholeTable: true, // without an age, because built-in tools have none
		Columns: []resource.Column[*v1alpha1.CatalogTool]{
			{Name: "Name", Description: "What the model calls it by.", Value: func(t *v1alpha1.CatalogTool) any { return t.Name }},
			{Name: "Builtin", Type: "boolean", Description: "Whether the tool needs no Tool object.", Value: func(t *v1alpha1.CatalogTool) any { return t.Spec.Builtin }},
			{Name: "Available", Description: "Whether the controller can reach it; empty for built-in tools.", Value: func(t *v1alpha1.CatalogTool) any { return available(t) }},
			{Name: "URL", Wide: true, Description: "The address that is called.", Value: func(t *v1alpha1.CatalogTool) any { return t.Spec.URL }},
			{Name: "Description", Wide: true, Description: "What the model reads.", Value: func(t *v1alpha1.CatalogTool) any { return t.Spec.Description }},
		},
		Guard: guard,
		Shape: resource.View[*v1alpha1.CatalogTool]{Get: c.get, List: c.list},
	}
}

func available(t *v1alpha1.CatalogTool) string {
	switch {
	case t.Spec.Available == nil:
		return ""
	case *t.Spec.Available:
		return "true"
	default:
		return "false"
	}
}

var errNoList = errors.New("the list of tools has another type")

type catalogue struct {
	tools *resource.Stored[*v1alpha1.Tool]
}

func (c catalogue) get(ctx context.Context, name string) (*v1alpha1.CatalogTool, error) {
	for _, d := range builtin.Definitions() {
		if d.Name == name {
			return builtIn(request.NamespaceValue(ctx), d), nil
		}
	}
	t, err := c.tools.Get(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("catalogtools"), name)
	}
	if err != nil {
		return nil, err
	}
	return custom(t), nil
}

// Prefixes of continue tokens: the next page begins after a built-in tool, or at a position in the list of Tools. A token that
// is before the first Tool ends with the revision at which Tools are listed.
const (
	afterBuiltin = "b:"
	atTools      = "t:"
	atRevision   = "@"
)

// list returns the built-in tools and then the Tools of the namespace, all pages at the revision of the first. A list of all
// namespaces has the Tools alone.
func (c catalogue) list(ctx context.Context, o *metainternalversion.ListOptions) (runtime.Object, error) {
	list := &v1alpha1.CatalogToolList{Items: []v1alpha1.CatalogTool{}}
	from, err := position(o.Continue)
	if err != nil {
		return nil, err
	}
	namespace := request.NamespaceValue(ctx)
	if namespace != "" && !from.tools {
		for _, d := range builtin.Definitions() {
			t := builtIn(namespace, d)
			if d.Name <= from.after || !selects(o, t) {
				continue
			}
			if full(o, len(list.Items)) {
				return c.end(ctx, o, from, list, afterBuiltin+list.Items[len(list.Items)-1].Name)
			}
			list.Items = append(list.Items, *t)
		}
	}
	if full(o, len(list.Items)) {
		return c.end(ctx, o, from, list, atTools)
	}
	return list, c.addTools(ctx, o, from, list)
}

// end completes a page without Tools.
func (c catalogue) end(ctx context.Context, o *metainternalversion.ListOptions, from place, list *v1alpha1.CatalogToolList, next string) (runtime.Object, error) {
	if list.ResourceVersion = from.revision; list.ResourceVersion == "" {
		one := *o
		one.Continue, one.Limit = "", 1
		found, err := c.tools.List(ctx, &one)
		if err != nil {
			return nil, err
		}
		tools, ok := found.(*v1alpha1.ToolList)
		if !ok {
			return nil, apierrors.NewInternalError(errNoList)
		}
		list.ResourceVersion = tools.ResourceVersion
	}
	list.Continue = token(next + atRevision + list.ResourceVersion)
	return list, nil
}

// addTools fills the page with Tools.
func (c catalogue) addTools(ctx context.Context, o *metainternalversion.ListOptions, from place, list *v1alpha1.CatalogToolList) error {
	next := *o
	next.Continue = from.rest
	if o.Limit > 0 {
		next.Limit = o.Limit - int64(len(list.Items))
	}
	switch {
	case from.rest != "":
		next.ResourceVersion, next.ResourceVersionMatch = "", ""
	case from.revision != "":
		next.ResourceVersion, next.ResourceVersionMatch = from.revision, metav1.ResourceVersionMatchExact
	}
	found, err := c.tools.List(ctx, &next)
	if err != nil {
		return err
	}
	tools, ok := found.(*v1alpha1.ToolList)
	if !ok {
		return apierrors.NewInternalError(errNoList)
	}
	for i := range tools.Items {
		if !builtin.Has(tools.Items[i].Name) {
			list.Items = append(list.Items, *custom(&tools.Items[i]))
		}
	}
	list.ResourceVersion, list.RemainingItemCount = tools.ResourceVersion, tools.RemainingItemCount
	if tools.Continue != "" {
		list.Continue = token(atTools + tools.Continue)
	}
	return nil
}

func full(o *metainternalversion.ListOptions, n int) bool { return o.Limit > 0 && int64(n) >= o.Limit }

// selects reports whether the selectors of a list match a built-in tool, which has no labels.
func selects(o *metainternalversion.ListOptions, t *v1alpha1.CatalogTool) bool {
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set{}) {
		return false
	}
	return o.FieldSelector == nil || o.FieldSelector.Matches(fields.Set{"metadata.name": t.Name, "metadata.namespace": t.Namespace})
}

func token(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// place is where a page begins.
type place struct {
	after    string // the built-in tool that the page before ended with
	tools    bool   // the built-in tools are over
	rest     string // the position in the list of Tools; empty for its beginning
	revision string // of that list, as long as it has not begun; empty if it is not known
}

// position reads a continue token.
func position(s string) (place, error) {
	if s == "" {
		return place{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if after, ok := strings.CutPrefix(string(b), afterBuiltin); err == nil && ok {
		name, revision, _ := strings.Cut(after, atRevision)
		return place{after: name, revision: revision}, nil
	}
	if rest, ok := strings.CutPrefix(string(b), atTools); err == nil && ok {
		if revision, ok := strings.CutPrefix(rest, atRevision); ok {
			return place{tools: true, revision: revision}, nil
		}
		return place{tools: true, rest: rest}, nil
	}
	return place{}, apierrors.NewBadRequest("continue: is not a continue token of this list")
}

func builtIn(namespace string, d tool.Definition) *v1alpha1.CatalogTool {
	t := &v1alpha1.CatalogTool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.Name},
		Spec:       v1alpha1.CatalogToolSpec{Builtin: true, Description: d.Description},
	}
	if len(d.Parameters) > 0 {
		t.Spec.Parameters = &apiextensionsv1.JSON{Raw: d.Parameters}
	}
	return t
}

func custom(t *v1alpha1.Tool) *v1alpha1.CatalogTool {
	url := t.Status.Endpoint
	switch {
	case url != "":
	case t.Spec.MCP != nil && t.Spec.MCP.Remote != nil:
		url = t.Spec.MCP.Remote.URL
	case t.Spec.HTTP != nil:
		url = t.Spec.HTTP.URL
	}
	return &v1alpha1.CatalogTool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion, CreationTimestamp: t.CreationTimestamp, Labels: t.Labels,
		},
		Spec: v1alpha1.CatalogToolSpec{
			Description: t.Spec.Description, Parameters: t.Spec.Parameters, ToolRef: &v1alpha1.NamespacedReference{Namespace: t.Namespace, Name: t.Name},
			URL: url, Available: &t.Status.Available,
		},
	}
}
