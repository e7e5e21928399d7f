// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// ask returns a native object whose spec consists of query parameters. A parameter that is empty is left out.
func (c *call) ask(n Native) ([]byte, error) {
	spec := map[string]any{}
	for _, line := range n.AskFor {
		if member, value, fixed := strings.Cut(line, " = "); fixed {
			spec[member] = value
			continue
		}
		name, params, _ := strings.Cut(line, ":")
		member := strings.TrimRight(name, "[]#?!0")
		if params == "" {
			params = member
		}
		for param := range strings.SplitSeq(params, "|") {
			param = strings.TrimSpace(param)
			value := strings.TrimSpace(c.query.Get(param))
			if inPath, ok := strings.CutPrefix(param, ":"); ok {
				value = c.params[inPath]
			}
			if value == "" {
				continue
			}
			v, err := asked(param, strings.TrimPrefix(name, member), value)
			if err != nil {
				return nil, err
			}
			spec[member] = v
			break
		}
		if _, has := spec[member]; !has && strings.HasSuffix(name, "!") {
			return nil, badRequest("%s: is required", params)
		}
	}
	data, err := json.Marshal(map[string]any{"kind": n.Ask, "apiVersion": v1alpha1.SchemeGroupVersion.String(), "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encode the query: %w", err)
	}
	return data, nil
}

// asked returns the value of a parameter of a kind.
func asked(param, kind, value string) (any, error) {
	switch kind {
	case "[]":
		var list []string
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		return list, nil
	case "#", "#0":
		least := int64(1)
		if kind == "#0" {
			least = 0
		}
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < least {
			return nil, badRequest("%s: must be a number and at least %d", param, least)
		}
		return n, nil
	case "?":
		b, err := strconv.ParseBool(value)
		if err != nil {
			return nil, badRequest("%s: must be true or false", param)
		}
		return b, nil
	}
	return value, nil
}
