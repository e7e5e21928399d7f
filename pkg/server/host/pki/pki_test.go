// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	testclock "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/server/host/pki"
)

var start = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func open(t *testing.T, o pki.Options) *pki.Authority {
	t.Helper()
	a, err := pki.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// files returns the content of every file in the directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[filepath.Base(path)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func parse(t *testing.T, b []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(b)
	if block == nil {
		t.Fatal("not PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func verify(t *testing.T, a *pki.Authority, name string, at time.Time, usage x509.ExtKeyUsage) *x509.Certificate {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(filepath.Dir(a.CAFile()), name+".crt"))
	if err != nil {
		t.Fatal(err)
	}
	c := parse(t, b)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CAPEM())
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func TestOpenMakesUsablePairs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	a := open(t, pki.Options{Dir: dir, Hosts: []string{"box.example.com", "10.1.2.3", "0.0.0.0"}, Clock: testclock.NewFakePassiveClock(start)})

	serving := verify(t, a, "serving", start, x509.ExtKeyUsageServerAuth)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "box.example.com", "10.1.2.3"} {
		if err := serving.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if serving.VerifyHostname("0.0.0.0") == nil {
		t.Error("serving certificate names the unspecified address")
	}
	admin := verify(t, a, "admin", start, x509.ExtKeyUsageClientAuth)
	if got := admin.Subject.Organization; !cmp.Equal(got, []string{"system:masters"}) {
		t.Errorf("admin's groups = %v", got)
	}
	if _, err := a.KeyPair(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: mode %v, err %v", info.Mode(), err)
	}
	for name := range files(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, err %v", name, info.Mode(), err)
		}
	}
}

func TestReopenReuses(t *testing.T) {
	dir := t.TempDir()
	c := testclock.NewFakePassiveClock(start)
	key := open(t, pki.Options{Dir: dir, Clock: c}).ServiceAccountKey()
	before := files(t, dir)
	c.SetTime(start.Add(200 * 24 * time.Hour))
	if !open(t, pki.Options{Dir: dir, Clock: c}).ServiceAccountKey().Equal(key) {
		t.Error("ServiceAccount key changed")
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
}

func TestRenewal(t *testing.T) {
	tests := []struct {
		name    string
		after   time.Duration
		hosts   []string
		change  func(t *testing.T, dir string)
		changed []string
	}{
		{name: "nothing to do", after: time.Hour},
		{name: "leaves in the last third", after: 300 * 24 * time.Hour, changed: []string{"admin.crt", "admin.key", "serving.crt", "serving.key"}},
		{name: "authority in the last third", after: 8 * 365 * 24 * time.Hour, changed: []string{"admin.crt", "admin.key", "ca.crt", "serving.crt", "serving.key"}},
		{name: "another name", hosts: []string{"new.example.com"}, changed: []string{"serving.crt", "serving.key"}},
		{name: "half of a pair lost", change: remove("admin.key"), changed: []string{"admin.crt", "admin.key"}},
		{name: "clock was set back", after: -24 * time.Hour, changed: []string{"admin.crt", "admin.key", "ca.crt", "serving.crt", "serving.key"}},
		{name: "authority's certificate lost", change: remove("ca.crt"), changed: []string{"ca.crt"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			c := testclock.NewFakePassiveClock(start)
			first := open(t, pki.Options{Dir: dir, Clock: c})
			oldAdmin, err := os.ReadFile(filepath.Join(dir, "admin.crt"))
			if err != nil {
				t.Fatal(err)
			}
			before := files(t, dir)
			if tt.change != nil {
				tt.change(t, dir)
			}
			c.SetTime(start.Add(tt.after))
			a := open(t, pki.Options{Dir: dir, Clock: c, Hosts: tt.hosts})
			var changed []string
			for name, content := range files(t, dir) {
				if before[name] != content {
					changed = append(changed, name)
				}
			}
			if diff := cmp.Diff(tt.changed, changed, sortStrings); diff != "" {
				t.Errorf("changed files (-want +got):\n%s", diff)
			}
			verify(t, a, "serving", c.Now(), x509.ExtKeyUsageServerAuth)
			verify(t, a, "admin", c.Now(), x509.ExtKeyUsageClientAuth)
			// What the authority signed before is still valid.
			if err := parse(t, oldAdmin).CheckSignatureFrom(parse(t, a.CAPEM())); err != nil {
				t.Errorf("old client certificate: %v", err)
			}
			if !a.ServiceAccountKey().Equal(first.ServiceAccountKey()) {
				t.Error("ServiceAccount key changed")
			}
		})
	}
}

var sortStrings = cmp.Transformer("set", func(in []string) map[string]bool {
	m := map[string]bool{}
	for _, s := range in {
		m[s] = true
	}
	return m
})

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedFolderIsRefused(t *testing.T) {
	t.Run("authority's key lost", func(t *testing.T) {
		dir := t.TempDir()
		open(t, pki.Options{Dir: dir})
		remove("ca.key")(t, dir)
		if _, err := pki.Open(pki.Options{Dir: dir}); !errors.Is(err, pki.ErrNoKey) {
			t.Errorf("err = %v, want ErrNoKey", err)
		}
	})
	for _, name := range []string{"ca.crt", "ca.key", "serving.crt", "sa.key"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, pki.Options{Dir: dir})
			if err := os.WriteFile(filepath.Join(dir, name), []byte("garbage"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := pki.Open(pki.Options{Dir: dir})
			if err == nil || !bytes.Contains([]byte(err.Error()), []byte(name)) {
				t.Errorf("err = %v, want one that names %s", err, name)
			}
			if b, _ := os.ReadFile(filepath.Join(dir, name)); string(b) != "garbage" {
				t.Error("the damaged file was replaced")
			}
		})
	}
}

func TestOpenFilesAreClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	open(t, pki.Options{Dir: dir})
	if err := os.Chmod(filepath.Join(dir, "ca.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, pki.Options{Dir: dir})
	if info, err := os.Stat(filepath.Join(dir, "ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, err %v", info.Mode(), err)
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	a := open(t, pki.Options{Dir: filepath.Join(dir, "pki")})
	path := filepath.Join(dir, "kubeconfig")
	for range 2 { // the second write finds the same content
		if err := a.WriteKubeconfig(path, "https://127.0.0.1:7443"); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, err %v", info.Mode(), err)
	}
	c, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != "https://127.0.0.1:7443" {
		t.Errorf("host = %s", c.Host)
	}
	if _, err := tls.X509KeyPair(c.CertData, c.KeyData); err != nil {
		t.Error(err)
	}
	if got := a.AdminConfig(c.Host); !bytes.Equal(got.CertData, c.CertData) || !bytes.Equal(got.CAData, c.CAData) {
		t.Error("AdminConfig differs from the kubeconfig file")
	}
	for server, compressed := range map[string]bool{
		"https://127.0.0.1:7443": false, "https://[::1]:7443": false, "https://localhost": false, "https://10.0.0.1": true, "https://example.org": true,
	} {
		if err := a.WriteKubeconfig(path, server); err != nil {
			t.Fatal(err)
		}
		if c, err = clientcmd.BuildConfigFromFlags("", path); err != nil || c.DisableCompression == compressed || a.AdminConfig(server).DisableCompression == compressed {
			t.Errorf("%s: compression %v, want %v; error %v", server, !c.DisableCompression, compressed, err)
		}
	}
}

func TestIssueClient(t *testing.T) {
	a := open(t, pki.Options{Dir: t.TempDir()})
	certPEM, keyPEM, err := a.IssueClient("jane", []string{"dev", "ops"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	if c := parse(t, certPEM); c.Subject.CommonName != "jane" || len(c.Subject.Organization) != 2 {
		t.Errorf("subject = %v", c.Subject)
	}
}

func TestServingOnlyMakesNoOtherIdentity(t *testing.T) {
	dir := t.TempDir()
	a := open(t, pki.Options{Dir: dir, Name: "platform-apiserver", Hosts: []string{"api.system.svc"}, ServingOnly: true})
	before := files(t, dir)
	for _, name := range []string{"ca.crt", "ca.key", "serving.crt", "serving.key"} {
		if before[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if len(before) != 4 {
		t.Errorf("%d files", len(before))
	}
	served := parse(t, []byte(before["serving.crt"]))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CAPEM())
	if _, err := served.Verify(x509.VerifyOptions{Roots: roots, DNSName: "api.system.svc", CurrentTime: time.Now()}); err != nil {
		t.Error(err)
	}
	if served.Subject.CommonName != "platform-apiserver" || served.Issuer.CommonName != "platform-apiserver-ca" {
		t.Errorf("%s signed by %s", served.Subject, served.Issuer)
	}
	if changed, err := a.Renew(); err != nil || changed {
		t.Errorf("renewed at once: %v %v", changed, err)
	}
}
