// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/platform-ai/platform/pkg/durable"
)

const contextName = "platform"

// WriteKubeconfig writes the administrator's kubeconfig file for the server,
// with mode 0600. Certificates are embedded, so copies of the file work
// anywhere. A file that already has this content is not written.
func (a *Authority) WriteKubeconfig(path, server string) error {
	a.mu.RLock()
	c := clientcmdapi.NewConfig()
	c.Clusters[contextName] = &clientcmdapi.Cluster{
		Server: server, CertificateAuthorityData: a.ca.certPEM,
		DisableCompression: onThisMachine(server), // it costs both sides more time than it saves
	}
	c.AuthInfos[AdminName] = &clientcmdapi.AuthInfo{ClientCertificateData: a.admin.certPEM, ClientKeyData: a.admin.keyPEM}
	c.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: AdminName, Namespace: "default"}
	c.CurrentContext = contextName
	b, err := clientcmd.Write(*c)
	a.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	old, err := readFile(path)
	if err != nil {
		return err
	}
	if slices.Equal(old, b) {
		return nil
	}
	return durable.WriteFile(path, b)
}

// onThisMachine reports whether the address of a server is a loopback address.
func onThisMachine(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// AdminConfig returns the client configuration of the administrator, the same
// as in the kubeconfig file.
func (a *Authority) AdminConfig(server string) *rest.Config {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return &rest.Config{Host: server, DisableCompression: onThisMachine(server), TLSClientConfig: rest.TLSClientConfig{
		CAData:   slices.Clone(a.ca.certPEM),
		CertData: slices.Clone(a.admin.certPEM),
		KeyData:  slices.Clone(a.admin.keyPEM),
	}}
}
