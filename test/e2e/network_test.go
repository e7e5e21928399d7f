// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// TestNetworkOfPrograms: programs of an agent, and commands that it delegates, have no network on either host, unless the Agent
// opens it. Then they connect to the proxy of their run, which asks for its password, and to nothing else.
func TestNetworkOfPrograms(t *testing.T) {
	t.Parallel()
	everywhere(t, networkOfPrograms)
}

func networkOfPrograms(t *testing.T, p place) {
	if err := sandbox.Probe().CheckProxy(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	connect := `
if [ -z "$http_proxy" ]; then echo "no proxy"; else
  address=${http_proxy#*@}
  exec 3<>"/dev/tcp/${address/://}"
  printf 'GET http://example.com/ HTTP/1.0\r\n\r\n' >&3
  cat <&3
fi
for address in 127.0.0.1/22 ` + p.Address() + `/443 192.0.2.1/80; do (cat < "/dev/tcp/$address") 2>&1; done; true`
	applyTeam(t, p, startModelWith(t, p, &script.Script{Models: []string{"scripted-1"}, Turns: []script.Turn{
		{Match: script.Match{Turn: 1, Contains: "Connect"}, Reply: calling(t, "code_exec", map[string]any{"language": "bash", "timeout": 60, "code": connect})},
		{Match: script.Match{Turn: 1, Contains: "Delegate"}, Reply: calling(t, "create_container_task", map[string]any{"image": p.Image(), "command": []string{"bash", "-c", connect}})},
		{Match: script.Match{Turn: 2, Contains: `"output"`}, Reply: script.Reply{Text: "{{ .Results.code_exec.data.output }}"}},
		{Match: script.Match{Turn: 2}, Reply: script.Reply{Text: "It is delegated."}},
	}}))
	p.MustShell(t, `kubectl patch agent coder --type merge -p '{"spec":{"coordination":{"enabled":true}}}'`)
	for name, first := range map[string]string{"closed": "no proxy", "open": "407 Proxy Authentication Required"} {
		if name == "open" {
			p.MustShell(t, `kubectl patch agent coder --type merge -p '{"spec":{"sandbox":{"network":"Public"}}}'`)
		} else {
			p.MustShell(t, `kubectl patch agent coder --type merge -p '{"spec":{"sandbox":null}}'`)
		}
		applyTask(t, p, name, "Connect.")
		applyTask(t, p, name+"-parent", "Delegate it.")
		p.MustShell(t, "kubectl wait --for=condition=Succeeded --timeout=300s task/"+name+" task/"+name+"-parent")
		child := strings.TrimSpace(p.MustShell(t, "kubectl get tasks -l platform.ai/parent-task="+name+"-parent -o jsonpath='{.items[*].metadata.name}'"))
		for _, task := range []string{name, child} {
			out := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/"+task+"/result"))
			if !strings.Contains(out, first) || strings.Count(out, "Permission denied") < 3 {
				t.Errorf("%s, %s: %s", name, task, out)
			}
		}
	}
	p.MustShell(t, "kubectl wait --for=jsonpath='{.status.conditions[?(@.type==\"SandboxReady\")].reason}' --timeout=300s agent/coder")
}

// askProxy asks the proxy of a run, with its password, for what stands in its lines, and prints the status of each answer.
const askProxy = `
password=${http_proxy#http://}; password=$(printf %s "${password%@*}" | base64 | tr -d '\n'); address=${http_proxy#*@}
while read -r request; do
  exec 3<>"/dev/tcp/${address/://}"
  printf '%s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic %s\r\nConnection: close\r\n\r\n' "$request" "$password" >&3
  read -r version status <&3; echo "$status for $request"
  exec 3>&-
done << 'END'
`

// TestProxyInPods: the proxy of an Agent with the public network refuses, in a Pod, everything that is not public: what is in
// the Pod, on the node and in the cluster, by address and by name.
func TestProxyInPods(t *testing.T) {
	t.Parallel()
	if err := sandbox.Probe().CheckProxy(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	p := newTeam(t)
	address := func(namespace, service string) string {
		return strings.TrimSpace(p.MustShell(t, "kubectl -n "+namespace+" get service "+service+" -o jsonpath={.spec.clusterIP}:{.spec.ports[0].port}"))
	}
	var requests []string
	for _, to := range []string{
		"127.0.0.1:22", "localhost:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "169.254.169.254:80", "[fe80::1]:80", "10.0.0.1:443", "192.168.0.1:443", "100.100.100.200:80",
		p.Address() + ":443", address("default", "kubernetes"), "kubernetes.default.svc:443", address(system, "platform-apiserver"), "platform-apiserver." + system + ".svc:443",
	} {
		requests = append(requests, "CONNECT "+to, "GET http://"+to+"/")
	}
	asked := strings.Join(append(requests, "CONNECT absent.default.svc:80"), "\n")
	applyTeam(t, p, startModelWith(t, p, &script.Script{Models: []string{"scripted-1"}, Turns: []script.Turn{
		{Match: script.Match{Turn: 1}, Reply: calling(t, "code_exec", map[string]any{"language": "bash", "timeout": 60, "code": askProxy + asked + "\nEND\n"})},
		{Match: script.Match{Turn: 2}, Reply: script.Reply{Text: "{{ .Results.code_exec.data.output }}"}},
	}}))
	p.MustShell(t, `kubectl patch agent coder --type merge -p '{"spec":{"sandbox":{"network":"Public"}}}'`)
	applyTask(t, p, "asks", "Ask.")
	p.MustShell(t, "kubectl wait --for=condition=Succeeded --timeout=300s task/asks")
	var result struct{ Result string }
	if err := json.Unmarshal([]byte(p.MustShell(t, "kubectl get --raw "+native(p, "tasks/asks/result"))), &result); err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if !strings.Contains(result.Result, "403 Forbidden\r for "+request+"\n") {
			t.Errorf("%s was not refused", request)
		}
	}
	if !strings.Contains(result.Result, "502 Bad Gateway\r for CONNECT absent.") { // so the proxy knew the password
		t.Errorf("what has no address was not looked up")
	}
	if t.Failed() {
		t.Log(result.Result)
	}
}

// calling is a model's answer that calls a tool.
func calling(t *testing.T, name string, arguments map[string]any) script.Reply {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return script.Reply{ToolCalls: []script.ToolCall{{Name: name, Arguments: raw}}}
}
