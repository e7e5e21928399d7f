// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Query makes the spec of a native object of the query of a request. Members get the query parameters of their names. A parameter
// that is empty is left out. The first parameter that is not valid is the error. For a list, the members are the fields that narrow it.
type Query struct {
	params map[string]string // of the path
	values url.Values
	spec   map[string]any
	fields bool // whether members are fields that narrow a list
	read   []Parameter
	err    error
}

// Asked returns the query parameters that Spec reads.
func (n Native) Asked() []Parameter {
	q := &Query{spec: map[string]any{}, fields: n.Ask == ""}
	if n.Spec != nil {
		n.Spec(q)
	}
	return q.read
}

// ask returns a native object whose spec consists of query parameters.
func (c *call) ask(n Native) ([]byte, error) {
	q := &Query{params: c.params, values: c.query, spec: map[string]any{}}
	if n.Spec(q); q.err != nil {
		return nil, q.err
	}
	data, err := json.Marshal(map[string]any{"kind": n.Ask, "apiVersion": v1alpha1.SchemeGroupVersion.String(), "spec": q.spec})
	if err != nil {
		return nil, fmt.Errorf("encode the query: %w", err)
	}
	return data, nil
}

// narrow adds the field selector of a list that is narrowed by query parameters.
func (c *call) narrow(n Native, to url.Values) error {
	if n.Spec == nil || n.Ask != "" {
		return nil
	}
	q := &Query{params: c.params, values: c.query, spec: map[string]any{}}
	n.Spec(q)
	var terms []fields.Selector
	for _, field := range slices.Sorted(maps.Keys(q.spec)) {
		terms = append(terms, fields.OneTermEqualSelector(field, fmt.Sprint(q.spec[field])))
	}
	to.Set("fieldSelector", fields.AndSelectors(terms...).String())
	return q.err
}

// Set gives a member a value.
func (q *Query) Set(member, value string) *Query {
	q.spec[member] = value
	return q
}

// Path gives a member the value of a parameter of the path.
func (q *Query) Path(member, param string) *Query { return q.Set(member, q.params[param]) }

// Text reads a text from the first of several parameters that is not empty.
func (q *Query) Text(member string, from ...string) *Query {
	for _, param := range from {
		q.add(Parameter{Name: param, Type: "string"}, member, nil)
	}
	return q
}

// Texts reads texts.
func (q *Query) Texts(members ...string) *Query {
	for _, member := range members {
		q.Text(member, member)
	}
	return q
}

// Required reads a text that must not be empty.
func (q *Query) Required(member, from string) *Query {
	q.add(Parameter{Name: from, Type: "string", Text: "Is required."}, member, nil)
	if q.spec[member] == nil && q.err == nil {
		q.err = badRequest("%s: is required", from)
	}
	return q
}

// Either reads a text that has two names. A query with both must give both the same value.
func (q *Query) Either(member, name, other string) *Query {
	one, two := strings.TrimSpace(q.values.Get(name)), strings.TrimSpace(q.values.Get(other))
	if q.err == nil && one != "" && two != "" && one != two {
		q.err = badRequest("%s: differs from %s, which is another name for it; give one of them", other, name)
	}
	return q.Text(member, name, other)
}

// Limit reads how many items a page has. 0 means most, which a larger number is lowered to.
func (q *Query) Limit(most int) *Query {
	text := fmt.Sprintf("How many items a page has: %d by default, with 0, and at most; a larger number is lowered.", most)
	return q.add(Parameter{Name: "limit", Type: "integer", Text: text}, "limit", func(value string) (any, error) {
		n, err := strconv.Atoi(value)
		if errors.Is(err, strconv.ErrRange) && n > 0 {
			err = nil
		}
		if err != nil || n < 0 {
			return nil, badRequest("limit: must be a number and at least 0")
		}
		return min(n, most), nil
	})
}

// List reads a list of texts that are separated by commas, from the parameter of the member's name or from another one.
func (q *Query) List(member string, from ...string) *Query {
	return q.add(Parameter{Name: append(from, member)[0], Type: "string", Text: "Several values are separated by commas."}, member, func(value string) (any, error) {
		var list []string
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		return list, nil
	})
}

// Flag reads a boolean.
func (q *Query) Flag(member string) *Query {
	return q.add(Parameter{Name: member, Type: "boolean"}, member, func(value string) (any, error) {
		b, err := strconv.ParseBool(value)
		if err != nil {
			err = badRequest("%s: must be true or false", member)
		}
		return b, err
	})
}

// Number reads a number that must be at least least, from the parameter of the member's name or from another one.
func (q *Query) Number(member string, least int, from ...string) *Query {
	param := append(from, member)[0]
	return q.add(Parameter{Name: param, Type: "integer", Least: least}, member, func(value string) (any, error) {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < int64(least) {
			err = badRequest("%s: must be a number and at least %d", param, least)
		}
		return n, err
	})
}

// add reads a parameter, unless an earlier one gave the member its value. A text needs no conversion.
func (q *Query) add(p Parameter, member string, convert func(value string) (any, error)) *Query {
	if q.fields {
		p.Text = strings.TrimSpace(p.Text + " Only items whose " + member + " is this.")
	}
	q.read = append(q.read, p)
	value := strings.TrimSpace(q.values.Get(p.Name))
	_, has := q.spec[member]
	switch {
	case has || value == "" || q.err != nil:
	case convert == nil:
		q.spec[member] = value
	default:
		q.spec[member], q.err = convert(value)
	}
	return q
}
