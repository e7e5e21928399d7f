// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/visible"
)

// Column is one column of kubectl get.
type Column[T Object] struct {
	// Name is the heading, in words ("Last Seen").
	Name string
	// Type is an OpenAPI type: string (default), integer, number or boolean.
	Type string
	// Description explains the column; clients show it in machine-readable tables.
	Description string
	// Wide shows the column only with kubectl's -o wide.
	Wide bool
	// Value returns the cell. A metav1.Time or *metav1.Time is shown as the time elapsed since
	// then. A text is shown on one line, without what a terminal would obey.
	Value func(T) any
}

type tableConvertor[T Object] struct {
	columns []Column[T]
	whole   bool // columns are the whole table
	clock   clock.PassiveClock
}

// ConvertToTable renders an object or a list with the Definition's columns. Rows with the metadata of their objects, as
// kubectl get asks for, leave out the managed fields: these are half of the bytes, and nobody looks for them in a table.
func (c tableConvertor[T]) ConvertToTable(_ context.Context, obj runtime.Object, opts runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	asked, _ := opts.(*metav1.TableOptions)
	whole := asked == nil || asked.IncludeObject == metav1.IncludeObject
	if n := meta.LenList(obj); n > 0 {
		table.Rows = make([]metav1.TableRow, 0, n)
	}
	row := func(o runtime.Object) error {
		t, ok := o.(T)
		if !ok {
			return fmt.Errorf("table of %T", o)
		}
		if !whole {
			o = metadataOf(t)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: c.cells(t), Object: runtime.RawExtension{Object: o}})
		return nil
	}
	var err error
	if meta.IsListType(obj) {
		err = meta.EachListItem(obj, row)
	} else {
		err = row(obj)
	}
	if err != nil {
		return nil, err
	}
	if m, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion, table.Continue, table.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	} else if m, err := meta.CommonAccessor(obj); err == nil {
		table.ResourceVersion = m.GetResourceVersion()
	}
	if asked == nil || !asked.NoHeaders {
		table.ColumnDefinitions = c.headings()
	}
	return table, nil
}

// metadataOf returns the metadata of an object without its managed fields. It shares everything else with the object.
func metadataOf(o metav1.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.GetName(), GenerateName: o.GetGenerateName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
		ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(), CreationTimestamp: o.GetCreationTimestamp(),
		DeletionTimestamp: o.GetDeletionTimestamp(), DeletionGracePeriodSeconds: o.GetDeletionGracePeriodSeconds(),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(), OwnerReferences: o.GetOwnerReferences(), Finalizers: o.GetFinalizers(),
	}}
}

func (c tableConvertor[T]) headings() []metav1.TableColumnDefinition {
	doc := metav1.ObjectMeta{}.SwaggerDoc()
	var defs []metav1.TableColumnDefinition
	if !c.whole {
		defs = append(defs, metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: doc["name"]})
	}
	for _, col := range c.columns {
		d := metav1.TableColumnDefinition{Name: col.Name, Type: col.Type, Description: col.Description}
		if d.Type == "" {
			d.Type = "string"
		}
		if col.Wide {
			d.Priority = 1
		}
		defs = append(defs, d)
	}
	if c.whole {
		return defs
	}
	return append(defs, metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: doc["creationTimestamp"]})
}

func (c tableConvertor[T]) cells(o T) []any {
	cells := make([]any, 0, len(c.columns)+2)
	if !c.whole {
		cells = append(cells, o.GetName())
	}
	for _, col := range c.columns {
		v := col.Value(o)
		switch t := v.(type) {
		case metav1.Time:
			v = c.since(t)
		case *metav1.Time:
			v = ""
			if t != nil {
				v = c.since(*t)
			}
		case string:
			v = visible.Line(t)
		}
		cells = append(cells, v)
	}
	if c.whole {
		return cells
	}
	return append(cells, c.since(o.GetCreationTimestamp()))
}

func (c tableConvertor[T]) since(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(c.clock.Since(t.Time))
}
