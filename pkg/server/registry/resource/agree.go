// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// agreeing lets several managers apply the same value where the stored form is another: false, 0, an empty text or list, which it leaves
// out of most optional fields, or what a default replaces or the resource cleans. Server-side apply takes what each of them applies for a change, so the
// second meets a conflict, or with force takes the field from the first, which then takes it back, with a write each time.
//
// Here a field that has the same value before and after an apply, or is absent both times, was not changed by it. A conflict about such
// fields alone is none, and their other managers keep them. Pointers for all optional fields would do the same for most of them, but
// change the types that clients compile with, show every zero value, and leave out the types of Kubernetes, such as the value of a
// variable.
type agreeing struct {
	rest.UpdatedObjectInfo
	// manager is who writes.
	manager string
	// prepare makes of a new object what is stored in place of an old one.
	prepare func(ctx context.Context, obj, old runtime.Object)
}

// UpdatedObject returns the new object.
func (a agreeing) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj, err := a.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if disputed := disputes(err); len(disputed) > 0 {
		obj, err = a.settle(ctx, old, disputed, err)
	}
	if err != nil || obj == nil {
		return obj, err
	}
	return obj, a.restore(ctx, obj, old)
}

// stored returns the content that an object will have when it is stored in place of old.
func (a agreeing) stored(ctx context.Context, obj, old runtime.Object) (map[string]any, error) {
	obj = obj.DeepCopyObject()
	a.prepare(ctx, obj, old)
	return contentOf(obj)
}

// disputes returns the fields of a conflict between managers, as the error names them.
func disputes(err error) map[string]bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	fields := map[string]bool{}
	for _, c := range status.Status().Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			fields[c.Field] = true
		}
	}
	return fields
}

// settle applies once more as if nobody owned the disputed fields. If they are afterwards as they were before, there is no conflict;
// otherwise conflict is returned.
func (a agreeing) settle(ctx context.Context, old runtime.Object, disputed map[string]bool, conflict error) (runtime.Object, error) {
	before, err := contentOf(old)
	if err != nil {
		return nil, err
	}
	free := old.DeepCopyObject()
	m, err := meta.Accessor(free)
	if err != nil {
		return nil, fmt.Errorf("metadata of %T: %w", old, err)
	}
	var paths []fieldpath.Path
	entries := m.GetManagedFields()
	for i := range entries {
		owned, err := setOf(entries[i])
		if err != nil {
			return nil, err
		}
		taken := fieldpath.NewSet()
		owned.Iterate(func(p fieldpath.Path) {
			if disputed[p.String()] {
				taken.Insert(p.Copy())
			}
		})
		if taken.Empty() {
			continue
		}
		taken.Iterate(func(p fieldpath.Path) { paths = append(paths, p.Copy()) })
		if err := setFields(&entries[i], owned.Difference(taken)); err != nil {
			return nil, err
		}
	}
	m.SetManagedFields(entries)
	obj, err := a.UpdatedObjectInfo.UpdatedObject(ctx, free)
	if err != nil {
		return nil, err
	}
	after, err := a.stored(ctx, obj, old)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 || slices.ContainsFunc(paths, func(p fieldpath.Path) bool { return !same(before, after, p) }) {
		return nil, conflict
	}
	return obj, nil
}

// restore gives the other managers back the fields that they had and that did not change.
func (a agreeing) restore(ctx context.Context, obj, old runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("metadata of %T: %w", obj, err)
	}
	was, err := meta.Accessor(old)
	if err != nil {
		return fmt.Errorf("metadata of %T: %w", old, err)
	}
	entries := slices.Clone(m.GetManagedFields())
	applied := func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationApply && e.Manager == a.manager
	}
	if !slices.ContainsFunc(entries, applied) { // another kind of write, which may mean to reset who owns what
		return nil
	}
	var before, after map[string]any
	changed := false
	for _, had := range was.GetManagedFields() {
		if had.Operation != metav1.ManagedFieldsOperationApply || applied(had) || had.FieldsV1 == nil {
			continue
		}
		at := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == had.Manager && e.Operation == had.Operation && e.Subresource == had.Subresource
		})
		if at >= 0 && entries[at].FieldsV1 != nil && slices.Equal(entries[at].FieldsV1.GetRawBytes(), had.FieldsV1.GetRawBytes()) {
			continue
		}
		if before == nil {
			if before, err = contentOf(old); err == nil {
				after, err = a.stored(ctx, obj, old)
			}
			if err != nil {
				return err
			}
		}
		has, err := keep(had, at, entries, func(p fieldpath.Path) bool { return same(before, after, p) })
		switch {
		case err != nil:
			return err
		case has == nil:
			continue
		case at >= 0:
			entries[at] = *has
		default:
			entries = append(entries, *has)
		}
		changed = true
	}
	if changed {
		slices.SortStableFunc(entries, inOrder)
		m.SetManagedFields(ordered(entries, was.GetManagedFields()))
	}
	return nil
}

