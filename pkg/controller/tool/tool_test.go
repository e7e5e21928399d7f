// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/egress"
)

func TestProbe(t *testing.T) {
	called := false
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer srv.Close()
	selfSigned := httptest.NewTLSServer(http.NotFoundHandler())
	defer selfSigned.Close()
	server := mcp.NewServer(&mcp.Implementation{Name: "docs"}, nil)
	server.AddTool(&mcp.Tool{Name: "search", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		t.Error("the probe called the tool")
		return nil, errors.New("called")
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	docs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer docs.Close()
	remote := func(url, name, key string) v1alpha1.ToolSpec {
		return v1alpha1.ToolSpec{
			MCP:  &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: url, ToolName: name}},
			HTTP: &v1alpha1.ToolHTTP{AuthSecretRef: &v1alpha1.KeyReference{Name: "key", Key: key}},
		}
	}
	const gone = "http://127.0.0.1:1"
	at := func(url string) v1alpha1.ToolSpec { return v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{URL: url}} }
	elsewhere := remote(docs.URL, "search", "text")
	elsewhere.HTTP.AuthSecretRef.Name = "limited"
	for _, tc := range []struct {
		name     string
		spec     v1alpha1.ToolSpec
		endpoint string
		err      string // a part of it
	}{
		{"reachable", at(strings.Replace(srv.URL, "http://", "http://user:pass@", 1) + "/x?key=secret"), srv.URL + "/x", ""},
		{"remote MCP", remote(docs.URL, "search", "text"), docs.URL, ""},
		{"remote MCP without the tool", remote(docs.URL, "find", "text"), docs.URL, "does not offer a tool with the name find"},
		{"remote MCP without a credential", remote(docs.URL, "search", "gone"), docs.URL, "the key of the Secret is empty"},
		{"remote MCP elsewhere", elsewhere, docs.URL, "may not be sent to " + docs.URL},
		{"remote MCP that is not one", v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: "http://127.0.0.1:1/"}}}, "http://127.0.0.1:1/", "is not allowed"},
		{"nobody there", at(gone), gone, "refused"},
		{"unknown certificate", at(selfSigned.URL), selfSigned.URL, "by TLS"},
		{"metadata", at("http://169.254.169.254/latest"), "http://169.254.169.254/latest", "not allowed"},
		{"no address", v1alpha1.ToolSpec{}, "", "no endpoint"},
		{"no URL", at("ftp://x/"), "", "not an http or https URL"},
		{"sandboxed MCP", v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{}}, "", "does not run MCP servers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tool := &v1alpha1.Tool{Spec: tc.spec}
			p := probe{
				now: func() time.Time { return time.Unix(1000, 0) }, interval: time.Minute, dial: dialer(egress.Guard{Private: true}),
				remote: egress.Guard{Allow: []string{strings.TrimPrefix(docs.URL, "http://")}},
				secret: func(_ context.Context, key types.NamespacedName) (*corev1.Secret, error) {
					s := &corev1.Secret{Data: map[string][]byte{"text": []byte("secret")}}
					if key.Name == "limited" {
						s.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: "docs.example"}
					}
					return s, nil
				},
			}
			err := p.do(t.Context(), tool)
			if w, ok := errors.AsType[step.Wait](err); !ok || w.After != time.Minute {
				t.Errorf("outcome = %v", err)
			}
			st := tool.Status
			if st.Available != (tc.err == "") || !strings.Contains(st.Error, tc.err) || st.Endpoint != tc.endpoint || st.LastCheck == nil ||
				meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionAvailable) != st.Available {
				t.Errorf("status = %+v", st)
			}
		})
	}
	if called {
		t.Error("the probe sent a request")
	}
}
