// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// difference is a question that the hosts answer differently.
type difference struct {
	world    *world
	question question
	answers  [2]answer
}

// compare asks both hosts all questions of the worlds, and counts the answers of the first host.
func compare(ctx context.Context, hosts [2]*server, worlds []world) ([]difference, map[answer]int, error) {
	var asked []difference
	for i := range worlds {
		for _, q := range worlds[i].questions {
			asked = append(asked, difference{world: &worlds[i], question: q})
		}
	}
	err := each(ctx, asked, func(ctx context.Context, i int, d difference) (err error) {
		for n, h := range hosts {
			if asked[i].answers[n], err = h.ask(ctx, d.question); err != nil {
				return err
			}
		}
		return nil
	})
	count := map[answer]int{}
	for _, d := range asked {
		count[d.answers[0]]++
	}
	return slices.DeleteFunc(asked, func(d difference) bool { return d.answers[0] == d.answers[1] }), count, err
}

// explain removes objects, subjects and rules of the world as long as the answers still differ, and describes what is
// left. The world stays reduced.
func explain(ctx context.Context, hosts [2]*server, d difference) (string, []object, error) {
	left := d.world.objects
	present := left
	differs := func(objects []object) (bool, error) {
		var a [2]answer
		for i, h := range hosts {
			if err := h.remove(ctx, present); err != nil {
				return false, err
			}
			if err := h.create(ctx, objects); err != nil {
				return false, err
			}
			var err error
			if a[i], err = h.ask(ctx, d.question); err != nil {
				return false, err
			}
		}
		present = objects
		return a[0] != a[1], nil
	}
	for again := true; again; {
		again = false
		for _, smaller := range reductions(left) {
			is, err := differs(smaller)
			if err != nil {
				return "", nil, err
			}
			if is {
				left, again = smaller, true
				break
			}
		}
	}
	if is, err := differs(left); err != nil || !is {
		return "", nil, fmt.Errorf("the answers differ only sometimes: %t, %w", is, err)
	}
	text, err := describe(ctx, hosts, d, left)
	return text, left, err
}

// reductions returns the lists with one object, subject or rule removed.
func reductions(objects []object) [][]object {
	var out [][]object
	for i := range objects {
		out = append(out, slices.Delete(slices.Clone(objects), i, i+1))
	}
	with := func(i int, o object) { out = append(out, slices.Replace(slices.Clone(objects), i, i+1, o)) }
	for i, o := range objects {
		rules, subjects := parts(o)
		if rules != nil {
			for n := range *rules {
				c := o.(runtime.Object).DeepCopyObject().(object)
				r, _ := parts(c)
				*r = slices.Delete(*r, n, n+1)
				with(i, c)
			}
		}
		if subjects != nil {
			for n := range *subjects {
				c := o.(runtime.Object).DeepCopyObject().(object)
				_, s := parts(c)
				*s = slices.Delete(*s, n, n+1)
				with(i, c)
			}
		}
	}
	return out
}

// parts are the rules of a role, or the subjects of a binding.
func parts(o object) (*[]rbacv1.PolicyRule, *[]rbacv1.Subject) {
	switch o := o.(type) {
	case *rbacv1.Role:
		return &o.Rules, nil
	case *rbacv1.ClusterRole:
		return &o.Rules, nil
	case *rbacv1.RoleBinding:
		return nil, &o.Subjects
	case *rbacv1.ClusterRoleBinding:
		return nil, &o.Subjects
	}
	return nil, nil
}

// describe describes a difference for the reader of the failure.
func describe(ctx context.Context, hosts [2]*server, d difference, objects []object) (string, error) {
	var b strings.Builder
	q, err := yaml.Marshal(d.question.spec)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "world %s, local %t:\n%s", d.world.name, d.question.local, q)
	for i, h := range hosts {
		_, reason, err := h.reasons(ctx, d.question)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s: %+v %s\n", h.name, d.answers[i], reason)
	}
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "--- %T\n%s", o, text)
	}
	return b.String(), nil
}
