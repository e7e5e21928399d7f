// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// jobName names the run of an attempt.
func jobName(task string, attempt int32) string {
	return shorten(task, "-"+strconv.Itoa(int(attempt)), validation.DNS1123SubdomainMaxLength)
}

// labelValue is a name as the value of a label.
func labelValue(name string) string { return shorten(name, "", validation.LabelValueMaxLength) }

// shorten makes name+suffix fit. A name that is cut gets a digest, so that two
// long names stay different.
func shorten(name, suffix string, limit int) string {
	if len(name)+len(suffix) <= limit {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	digest := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:limit-len(suffix)-len(digest)], "-.") + digest + suffix
}

// refKey is the object that a reference names, seen from a namespace.
func refKey(namespace string, r *v1alpha1.NamespacedReference) types.NamespacedName {
	if r.Namespace != "" {
		namespace = r.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: r.Name}
}
