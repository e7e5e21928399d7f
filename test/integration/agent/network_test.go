// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// outside serves at an address of this machine that is not loopback. It stands for the public internet, since the operator can
// allow it.
func outside(t *testing.T) *httptest.Server {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || !prefix.Addr().Is4() || prefix.Addr().IsLoopback() || prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(prefix.Addr(), 0).String())
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("from outside")) }))
		_ = s.Listener.Close()
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
		return s
	}
	t.Skip("this machine has no address besides loopback")
	return nil
}

// TestNetworkOfPrograms: programs have no network unless the Agent says so. Then they reach what the operator's rules allow
// through the proxy of their run, and neither this machine nor anything else without it.
func TestNetworkOfPrograms(t *testing.T) {
	t.Parallel()
	if err := sandbox.Probe().CheckProxy(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	far := outside(t)
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("from inside")) }))
	t.Cleanup(near.Close)
	host := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	code := strings.ReplaceAll(`
if [ -z "$http_proxy" ]; then echo no proxy; else
  address=${http_proxy#http://*@} password=$(p=${http_proxy#http://}; printf %s "${p%@*}" | base64 -w0)
  ask() {
    exec 3<>"/dev/tcp/${address/://}"
    printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nProxy-Authorization: Basic %s\r\n\r\n' "$1" "$password" >&3
    cat <&3
  }
  ask FAR; ask NEAR
fi
for address in FAR NEAR; do (address=${address#http://}; cat < "/dev/tcp/${address/://}") 2>&1; done
`, "FAR", far.URL)
	code = strings.ReplaceAll(code, "NEAR", near.URL)
	arguments, err := json.Marshal(map[string]any{"language": "bash", "code": code})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := standalone.WithModel(t, fmt.Sprintf(`
models: [scripted-1]
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: code_exec, arguments: %s}]}
- match: {turn: 2}
  reply: {text: '{{ .Results.code_exec.data.output }}'}
`, arguments), func(o *standalone.Options) { o.WebFetchAllow = []string{host(far), host(near)} })
	agents := p.API().Agents("default")
	for name, box := range map[string]*v1alpha1.AgentSandbox{"closed": nil, "open": {Network: v1alpha1.SandboxNetworkPublic}} {
		kit.Must[*v1alpha1.Agent](t)(agents.Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
			ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []v1alpha1.AgentTool{{Name: "code_exec"}}, Sandbox: box,
		}}, metav1.CreateOptions{}))
		p.Give(name, name, "Ask.", v1alpha1.TaskSucceeded)
	}
	for name, want := range map[string][]string{
		"closed": {"no proxy", "Permission denied"},
		"open":   {"200 OK", "from outside", "403 Forbidden", "public internet only", "Permission denied"},
	} {
		got := p.ResultOf(name)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: the result lacks %q:\n%s", name, text, got)
			}
		}
		if strings.Contains(got, "from inside") || name == "closed" && strings.Contains(got, "from outside") {
			t.Errorf("%s: %s", name, got)
		}
	}
	a := kit.Must[*v1alpha1.Agent](t)(agents.Get(t.Context(), "open", metav1.GetOptions{}))
	if !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionSandboxReady) {
		t.Errorf("conditions: %+v", a.Status.Conditions)
	}
	_, err = agents.Patch(t.Context(), "open", types.MergePatchType, []byte(`{"spec":{"sandbox":{"network":"Everything"}}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "spec.sandbox.network") {
		t.Errorf("an unknown network: %v", err)
	}
}
