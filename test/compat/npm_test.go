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

	"github.com/platform-ai/platform/test/harness"
)

// The vendors' clients for JavaScript, and the AI SDK with both adapters, work unmodified. They are installed by
// make test, if npm is there; without them, the test is skipped, except where CI is set.
func TestNPMClients(t *testing.T) {
	if _, err := os.Stat("npm/node_modules"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the clients are not installed: make test installs them with npm")
		}
		t.Skip("the clients are not installed: make test installs them with npm")
	}
	s, token := onScript(t)
	for name, base := range map[string]string{"directly": s.RESTURL, "through the router": s.router()} {
		cmd := exec.CommandContext(t.Context(), "node", "npm/clients.mjs")
		cmd.Env = append(os.Environ(), "BASE="+base, "TOKEN="+token)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Count(string(out), "ok: ") != 8 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// router starts the program platform-router for namespace team and returns its address. The server reviews tokens, too.
func (s *server) router() string {
	t, dir := s.t, s.t.TempDir()
	routes, kubeconfig := filepath.Join(dir, "routes.yaml"), filepath.Join(dir, "kubeconfig")
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
	p := harness.Start(t, nil, harness.Bin(t, "platform-router"), "--bind-address", "127.0.0.1:0", "--routes-file", routes, "--kubeconfig", kubeconfig)
	return "http://" + regexp.MustCompile(`address="([^"]+)"`).FindStringSubmatch(p.Await(t, "Serving"))[1]
}
