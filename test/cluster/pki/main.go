// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pki writes what the programs of a test cluster need to trust each
// other into one folder: two certificate authorities, certificates, the keys of
// ServiceAccount tokens, and a kubeconfig for each client.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// validity far exceeds the life of a test cluster.
const validity = 30 * 24 * time.Hour

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "pki", "folder to write into")
	flag.StringVar(&o.server, "server", "https://127.0.0.1:6443", "URL of kube-apiserver, for the kubeconfigs")
	flag.StringVar(&o.addresses, "addresses", "127.0.0.1", "addresses of kube-apiserver, with commas between")
	flag.StringVar(&o.node, "node", "node-1", "name of the node")
	flag.StringVar(&o.nodeAddress, "node-address", "127.0.0.1", "address of the node")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	dir, server, addresses, node, nodeAddress string
}

func run(o options) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority(o.dir, "ca")
	if err != nil {
		return err
	}
	front, err := newAuthority(o.dir, "front-proxy-ca") // signs nothing but the aggregator's own client certificate
	if err != nil {
		return err
	}
	apiserver := append(strings.Split(o.addresses, ","), "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	masters := []string{"system:masters"}
	return errors.Join(
		ca.server("apiserver", "kube-apiserver", apiserver...),
		ca.server("kubelet-server", "system:node:"+o.node, o.node, o.nodeAddress),
		ca.client("apiserver-kubelet-client", "kube-apiserver-kubelet-client", masters),
		front.client("front-proxy-client", "front-proxy-client", nil),
		ca.kubeconfig(o.server, "admin", "kubernetes-admin", masters),
		ca.kubeconfig(o.server, "controller-manager", "system:kube-controller-manager", nil),
		ca.kubeconfig(o.server, "scheduler", "system:kube-scheduler", nil),
		ca.kubeconfig(o.server, "kube-proxy", "system:kube-proxy", nil),
		ca.kubeconfig(o.server, "dns", "system:dns", nil),
		ca.kubeconfig(o.server, "kubelet", "system:node:"+o.node, []string{"system:nodes"}),
		tokenKeys(o.dir),
	)
}

// tokenKeys writes the key pair that signs and checks ServiceAccount tokens.
func tokenKeys(dir string) error {
	key, err := newKey(dir, "sa")
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	_, err = write(dir, "sa.pub", "PUBLIC KEY", der)
	return err
}

// authority signs certificates and writes them into its folder.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(dir, name string) (*authority, error) {
	key, err := newKey(dir, name)
	if err != nil {
		return nil, err
	}
	t, err := template(name, nil)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	text, err := write(dir, name+".crt", "CERTIFICATE", der)
	return &authority{dir: dir, cert: cert, key: key, pem: text}, err
}

// server writes NAME.crt and NAME.key for a server that is reached as one of hosts.
func (a *authority) server(name, user string, hosts ...string) error {
	t, err := template(user, nil)
	if err != nil {
		return err
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return a.sign(name, t)
}

// client writes NAME.crt and NAME.key for a user in groups.
func (a *authority) client(name, user string, groups []string) error {
	t, err := template(user, groups)
	if err != nil {
		return err
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(name, t)
}

// kubeconfig does what client does, and writes NAME.kubeconfig with both files in it.
func (a *authority) kubeconfig(url, name, user string, groups []string) error {
	if err := a.client(name, user, groups); err != nil {
		return err
	}
	crt, err := os.ReadFile(filepath.Join(a.dir, name+".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(a.dir, name+".key"))
	if err != nil {
		return err
	}
	base64 := base64.StdEncoding.EncodeToString
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q, certificate-authority-data: %s}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {client-certificate-data: %s, client-key-data: %s}}]
`, url, base64(a.pem), base64(crt), base64(key))
	return os.WriteFile(filepath.Join(a.dir, name+".kubeconfig"), []byte(text), 0o600)
}

func (a *authority) sign(name string, t *x509.Certificate) error {
	key, err := newKey(a.dir, name)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	_, err = write(a.dir, name+".crt", "CERTIFICATE", der)
	return err
}

func template(user string, groups []string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}, nil
}

func newKey(dir, name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	_, err = write(dir, name+".key", "EC PRIVATE KEY", der)
	return key, err
}

func write(dir, name, kind string, der []byte) ([]byte, error) {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	return text, os.WriteFile(filepath.Join(dir, name), text, 0o600)
}
