// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

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
	const gone = "http://127.0.0.1:1"
	at := func(url string) v1alpha1.ToolSpec { return v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{URL: url}} }
	for _, tc := range []struct {
		name     string
		spec     v1alpha1.ToolSpec
		endpoint string
		err      string // a part of it
	}{
		{"reachable", at(strings.Replace(srv.URL, "http://", "http://user:pass@", 1) + "/x?key=secret"), srv.URL + "/x", ""},
		{"remote MCP", v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: srv.URL}}}, srv.URL, ""},
		{"nobody there", at(gone), gone, "refused"},
		{"unknown certificate", at(selfSigned.URL), selfSigned.URL, "by TLS"},
		{"metadata", at("http://169.254.169.254/latest"), "http://169.254.169.254/latest", "not allowed"},
		{"no address", v1alpha1.ToolSpec{}, "", "no endpoint"},
		{"no URL", at("ftp://x/"), "", "not an http or https URL"},
		{"sandboxed MCP", v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{}}, "", "does not run MCP servers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tool := &v1alpha1.Tool{Spec: tc.spec}
			p := probe{now: func() time.Time { return time.Unix(1000, 0) }, interval: time.Minute, dial: dialer(egress.Guard{Private: true})}
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
