// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelValue is the name of an object as the value of a label.
func LabelValue(name string) string { return ShortName(name, "", validation.LabelValueMaxLength) }

// TransactionLabel is the id of a transaction as the value of the label transaction-id. Characters that a label cannot have are
// replaced.
func TransactionLabel(id string) string {
	value := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '_'
	}, id)
	value = LabelValue(strings.Trim(value, "-_."))
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}

// sessionDigest is how many bytes of a digest the label of a session with a long name has.
const sessionDigest = 6

// SessionLabel is the name of a session as the value of the label chat-session. A name that is too long is cut and gets 12 digits
// of its SHA-256.
func SessionLabel(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := "-" + hex.EncodeToString(sum[:sessionDigest])
	return strings.TrimRight(name[:validation.LabelValueMaxLength-len(digest)], "-.") + digest
}

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

// In returns the key of the object that a reference in an object of the given namespace names.
func (r *NamespacedReference) In(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(r.Namespace, namespace), Name: r.Name}
}

// IsRelativePath reports whether s is a slash-separated relative path that stays below its root, in its shortest form.
func IsRelativePath(s string) bool {
	return s != "" && !path.IsAbs(s) && !strings.ContainsAny(s, "\\\x00") && path.Clean(s) == strings.TrimSuffix(s, "/") &&
		!slices.Contains(strings.Split(s, "/"), "..")
}

// IsLowerHex reports whether s consists of n lower-case hexadecimal digits, as digests do.
func IsLowerHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
