// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl is the real kubectl, built from its own module, so that the
// demo and the tests need nothing installed. It is a module of its own to keep
// its dependencies out of the product.
package main

import (
	// The tool accepts credential plug-ins, as the released one does.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	command := cmd.NewDefaultKubectlCommand()
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err)
	}
}
