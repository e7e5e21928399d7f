// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// Limits of static headers, in bytes.
const (
	maxHeaderName  = 128
	maxHeaderValue = 1024
	maxHeaders     = 4096
)

// maxRemoteTimeout limits a call of a remote MCP server.
const maxRemoteTimeout = 2 * time.Minute

func validate(_ context.Context, t *v1alpha1.Tool) field.ErrorList {
	path, spec := field.NewPath("spec"), &t.Spec
	var errs field.ErrorList
	if p := spec.Parameters; p != nil {
		if err := tool.CheckSchema(p.Raw); err != nil {
			errs = append(errs, field.Invalid(path.Child("parameters"), field.OmitValueType{}, "must be a JSON Schema of an object: "+err.Error()))
		}
	}
	url := path.Child("http", "url")
	switch {
	case spec.MCP == nil && (spec.HTTP == nil || spec.HTTP.URL == ""):
		errs = append(errs, field.Required(url, "only a tool with mcp may leave it out"))
	case spec.MCP != nil && spec.HTTP != nil && spec.HTTP.URL != "":
		errs = append(errs, field.Forbidden(url, "the address of a tool with mcp comes from mcp"))
	}
	if spec.MCP != nil {
		errs = append(errs, validateMCP(spec, path)...)
	}
	if spec.HTTP != nil {
		errs = append(errs, validateHTTP(spec.HTTP, path.Child("http"))...)
	}
	return errs
}

// checkName refuses names that no vendor takes as that of a function, and names that a model would mix up with that of a tool
// that is built in. Tools of an earlier version keep theirs.
func checkName(ctx context.Context, t *v1alpha1.Tool, _ bool) (context.Context, func(bool), error) {
	path, name := field.NewPath("metadata", "name"), t.Name
	if name == "" { // generated from a prefix
		name = t.GenerateName + "00000"
	}
	var err *field.Error
	switch built := strings.ReplaceAll(name, "-", "_"); {
	case !tool.ValidName(name):
		err = field.Invalid(path, t.Name, "must be 1 to 64 letters, digits and -, because models call the tool by it")
	case built != name && builtin.Has(built):
		err = field.Invalid(path, t.Name, fmt.Sprintf("models would mix it up with the tool %s, which is built in", built))
	default:
		return ctx, nil, nil
	}
	return nil, nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Tool").GroupKind(), t.Name, field.ErrorList{err})
}

func validateMCP(spec *v1alpha1.ToolSpec, path *field.Path) field.ErrorList {
	m, mcp := spec.MCP, path.Child("mcp")
	var errs field.ErrorList
	set := 0
	for _, is := range []bool{m.Workspace != nil, m.SubstrateActor != nil, m.Remote != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		errs = append(errs, field.Invalid(mcp, field.OmitValueType{}, "exactly one of workspace, substrateActor and remote must be set"))
	}
	if m.Path != "" && !strings.HasPrefix(m.Path, "/") {
		errs = append(errs, field.Invalid(mcp.Child("path"), m.Path, `must begin with "/"`))
	}
	if m.Remote != nil {
		errs = append(errs, rule.HTTP().Check(m.Remote.URL, mcp.Child("remote", "url"))...)
		errs = append(errs, noTemplate(m.Remote.URL, mcp.Child("remote", "url"))...)
	}
	h, http := spec.HTTP, path.Child("http")
	if h == nil {
		return errs
	}
	if h.Method != "" && h.Method != v1alpha1.ToolPost {
		errs = append(errs, field.Invalid(http.Child("method"), h.Method, "a tool with mcp is called by POST"))
	}
	if h.AuthInject == v1alpha1.AuthInjectBody {
		errs = append(errs, field.Invalid(http.Child("authInject"), h.AuthInject, "a tool with mcp takes its credential in a header"))
	}
	if m.Remote != nil && h.Timeout.Value() > maxRemoteTimeout {
		errs = append(errs, field.Invalid(http.Child("timeout"), *h.Timeout, fmt.Sprintf("must not be longer than %s for a remote MCP server", maxRemoteTimeout)))
	}
	return errs
}

func validateHTTP(h *v1alpha1.ToolHTTP, path *field.Path) field.ErrorList {
	address := rule.HTTP()
	address.Query = true
	errs := append(address.Check(h.URL, path.Child("url")), noTemplate(h.URL, path.Child("url"))...)
	errs = append(errs, rule.Positive(h.Timeout, path.Child("timeout"))...)
	if h.AuthSecretRef != nil && h.OutboundAccessPolicyRef != nil {
		errs = append(errs, field.Forbidden(path.Child("authSecretRef"), "cannot be set together with outboundAccessPolicyRef"))
	}
	body := h.AuthInject == v1alpha1.AuthInjectBody
	if body && h.AuthBodyKey == "" {
		errs = append(errs, field.Required(path.Child("authBodyKey"), "authInject body needs it"))
	}
	if !body && h.AuthBodyKey != "" {
		errs = append(errs, field.Forbidden(path.Child("authBodyKey"), "is for authInject body"))
	}
	if body && (h.Method == v1alpha1.ToolGet || h.Method == v1alpha1.ToolDelete) {
		errs = append(errs, field.Invalid(path.Child("authInject"), h.AuthInject, fmt.Sprintf("a %s request has no body", h.Method)))
	}
	return append(errs, validateHeaders(h, path.Child("headers"))...)
}

// noTemplate refuses braces in an address. They would be sent as they are, although their author expects an argument in their
// place.
func noTemplate(address string, path *field.Path) field.ErrorList {
	if !strings.ContainsAny(address, "{}") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "is no template: {name} is not replaced; arguments are sent as the JSON body, or as query parameters with GET and DELETE; write %7B and %7D for braces that the address itself has")}
}

// validateHeaders never repeats a value: it may be a credential.
func validateHeaders(h *v1alpha1.ToolHTTP, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		value, p := h.Headers[name], path.Key(name)
		total += len(name) + len(value)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			errs = append(errs, field.Invalid(p, name, "must be the name of a header"))
		case len(name) > maxHeaderName:
			errs = append(errs, field.TooLong(p, name, maxHeaderName))
		case !httpguts.ValidHeaderFieldValue(value):
			errs = append(errs, field.Invalid(p, field.OmitValueType{}, "must be a valid value of a header"))
		case len(value) > maxHeaderValue:
			errs = append(errs, field.Invalid(p, field.OmitValueType{}, fmt.Sprintf("the value must be at most %d bytes", maxHeaderValue)))
		default:
			if rule := reserved(name, h); rule != "" {
				errs = append(errs, field.Forbidden(p, rule))
			}
		}
	}
	if total > maxHeaders {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("names and values must be at most %d bytes together", maxHeaders)))
	}
	return errs
}

// reserved returns why a header cannot be set, or "" if it can.
func reserved(name string, h *v1alpha1.ToolHTTP) string {
	switch strings.ToLower(name) {
	case "txn-token", "traceparent", "tracestate", "baggage":
		return "is set on each call for the task that makes it"
	case "idempotency-key":
		return "is set on each approved call"
	case "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer":
		return "belongs to the connection"
	case "authorization":
		if h.AuthSecretRef != nil && h.AuthInject != v1alpha1.AuthInjectBody {
			return "is set from authSecretRef"
		}
	}
	return ""
}