// ordered returns the entries in the order of old ones that differ in their times alone, so that these are recognised as unchanged.
func ordered(entries, old []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if len(entries) != len(old) {
		return entries
	}
	out := make([]metav1.ManagedFieldsEntry, 0, len(old))
	for _, had := range old {
		at := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
			e.Time = had.Time
			return equality.Semantic.DeepEqual(e, had)
		})
		if at < 0 {
			return entries
		}
		out = append(out, entries[at])
	}
	return out
}

// keep returns the entry of a manager with those fields that it had and lost and that stay; nil if there are none.
func keep(had metav1.ManagedFieldsEntry, at int, entries []metav1.ManagedFieldsEntry, stays func(fieldpath.Path) bool) (*metav1.ManagedFieldsEntry, error) {
	owned, err := setOf(had)
	if err != nil {
		return nil, err
	}
	has, now := had, fieldpath.NewSet()
	if at >= 0 {
		has = entries[at]
		if now, err = setOf(has); err != nil {
			return nil, err
		}
	}
	kept := fieldpath.NewSet()
	owned.Difference(now).Iterate(func(p fieldpath.Path) {
		if stays(p) {
			kept.Insert(p.Copy())
		}
	})
	if kept.Empty() {
		return nil, nil //nolint:nilnil // nothing is kept
	}
	return &has, setFields(&has, now.Union(kept))
}

// inOrder is the order in which the entries of managers are stored.
func inOrder(a, b metav1.ManagedFieldsEntry) int {
	seconds := func(t *metav1.Time) int64 {
		if t == nil {
			return 0
		}
		return t.Unix()
	}
	return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)), cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
}

func setOf(e metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	s := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return s, nil
	}
	if err := s.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("fields of manager %s: %w", e.Manager, err)
	}
	return s, nil
}

func setFields(e *metav1.ManagedFieldsEntry, s *fieldpath.Set) error {
	raw, err := s.ToJSON()
	if err != nil {
		return fmt.Errorf("fields of manager %s: %w", e.Manager, err)
	}
	e.FieldsV1 = &metav1.FieldsV1{}
	e.FieldsV1.SetRawBytes(raw)
	return nil
}

func contentOf(obj runtime.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("content of %T: %w", obj, err)
	}
	return content, nil
}

// same reports whether a field has one value in two contents, or is in neither.
func same(a, b map[string]any, path fieldpath.Path) bool {
	was, ok := lookUp(a, path)
	is, too := lookUp(b, path)
	return ok && too && equality.Semantic.DeepEqual(was, is)
}

// lookUp returns the value of a field; nil if it is absent. It reports false for an element of a list that is not found.
func lookUp(content any, path fieldpath.Path) (found any, ok bool) {
	for _, e := range path {
		switch {
		case e.FieldName != nil:
			m, _ := content.(map[string]any)
			if content = m[*e.FieldName]; content == nil {
				return nil, true
			}
		case e.Key != nil || e.Value != nil:
			list, _ := content.([]any)
			at := slices.IndexFunc(list, func(item any) bool {
				return e.Key != nil && hasKey(item, e.Key) || e.Value != nil && value.Equals(value.NewValueInterface(item), *e.Value)
			})
			if at < 0 {
				return nil, false
			}
			content = list[at]
		default: // an index says nothing about the element
			return nil, false
		}
	}
	return content, true
}

// hasKey reports whether an element of a list is that with the key.
func hasKey(item any, key *value.FieldList) bool {
	m, ok := item.(map[string]any)
	return ok && !slices.ContainsFunc(*key, func(f value.Field) bool {
		v, has := m[f.Name]
		return !has || !value.Equals(value.NewValueInterface(v), f.Value)
	})
}
