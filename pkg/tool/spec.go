// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// CheckSpec returns why no run can use a Tool as it is. The error names the field. It does not check whether the
// credential exists.
func CheckSpec(s *v1alpha1.ToolSpec) error {
	if s.Parameters != nil {
		if err := CheckSchema(s.Parameters.Raw); err != nil {
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

// Address returns where a Tool that CheckSpec accepts sends its credential.
func Address(s *v1alpha1.ToolSpec) (*url.URL, error) {
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
