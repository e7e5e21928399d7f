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

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/test/kit"
)

// The vendors' clients for JavaScript, and the AI SDK with both adapters, work unmodified.
func TestNPMClients(t *testing.T) {
	t.Parallel()
	npm(t)
	s, token := onScript(t)
	for name, base := range map[string]string{"directly": s.RESTURL, "through the router": s.router()} {
		runNode(t, name, "clients.mjs", 14, "BASE="+base, "TOKEN="+token)
	}
}

// npm skips the test where the clients are not installed, which make test does if npm is there. Where CI is set, it fails.
func npm(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("npm/node_modules"); err != nil {
		missing(t, "the clients are not installed: make test installs them with npm")
	}
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
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
	npm(t)
	s, _ := onTools(t, slowly)
	runNode(t, "resume", "resume.mjs", 2, "BASE="+s.RESTURL, "TOKEN="+s.token("team", "page", "platform-editor"))
}

// A page in a browser calls the APIs from an origin that the server allows, and from no other.
func TestBrowser(t *testing.T) {
	t.Parallel()
	npm(t)
	if _, err := exec.LookPath("chromium-headless-shell"); err != nil {
		missing(t, "chromium-headless-shell is not installed")
	}
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
	t, dir := s.t, s.t.TempDir()
	t.Helper()
	routes, kubeconfig = filepath.Join(dir, "routes.yaml"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(routes, []byte("namespaces: {team: "+s.RESTURL+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["host"] = &clientcmdapi.Cluster{Server: s.Admin.Host, CertificateAuthorityData: s.Admin.CAData, CertificateAuthority: s.Admin.CAFile}
	c.AuthInfos["admin"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: s.Admin.CertData, ClientCertificate: s.Admin.CertFile, ClientKeyData: s.Admin.KeyData, ClientKey: s.Admin.KeyFile,
	}
	c.Contexts["host"] = &clientcmdapi.Context{Cluster: "host", AuthInfo: "admin"}
	c.CurrentContext = "host"
	if err := clientcmd.WriteToFile(*c, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return routes, kubeconfig
}
