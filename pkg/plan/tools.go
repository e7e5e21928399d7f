// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/tool"
	"github.com/platform-ai/platform/pkg/worker/tool/builtin"
)

// Names of the built-in tools that the plan of a run depends on.
const (
	// ToolCodeExec runs programs.
	ToolCodeExec = "code_exec"
	// ToolRequestApproval asks a person to approve a call before it is made.
	ToolRequestApproval = "request_approval"
)

// toolName matches the function names that every vendor accepts.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// tools finds the tools of these names.
func (m *maker) tools(ctx context.Context, names []types.NamespacedName) error {
	for _, key := range names {
		if builtin.Has(key.Name) {
			if err := m.builtin(key.Name); err != nil {
				return err
			}
			m.plan.Tools = append(m.plan.Tools, Tool{Name: key.Name})
			continue
		}
		if err := m.custom(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// builtin refuses a built-in tool that cannot work at the place.
func (m *maker) builtin(name string) error {
	if m.place.Lacks != nil {
		if what := m.place.Lacks(name); what != "" {
			return refuse(v1alpha1.ReasonToolUnavailable, "the tool %s cannot work here: %s; or take it from the tools of the task and its agent", name, what)
		}
	}
	if name == ToolCodeExec && m.place.NoPrograms != "" {
		return refuse(v1alpha1.ReasonSandboxUnavailable, "tool %s: %s", name, m.place.NoPrograms)
	}
	if name == ToolCodeExec && m.place.NoNetwork != "" && PublicNetwork(m.plan.Agent) {
		return refuse(v1alpha1.ReasonSandboxUnavailable, "tool %s: spec.sandbox.network of Agent %q: %s", name, m.plan.Agent.Name, m.place.NoNetwork)
	}
	return nil
}

// RunsPrograms reports whether tasks of the Agent may run programs, whatever else they name.
func RunsPrograms(a *v1alpha1.Agent) bool {
	task := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI}}
	task.Namespace = a.Namespace
	return slices.Contains(UsesOf(task, a).Tools, types.NamespacedName{Namespace: a.Namespace, Name: ToolCodeExec})
}

// PublicNetwork reports whether programs of the Agent may reach the public internet. The Agent may be nil.
func PublicNetwork(a *v1alpha1.Agent) bool {
	return a != nil && a.Spec.Sandbox != nil && a.Spec.Sandbox.Network == v1alpha1.SandboxNetworkPublic
}

// custom adds the Tool with the given name, if there is one.
func (m *maker) custom(ctx context.Context, key types.NamespacedName) error {
	o, err := m.reader.Tool(ctx, key)
	if apierrors.IsNotFound(err) {
		m.leftOut(key.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("tool %s: %w", key, err)
	}
	if !toolName.MatchString(key.Name) {
		return refuse(v1alpha1.ReasonToolInvalid, "tool %q: models know tools by names of 1 to 64 letters, digits, - and _", key.Name)
	}
	if err := CheckTool(&o.Spec); err != nil {
		return refuse(v1alpha1.ReasonToolInvalid, "tool %s: %v", key, err)
	}
	if o.Spec.MCP != nil && key.Namespace != m.namespace {
		return refuse(v1alpha1.ReasonToolInvalid, "tool %s: spec.mcp: a remote MCP tool can be used in its own namespace only, not from namespace %q", key, m.namespace)
	}
	m.plan.Tools = append(m.plan.Tools, Tool{Name: key.Name, Object: o})
	if h := o.Spec.HTTP; h != nil && h.AuthSecretRef != nil && !m.withoutKeys {
		address, err := ToolAddress(&o.Spec)
		if err != nil {
			return refuse(v1alpha1.ReasonToolInvalid, "tool %s: its address cannot be used", key)
		}
		return m.need(ctx, Secret{Use: ForTool, For: key, Namespace: key.Namespace, Ref: *h.AuthSecretRef}, address)
	}
	return nil
}

// CheckTool returns why no run can use a Tool as it is. The error names the field. It does not check whether the
// credential exists.
func CheckTool(s *v1alpha1.ToolSpec) error {
	if s.Parameters != nil {
		if err := tool.CheckSchema(s.Parameters.Raw); err != nil {
			return fmt.Errorf("spec.parameters: %w", err)
		}
	}
	if s.MCP != nil {
		return checkMCP(s)
	}
	h := s.HTTP
	if h == nil {
		return errors.New("spec.http: required")
	}
	if !isEndpoint(h.URL) {
		return errors.New("spec.http.url: must be an absolute http or https URL without credentials")
	}
	return checkHTTP(h)
}

// checkMCP checks a tool of an MCP server.
func checkMCP(s *v1alpha1.ToolSpec) error {
	switch m := s.MCP; {
	case m.Workspace != nil:
		return errors.New("spec.mcp.workspace: this server runs no MCP servers in sandboxes; use remote, or http")
	case m.SubstrateActor != nil:
		return errors.New("spec.mcp.substrateActor: this server has no actors; use remote, or http")
	case m.Remote == nil:
		return errors.New("spec.mcp.remote: required")
	case !isEndpoint(m.Remote.URL):
		return errors.New("spec.mcp.remote.url: must be an absolute http or https URL without credentials")
	}
	h := s.HTTP
	if h == nil {
		return nil
	}
	if h.URL != "" {
		return errors.New("spec.http.url: must be left out, because the address is spec.mcp.remote.url")
	}
	if h.AuthInject == v1alpha1.AuthInjectBody {
		return errors.New("spec.http.authInject: must be header for a tool with mcp")
	}
	for name := range h.Headers {
		if c := http.CanonicalHeaderKey(name); strings.HasPrefix(c, "Mcp-") || c == "Accept" || c == "Content-Type" || c == "Last-Event-Id" {
			return fmt.Errorf("spec.http.headers[%s]: the header belongs to the Model Context Protocol", name)
		}
	}
	return checkHTTP(h)
}

// ToolAddress returns where a Tool that CheckTool accepts sends its credential.
func ToolAddress(s *v1alpha1.ToolSpec) (*url.URL, error) {
	if s.MCP != nil {
		return url.Parse(s.MCP.Remote.URL)
	}
	return url.Parse(s.HTTP.URL)
}

func isEndpoint(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Hostname() != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

func checkHTTP(h *v1alpha1.ToolHTTP) error {
	if h.OutboundAccessPolicyRef != nil {
		return errors.New("spec.http.outboundAccessPolicyRef: outbound access policies are not available; use authSecretRef")
	}
	if err := checkAuth(h); err != nil {
		return err
	}
	return checkHeaders(h)
}

func checkAuth(h *v1alpha1.ToolHTTP) error {
	if h.AuthSecretRef == nil {
		return nil
	}
	switch h.AuthInject {
	case v1alpha1.AuthInjectHeader, "":
		return nil
	case v1alpha1.AuthInjectBody:
		if h.AuthBodyKey == "" {
			return errors.New("spec.http.authBodyKey: required when authInject is body")
		}
		if h.Method == v1alpha1.ToolGet || h.Method == v1alpha1.ToolDelete {
			return fmt.Errorf("spec.http.authInject: a %s request has no body", h.Method)
		}
		return nil
	default:
		return fmt.Errorf("spec.http.authInject: %q is not known; use header or body", h.AuthInject)
	}
}

// checkHeaders refuses headers that the platform or HTTP itself sets. Its errors do not repeat values, which may be
// credentials.
func checkHeaders(h *v1alpha1.ToolHTTP) error {
	reserved := []string{
		"Txn-Token", "Transaction-Token", "Idempotency-Key", "Host", "Content-Length", "Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
	for name, value := range h.Headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name), !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("spec.http.headers[%s]: must be a valid name and value of a header", name)
		case slices.Contains(reserved, canonical):
			return fmt.Errorf("spec.http.headers[%s]: the header is reserved", name)
		case h.AuthSecretRef != nil && h.AuthInject != v1alpha1.AuthInjectBody && canonical == "Authorization":
			return fmt.Errorf("spec.http.headers[%s]: the header is set by authSecretRef", name)
		}
	}
	return nil
}
