// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task tests tasks: how they run and end, alone, in sessions, as forks, and as trees of agents that coordinate.
package task

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestMain makes the controllers of this process, and the workers that they start, trust the certificate of test servers, as an operator
// does with that of a registered runtime.
func TestMain(m *testing.M) {
	remove, err := trust()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := standalone.MainCode(m)
	remove()
	os.Exit(code)
}

// trust replaces the authorities of the system by a file, which workers read, too.
func trust() (remove func(), err error) {
	s := httptest.NewTLSServer(nil) // all of them have one certificate
	defer s.Close()
	dir, err := os.MkdirTemp("", "authorities-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "ca.pem")
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, err
	}
	return func() { _ = os.RemoveAll(dir) }, os.Setenv("SSL_CERT_FILE", file)
}
