// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
)

// maxValues is how many values of the arguments policies can see. A call with more is refused, because a policy could
// not see all of it.
const maxValues = 4096

// values sets the strings, numbers and booleans of the arguments by their path.
func values(s *v1alpha1.ToolCallSpec) error {
	if err := canonical.Check(s.Arguments.Raw); err != nil { // such as a member that is there twice
		return apierrors.NewBadRequest(fmt.Sprintf("spec.arguments: ambiguous or out of range: %v", err))
	}
	var top any
	if err := json.Unmarshal(s.Arguments.Raw, &top); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.arguments: %v", err))
	}
	s.Strings, s.Numbers, s.Booleans = map[string]string{}, map[string]float64{}, map[string]bool{}
	left := maxValues
	if !walk(s, "", top, &left) {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.arguments: must have at most %d values", maxValues))
	}
	return nil
}

// walk adds a value and everything in it. It reports false if there are too many.
func walk(s *v1alpha1.ToolCallSpec, path string, v any, left *int) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if !walk(s, join(path, name), member, left) {
				return false
			}
		}
		return true
	case []any:
		for i, item := range v {
			if !walk(s, join(path, strconv.Itoa(i)), item, left) {
				return false
			}
		}
		return true
	case string:
		s.Strings[path] = v
	case float64:
		s.Numbers[path] = v
	case bool:
		s.Booleans[path] = v
	}
	*left--
	return *left >= 0
}

func join(path, name string) string {
	name = strings.ReplaceAll(name, ".", `\.`) // two members never have one path
	if path == "" {
		return name
	}
	return path + "." + name
}
