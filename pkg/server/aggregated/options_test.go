// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"strings"
	"testing"
)

func TestErrorsNameTheFlag(t *testing.T) {
	for _, tc := range []struct {
		flag   string
		change func(*Options)
	}{
		{"--namespace", func(o *Options) { o.Namespace = "" }}, // outside a pod
		{"--namespace", func(o *Options) { o.Namespace = "Upper" }},
		{"--service-name", func(o *Options) { o.ServiceName = "a.b" }},
		{"--tls-private-key-file", func(o *Options) { o.CertFile = "x" }},
		{"--tls-name", func(o *Options) { o.CertFile, o.KeyFile, o.TLSNames = "x", "y", []string{"z"} }},
		{"--lock-timeout", func(o *Options) { o.LockTimeout = -1 }},
		{"--data-dir", func(o *Options) { o.DataDir = "" }},
		{"--bind-address", func(o *Options) { o.BindAddress = "localhost" }},
		{"--audit-log", func(o *Options) { o.AuditPolicy = "x" }},
		{"--kubeconfig", func(o *Options) { o.Kubeconfig = "/nowhere" }},
		{"--kubeconfig", func(*Options) {}}, // outside a pod
	} {
		o := NewOptions()
		o.DataDir, o.Namespace = t.TempDir(), "here"
		tc.change(o)
		if err := Run(t.Context(), *o); err == nil || !strings.Contains(err.Error(), tc.flag) {
			t.Errorf("%s: %v", tc.flag, err)
		}
	}
}

func TestNamesOfTheCertificate(t *testing.T) {
	o := NewOptions()
	o.Namespace, o.TLSNames = "here", []string{"192.0.2.1"}
	got := strings.Join(o.names(), " ")
	want := "platform-apiserver platform-apiserver.here platform-apiserver.here.svc platform-apiserver.here.svc.cluster.local 0.0.0.0 192.0.2.1"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The server's tools must not work in the namespace of the server itself.
func TestOwnNamespaceIsBlocked(t *testing.T) {
	o := NewOptions()
	o.DataDir, o.Namespace = t.TempDir(), "here"
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	if err := o.Chat.CheckNamespace("here"); err == nil {
		t.Error("chats are allowed in the namespace of the server")
	}
	if err := o.Chat.CheckNamespace("elsewhere"); err != nil {
		t.Error(err)
	}
}
