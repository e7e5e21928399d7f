// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
)

// namePrefix begins the name of each effect, and nameDigits is how many digits of a digest follow.
const namePrefix, nameDigits = "effect-", 40

// Name returns the name of an effect: effect- and 40 hexadecimal digits of the SHA-256 of its spec as canonical JSON (package canonical),
// without createdAt.
func Name(spec *v1alpha1.ToolEffectSpec) (string, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("spec of a tool effect: %w", err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return "", fmt.Errorf("spec of a tool effect: %w", err)
	}
	delete(members, "createdAt")
	if raw, err = json.Marshal(members); err == nil {
		raw, err = canonical.Form(raw)
	}
	if err != nil {
		return "", fmt.Errorf("spec of a tool effect: %w", err)
	}
	sum := sha256.Sum256(raw)
	return namePrefix + hex.EncodeToString(sum[:])[:nameDigits], nil
}

// check returns an error if the name of an effect is not that of its spec. An administrator can make such an effect.
func check(e *v1alpha1.ToolEffect) error {
	name, err := Name(&e.Spec)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if name != e.Name {
		return apierrors.NewConflict(v1alpha1.Resource("tooleffects"), e.Name, errors.New("its name does not follow from its spec, so the server did not make it; delete it"))
	}
	return nil
}
