// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dns is the test cluster's name server: CoreDNS with the one plugin
// that answers for Services, and without its many others.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
	coremain.Run()
}
