// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
)

// listWatch prints a list and then each change, across cut connections.
type listWatch struct {
	*terminal
	// request returns a new request for the list.
	request func() *rest.Request
	format  format
	printer printers.ResourcePrinter
	// missed is set if only what changes is printed, and neither what is stored nor what is removed. It is called when changes were missed,
	// because the server has forgotten them.
	missed func()

	// revision is the position of the next watch; empty before the list was read, and after the server has forgotten it.
	revision string
	received int64 // how many lists and changes
}

// follow goes on until the context ends.
func (w *listWatch) follow(ctx context.Context) error {
	if err := w.list(ctx); err != nil { // only a watch that has begun is resumed
		return err
	}
	err := persist(ctx, w.clock, func() int64 { return w.received }, func(ctx context.Context) error {
		err := w.once(ctx)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			if w.missed != nil {
				w.missed()
			}
			w.revision = "" // what is stored is printed again
			return errCut
		}
		return err
	})
	return lost(err, "the watch")
}

// once prints the list, if that was not done, and watches until the watch is cut.
func (w *listWatch) once(ctx context.Context) error {
	if w.revision == "" {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	r := w.request().Param("watch", "true").Param("resourceVersion", w.revision).Param("allowWatchBookmarks", "true")
	if w.format.table() {
		r = r.SetHeader("Accept", tableHeader)
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	in := json.NewDecoder(body)
	for {
		var e metav1.WatchEvent
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			return errCut
		} else if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if err := w.take(&e); err != nil {
			return err
		}
	}
}

func (w *listWatch) list(ctx context.Context) error {
	r := w.request()
	if w.missed != nil {
		r = r.Param("limit", "1")
	}
	obj, err := fetch(ctx, r, w.format)
	if err != nil {
		return err
	}
	l, err := meta.ListAccessor(obj)
	if err != nil {
		return fmt.Errorf("answer of the server: %w", err)
	}
	w.revision = l.GetResourceVersion()
	w.received++
	if w.missed != nil || meta.LenList(obj) == 0 && !w.format.table() {
		return nil
	}
	return final(w.printAnswer(w.printer, obj))
}

// take prints what the watch sent.
func (w *listWatch) take(e *metav1.WatchEvent) error {
	if e.Type == string(watch.Error) {
		var status metav1.Status
		if err := json.Unmarshal(e.Object.Raw, &status); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		return apierrors.FromObject(&status)
	}
	obj, err := decode(e.Object.Raw, w.format)
	if err != nil {
		return final(err)
	}
	w.received++
	if revision := revisionOf(obj); revision != "" {
		w.revision = revision
	}
	if e.Type == string(watch.Bookmark) || e.Type == string(watch.Deleted) && w.missed != nil {
		return nil
	}
	if err := w.printer.PrintObj(obj, w.Out); err != nil {
		return final(fmt.Errorf("output: %w", err))
	}
	return nil
}

// revisionOf returns the resource version of an object or of the object in a table's row.
func revisionOf(obj runtime.Object) string {
	if t, ok := obj.(*metav1.Table); ok && len(t.Rows) > 0 && t.Rows[0].Object.Object != nil {
		obj = t.Rows[0].Object.Object
	}
	m, err := meta.CommonAccessor(obj)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
