// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelValue is the name of an object as the value of a label.
func LabelValue(name string) string { return ShortName(name, "", validation.LabelValueMaxLength) }

// ShortName is name+suffix in at most limit bytes. A name that is cut gets a
// digest, so that two long names stay different.
func ShortName(name, suffix string, limit int) string {
	if len(name)+len(suffix) <= limit {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	digest := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:limit-len(suffix)-len(digest)], "-.") + digest + suffix
}

// MemoryAgent is the agent of a task as memories name it: NAME, NAMESPACE/NAME for an agent of another namespace, and
// empty for a task without an agent.
func MemoryAgent(t *Task) string {
	switch ref := t.Spec.AgentRef; {
	case ref == nil:
		return ""
	case ref.Namespace != "" && ref.Namespace != t.Namespace:
		return ref.Namespace + "/" + ref.Name
	default:
		return ref.Name
	}
}
