// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"os"
	"strings"
)

// ownNamespaceFile is the file in which every pod finds the namespace of its ServiceAccount.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace returns the namespace of the pod that this process runs in. It fails outside a pod.
func OwnNamespace() (string, error) {
	b, err := os.ReadFile(ownNamespaceFile)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}
