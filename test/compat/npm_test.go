// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// The vendors' clients for JavaScript, and the AI SDK with both adapters, work unmodified.
func TestNPMClients(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM)
	s, token := onScript(t)
	for name, base := range map[string]string{"directly": s.RESTURL, "through the router": s.router()} {
		runNode(t, name, "clients.mjs", 14, "BASE="+base, "TOKEN="+token)
	}
}

// runNode runs a script that prints a line for each of its parts.
func runNode(t *testing.T, name, script string, parts int, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "npm/"+script)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok: ") != parts {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// slowly answers a chat with a call of a tool and, slowly, with text.
const slowly = `
apiKey: ` + vendorKey + `
models: [m]
turns:
- match: {contains: take your time, offered: [list_agents]}
  reply: {text: I look first., toolCalls: [{name: list_agents, arguments: {}}]}
- match: {lastRole: tool}
  reply: {text: That is all of it.}
  fault: {chunkDelay: 20ms}
`

// The AI SDK resumes a background turn after the page was reloaded, whatever the protocol of the model.
func TestNPMResume(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM)
	s, _ := onTools(t, slowly)
	runNode(t, "resume", "resume.mjs", 2, "BASE="+s.RESTURL, "TOKEN="+s.Token(t, "team", "page", "platform-editor"))
}

// A page in a browser calls the APIs from an origin that the server allows, and from no other.
func TestBrowser(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	port := kit.FreePort(t)
	origin := "http://127.0.0.1:" + port
	s, token := onScript(t, func(o *standalone.Options) { o.CORSOrigins = []string{origin} })
	env := []string{"TOKEN=" + token, "ORIGIN=" + port, "HOME=" + t.TempDir()}
	runNode(t, "directly", "browser.mjs", 5, append(env, "BASE="+s.RESTURL, "REST="+s.RESTURL)...)
	runNode(t, "through the router", "browser.mjs", 4, append(env, "BASE="+s.router("PLATFORM_CORS_ALLOWED_ORIGINS="+origin))...)
}

// router starts the program platform-router for namespace team and returns its address. The server reviews tokens, too.
func (s *server) router(env ...string) string {
	routes, kubeconfig := s.routerFiles()
	p := kit.Start(s.t, env, kit.Bin(s.t, "platform-router"), "--bind-address", "127.0.0.1:0", "--routes-file", routes, "--kubeconfig", kubeconfig)
	return "http://" + regexp.MustCompile(`address="([^"]+)"`).FindStringSubmatch(p.Await(s.t, "Serving"))[1]
}

// routerFiles writes the routes of a router that serves namespace team, and a kubeconfig of the administrator.
func (s *server) routerFiles() (routes, kubeconfig string) {
	s.t.Helper()
	routes = filepath.Join(s.t.TempDir(), "routes.yaml")
	if err := os.WriteFile(routes, []byte("namespaces: {team: "+s.RESTURL+"}\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return routes, host.Kubeconfig(s.t, s.Admin, "")
}
