// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// jobName names the run of an attempt.
func jobName(task string, attempt int32) string {
	return v1alpha1.ShortName(task, "-"+strconv.Itoa(int(attempt)), validation.DNS1123SubdomainMaxLength)
}

// refKey is the object that a reference names, seen from a namespace.
func refKey(namespace string, r *v1alpha1.NamespacedReference) types.NamespacedName {
	if r.Namespace != "" {
		namespace = r.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: r.Name}
}
