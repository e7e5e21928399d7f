// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause is the first process of every pod's sandbox on the test node:
// it holds the pod's namespaces until it is told to stop.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
