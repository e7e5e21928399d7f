// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentruntime tests what the platform does with registered runtimes.
package agentruntime

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestMain makes the controllers of this process trust the certificate of test servers, as an operator does with that of a runtime.
func TestMain(m *testing.M) {
	if err := trust(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	standalone.Main(m)
}

// trust replaces the authorities of the system by a file, which is removed once it was read.
func trust() error {
	s := httptest.NewTLSServer(nil) // all of them have one certificate
	defer s.Close()
	file, err := os.CreateTemp("", "authorities-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Setenv("SSL_CERT_FILE", file.Name()); err != nil {
		return err
	}
	_, err = x509.SystemCertPool() // which reads the file, once in a process
	return err
}
